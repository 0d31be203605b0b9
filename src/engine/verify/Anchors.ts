/**
 * Anchors: signed statements of the journals' heads at a time. Without the installation's secret, write access to the
 * database is not enough to rewrite history undetected.
 *
 * - An anchor holds the newest record and its hash of every account that has changed since the previous anchor. A hash
 *   covers all records before it, so verification detects a changed record, a new chain, a journal that ends too early
 *   and a missing journal at the next anchored head.
 * - Its signature covers the previous signature, so no anchor can be removed from the middle or moved. Removed newest
 *   anchors are detected by the mark, which is stored with the secret, outside of the database.
 * - After a roll of the secret, the new one signs. An anchor under the secret before it is genuine only in front of the
 *   first anchor under the new one, whose signature covers it: the old secret forges nothing.
 * - An anchor describes the database at the time when it was made. Changes before that are not detected: those within
 *   the last hour, or since a kill.
 */
import { Clock, Context, Effect, Latch, Layer, Redacted, Schedule } from "effect"
import { createHmac } from "node:crypto"
import { parseJson } from "../../json/JsonParse.ts"
import type { AccountId, Millis } from "../log/Document.ts"
import type { Place, StorageFailure } from "../log/Journal.ts"
import { partitionOf, Placement } from "../process/Placement.ts"
import { logOf } from "../process/Log.ts"

const log = logOf("engine")

/** The newest record of an account, at some time. */
export interface Head extends Place {
  readonly hash: string
}

export interface Anchor {
  /** 1, 2, 3, … without a gap. */
  readonly sequence: number
  readonly at: Millis
  /** Heads as JSON text, `[[account, version, hash], …]`: exactly this is signed. */
  readonly heads: string
  /** HMAC-SHA256 in hex. */
  readonly signature: string
}

export type Mark = Pick<Anchor, "sequence" | "signature">

export interface AnchorStoreShape {
  /** Up to `limit` anchors after a sequence number, in ascending order. */
  readonly read: (after: number, limit: number) => Effect.Effect<ReadonlyArray<Anchor>, StorageFailure>
  /** Writes an anchor; false if another process has written one with its number. */
  readonly append: (anchor: Anchor) => Effect.Effect<boolean, StorageFailure>
  readonly heads: Effect.Effect<ReadonlyArray<Head>, StorageFailure>
  /** The newest anchor written by a process with this data folder. */
  readonly mark: Effect.Effect<Mark | undefined, StorageFailure>
  readonly setMark: (mark: Mark) => Effect.Effect<void, StorageFailure>
}

export class AnchorStore extends Context.Service<AnchorStore, AnchorStoreShape>()("till/engine/AnchorStore") {}

type AnchorKey = Redacted.Redacted<Uint8Array>

/** The keys that have ever signed anchors, each derived from a secret of the installation. */
export interface AnchorKeys {
  /** Newest first. */
  readonly all: ReadonlyArray<AnchorKey>
  /** The place in `all` of the key that signs. */
  readonly position: () => number
}

const PAGE = 100

const signatureOf = (key: AnchorKey, previous: string, { at, heads, sequence }: Omit<Anchor, "signature">): string =>
  createHmac("sha256", Redacted.value(key)).update(`${previous}\n${sequence}\n${at}\n${heads}`).digest("hex")

export interface AnchoredHead {
  readonly version: number
  readonly hash: string
  readonly at: Millis
}

/** The contents of all genuine anchors. */
export interface Anchored {
  /** Heads by account, in ascending order. */
  readonly heads: ReadonlyMap<AccountId, ReadonlyArray<AnchoredHead>>
  /** Time of the newest anchor; null if there is none. */
  readonly newest: Millis | null
  /** The first problem of the anchors themselves; null if there is none. */
  readonly problem: string | null
}

export const timeOf = (at: Millis): string => new Date(at).toISOString().replace(/:\d\d\.\d\d\dZ$/, "Z")

/** A genuine anchor, and the place of the key that has signed it: no later anchor has an older key. */
interface Reached {
  readonly newest: Mark
  readonly signer: number
}

/** Reads all anchors after one, and returns the problem of the first that is not genuine. */
const overAnchors = Effect.fnUntraced(function* (
  { all }: Pick<AnchorKeys, "all">,
  from: Reached,
  onAnchor: (anchor: Anchor) => void
): Effect.fn.Return<Reached & { readonly problem: string | null }, StorageFailure, AnchorStore> {
  const store = yield* AnchorStore
  let { newest, signer } = from
  let problem: string | null = null
  const isSigned = (anchor: Anchor): boolean => {
    const found = all.findLastIndex(
      (key, i) => i <= signer && anchor.signature === signatureOf(key, newest.signature, anchor)
    )
    if (found >= 0) signer = found
    return found >= 0
  }
  for (;;) {
    const page = yield* store.read(newest.sequence, PAGE)
    for (const anchor of page) {
      if (anchor.sequence !== newest.sequence + 1) problem ??= `Anchor ${newest.sequence + 1} is missing`
      else if (!isSigned(anchor)) {
        problem ??=
          `Anchor ${anchor.sequence} of ${timeOf(anchor.at)} is not signed with the secret in TILL_DATA_DIR: it was ` +
          "forged, or the secret is another installation's"
      }
      if (problem === null) onAnchor(anchor)
      newest = anchor
    }
    if (page.length === 0) return { newest, signer, problem }
  }
})

const NONE: Reached = { newest: { sequence: 0, signature: "" }, signer: Infinity }

const headsIn = ({ heads }: Anchor) => parseJson(heads) as ReadonlyArray<readonly [AccountId, number, string]>

/** Returns the problem if the anchor of the mark is missing. */
const unmarked = (mark: Mark | undefined, marked: boolean): string | null =>
  mark === undefined || marked
    ? null
    : `Anchor ${mark.sequence} is gone or replaced: somebody has taken the newest anchors away, or the database was put ` +
      "back to an earlier state. If you have done so on purpose, remove the file `anchor` in TILL_DATA_DIR"

export const anchored = Effect.fnUntraced(function* (
  keys: Pick<AnchorKeys, "all">
): Effect.fn.Return<Anchored, StorageFailure, AnchorStore> {
  const store = yield* AnchorStore
  // Before the anchors, because a running service may add some.
  const mark = yield* store.mark
  const heads = new Map<AccountId, Array<AnchoredHead>>()
  let newest: Millis | null = null
  let marked = false
  const { problem } = yield* overAnchors(keys, NONE, (anchor) => {
    newest = anchor.at
    if (anchor.sequence === mark?.sequence) marked = anchor.signature === mark.signature
    for (const [account, version, hash] of headsIn(anchor)) {
      const known = heads.get(account)
      if (known === undefined) heads.set(account, [{ version, hash, at: anchor.at }])
      else known.push({ version, hash, at: anchor.at })
    }
  })
  return { heads, newest, problem: problem ?? unmarked(mark, marked) }
})

/** Makes an effect that writes an anchor if any account has changed since the previous one. */
export const makeAnchoring = Effect.fnUntraced(function* (keys: AnchorKeys) {
  const store = yield* AnchorStore
  const versions = new Map<AccountId, number>()
  let reached = NONE
  const known = (anchor: Anchor) => {
    for (const [account, version] of headsIn(anchor)) versions.set(account, version)
  }
  /** Reads the anchors since the last call, at first all of them. Returns their problem, or null. */
  const read = Effect.gen(function* () {
    const mark = yield* store.mark
    let marked = mark !== undefined && mark.sequence <= reached.newest.sequence
    const found = yield* overAnchors(keys, reached, (anchor) => {
      known(anchor)
      if (anchor.sequence === mark?.sequence) marked = anchor.signature === mark.signature
    })
    const problem = found.problem ?? unmarked(mark, marked)
    if (problem === null) reached = found
    return problem
  })
  const attempt = Effect.gen(function* () {
    const problem = yield* read
    if (problem !== null) {
      // Another anchor would hide that earlier ones were changed.
      yield* log.error("No anchor is made: those that are there cannot be trusted", problem)
      return true
    }
    const moved = (yield* store.heads).filter(({ account, version }) => version > (versions.get(account) ?? 0))
    if (moved.length === 0) return true
    const at = yield* Clock.currentTimeMillis
    const heads = JSON.stringify(moved.map(({ account, hash, version }) => [account, version, hash]))
    const { newest } = reached
    // A process that has not noticed a roll yet signs like the anchors before its own.
    const signer = Math.min(keys.position(), reached.signer)
    const unsigned = { sequence: newest.sequence + 1, at, heads }
    const anchor = { ...unsigned, signature: signatureOf(keys.all[signer]!, newest.signature, unsigned) }
    if (!(yield* store.append(anchor))) return false
    yield* store.setMark(anchor)
    known(anchor)
    reached = { newest: anchor, signer }
    return true
  })
  // If another process was first, its anchor covers nearly everything, and one further attempt is enough.
  return Effect.flatMap(attempt, (isMade) => (isMade ? Effect.void : Effect.asVoid(attempt))).pipe(
    Effect.catch((error) => log.error("No anchor could be made; it will be tried again", error.message))
  )
})

const SPACING = "1 hour"
/** Pause before the first anchor, so that it does not slow down the start. */
const DELAY = "10 seconds"
/** Time limit for the last anchor when the service stops. */
const LAST_WITHIN = "2 seconds"
/** Time within which a stopping process has released its partitions, in milliseconds. */
const STOPPING_MILLIS = 60_000

/**
 * Makes anchors soon after the start, every hour, and at the end. If several processes share the database, only the one
 * that serves `account` makes them, from soon after it has acquired it.
 */
export const layer = (keys: AnchorKeys, account: AccountId): Layer.Layer<never, never, AnchorStore | Placement> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const placement = yield* Placement
      const anchor = yield* makeAnchoring(keys)
      let servedUntil = Number.NEGATIVE_INFINITY
      const isOurs = () => {
        if (placement.isHere(account)) servedUntil = performance.now()
        return performance.now() - servedUntil < STOPPING_MILLIS
      }
      const arrived = Latch.makeUnsafe(placement.held() === null)
      yield* placement.listen({
        onServed: (partition) => {
          if (partition === partitionOf(account)) arrived.openUnsafe()
        },
        onLeaving: (partition) =>
          Effect.sync(() => {
            if (partition === partitionOf(account)) isOurs()
          })
      })
      yield* Effect.addFinalizer(() => (isOurs() ? Effect.timeoutOption(anchor, LAST_WITHIN) : Effect.void))
      const each = Effect.suspend(() => (placement.isHere(account) ? anchor : Effect.void))
      const hourly = each.pipe(Effect.repeat(Schedule.spaced(SPACING)), Effect.delay(DELAY))
      yield* Effect.forkScoped(Effect.andThen(arrived.await, hourly))
    })
  )
