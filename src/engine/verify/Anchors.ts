/**
 * Anchors: signed statements of how far the journals were at a time, so that who can write the database, but has not
 * the installation's secret, cannot rewrite history unseen.
 *
 * - An anchor names the newest record, and its hash, of every account that has moved since the anchor before. A hash
 *   stands for all that is before it, so a changed record, or a whole new chain, is noticed at the next anchored head,
 *   and so is a journal that ends before it or is gone.
 * - Its signature covers the signature before it: no anchor can be taken out from among others, or moved. That the
 *   newest are gone is seen by the mark, which is kept where the secret is, outside of the database.
 * - An anchor says what the database held when it was made. What was changed before that is not noticed: whatever
 *   happened within the last hour, or since a kill.
 */
import { Clock, Context, Effect, Latch, Layer, Redacted, Schedule } from "effect"
import { createHmac } from "node:crypto"
import { parseJson } from "../../json/JsonParse.ts"
import type { AccountId, Millis } from "../log/Document.ts"
import type { Place, StorageFailure } from "../log/Journal.ts"
import { partitionOf, Placement } from "../process/Placement.ts"

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
  /** In hex. */
  readonly signature: string
}

/** Names an anchor. */
export type Mark = Pick<Anchor, "sequence" | "signature">

export interface AnchorStoreShape {
  /** Up to `limit` anchors after one, in their order. */
  readonly read: (after: number, limit: number) => Effect.Effect<ReadonlyArray<Anchor>, StorageFailure>
  /** Writes an anchor; false if another process has written one with its number. */
  readonly append: (anchor: Anchor) => Effect.Effect<boolean, StorageFailure>
  /** The newest record of every account. */
  readonly heads: Effect.Effect<ReadonlyArray<Head>, StorageFailure>
  /** The newest anchor that a process with this data folder has written. */
  readonly mark: Effect.Effect<Mark | undefined, StorageFailure>
  readonly setMark: (mark: Mark) => Effect.Effect<void, StorageFailure>
}

export class AnchorStore extends Context.Service<AnchorStore, AnchorStoreShape>()("till/engine/AnchorStore") {}

/** Signs anchors. */
export type AnchorKey = Redacted.Redacted<Uint8Array>

const PAGE = 100

const signatureOf = (key: AnchorKey, previous: string, { at, heads, sequence }: Omit<Anchor, "signature">): string =>
  createHmac("sha256", Redacted.value(key)).update(`${previous}\n${sequence}\n${at}\n${heads}`).digest("hex")

/** A head as it was anchored. */
export interface AnchoredHead {
  readonly version: number
  readonly hash: string
  readonly at: Millis
}

/** What the anchors say, as far as they are genuine. */
export interface Anchored {
  /** Of each account, in ascending order. */
  readonly heads: ReadonlyMap<AccountId, ReadonlyArray<AnchoredHead>>
  /** When the newest was made; null if there is none. */
  readonly newest: Millis | null
  /** What is wrong with the anchors themselves, if anything. */
  readonly problem: string | null
}

export const timeOf = (at: Millis): string => new Date(at).toISOString().replace(/:\d\d\.\d\d\dZ$/, "Z")

/** Goes over all anchors from behind one, and says what is wrong with the first that is not genuine. */
const overAnchors = Effect.fnUntraced(function* (
  key: AnchorKey,
  from: Mark,
  onAnchor: (anchor: Anchor) => void
): Effect.fn.Return<{ readonly newest: Mark; readonly problem: string | null }, StorageFailure, AnchorStore> {
  const store = yield* AnchorStore
  let newest = from
  let problem: string | null = null
  for (;;) {
    const page = yield* store.read(newest.sequence, PAGE)
    for (const anchor of page) {
      if (anchor.sequence !== newest.sequence + 1) problem ??= `Anchor ${newest.sequence + 1} is missing`
      else if (anchor.signature !== signatureOf(key, newest.signature, anchor)) {
        problem ??=
          `Anchor ${anchor.sequence} of ${timeOf(anchor.at)} is not signed with the secret in TILL_DATA_DIR: it was ` +
          "forged, or the secret is another installation's"
      }
      if (problem === null) onAnchor(anchor)
      newest = anchor
    }
    if (page.length === 0) return { newest, problem }
  }
})

const NONE: Mark = { sequence: 0, signature: "" }

const headsIn = ({ heads }: Anchor) => parseJson(heads) as ReadonlyArray<readonly [AccountId, number, string]>

/** Says what is wrong if the anchor that the mark names is not there. */
const unmarked = (mark: Mark | undefined, marked: boolean): string | null =>
  mark === undefined || marked
    ? null
    : `Anchor ${mark.sequence} is gone or replaced: somebody has taken the newest anchors away, or the database was put ` +
      "back to an earlier state. If you have done so on purpose, remove the file `anchor` in TILL_DATA_DIR"

/** All that is anchored, for verification. */
export const anchored = Effect.fnUntraced(function* (
  key: AnchorKey
): Effect.fn.Return<Anchored, StorageFailure, AnchorStore> {
  const store = yield* AnchorStore
  // Before the anchors: a service may go on making them.
  const mark = yield* store.mark
  const heads = new Map<AccountId, Array<AnchoredHead>>()
  let newest: Millis | null = null
  let marked = false
  const { problem } = yield* overAnchors(key, NONE, (anchor) => {
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

/** What is made makes an anchor each time it runs, if any account has moved since the anchor before. */
export const makeAnchoring = Effect.fnUntraced(function* (key: AnchorKey) {
  const store = yield* AnchorStore
  const versions = new Map<AccountId, number>()
  let newest = NONE
  const known = (anchor: Anchor) => {
    for (const [account, version] of headsIn(anchor)) versions.set(account, version)
  }
  /** Reads what others have written, and all of it at first. Says what is wrong, if anything. */
  const read = Effect.gen(function* () {
    const mark = yield* store.mark
    let marked = mark !== undefined && mark.sequence <= newest.sequence
    const found = yield* overAnchors(key, newest, (anchor) => {
      known(anchor)
      if (anchor.sequence === mark?.sequence) marked = anchor.signature === mark.signature
    })
    const problem = found.problem ?? unmarked(mark, marked)
    if (problem === null) newest = found.newest
    return problem
  })
  const attempt = Effect.gen(function* () {
    const problem = yield* read
    if (problem !== null) {
      // Another anchor would hide that the ones before it are not what they were.
      yield* Effect.logError("No anchor is made: those that are there cannot be trusted", problem)
      return true
    }
    const moved = (yield* store.heads).filter(({ account, version }) => version > (versions.get(account) ?? 0))
    if (moved.length === 0) return true
    const at = yield* Clock.currentTimeMillis
    const heads = JSON.stringify(moved.map(({ account, hash, version }) => [account, version, hash]))
    const unsigned = { sequence: newest.sequence + 1, at, heads }
    const anchor = { ...unsigned, signature: signatureOf(key, newest.signature, unsigned) }
    if (!(yield* store.append(anchor))) return false
    yield* store.setMark(anchor)
    known(anchor)
    newest = anchor
    return true
  })
  // Of several processes, one was first. It will have anchored nearly all that there is.
  return Effect.flatMap(attempt, (isMade) => (isMade ? Effect.void : Effect.asVoid(attempt))).pipe(
    Effect.catch((error) => Effect.logError("No anchor could be made; it will be tried again", error.message))
  )
})

const SPACING = "1 hour"
/** A start has other things to do first. */
const DELAY = "10 seconds"
/** Whoever has told the service to stop does not wait for long. */
const LAST_WITHIN = "2 seconds"
/** A process that stops gives up first what it serves, and has done so within this time, in milliseconds. */
const STOPPING_MILLIS = 60_000

/**
 * Makes anchors soon after the start, every hour, and at the end. Of several processes, the one does that serves the
 * account; it begins soon after it has it.
 */
export const layer = (key: AnchorKey, account: AccountId): Layer.Layer<never, never, AnchorStore | Placement> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const placement = yield* Placement
      const anchor = yield* makeAnchoring(key)
      let servedUntil = Number.NEGATIVE_INFINITY
      const isOurs = () => {
        if (placement.isHere(account)) servedUntil = performance.now()
        return performance.now() - servedUntil < STOPPING_MILLIS
      }
      const come = Latch.makeUnsafe(placement.held() === null)
      yield* placement.attend({
        served: (partition) => {
          if (partition === partitionOf(account)) come.openUnsafe()
        },
        leaving: (partition) =>
          Effect.sync(() => {
            if (partition === partitionOf(account)) isOurs()
          })
      })
      yield* Effect.addFinalizer(() => (isOurs() ? Effect.timeoutOption(anchor, LAST_WITHIN) : Effect.void))
      const each = Effect.suspend(() => (placement.isHere(account) ? anchor : Effect.void))
      const hourly = each.pipe(Effect.repeat(Schedule.spaced(SPACING)), Effect.delay(DELAY))
      yield* Effect.forkScoped(Effect.andThen(come.await, hourly))
    })
  )
