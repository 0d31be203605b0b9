/**
 * Seals everything anew that is under the secret before the one in force, while a roll is unfinished (semantics
 * operation.roll).
 *
 * - A document is rewritten by a record of its account, as a command among others: no process can overwrite a change.
 *   Its public part stays the same, and no event tells of it.
 * - A killed process leaves whole records. The next round finds what is left by opening it, so nothing is remembered.
 * - Each process rewrites the accounts that it serves, a few documents at a time, with rests nine times as long.
 *
 * Answers to requests are not rewritten, because a record never changes: they end with their idempotency keys. Neither
 * are older records, in which the texts remain as they were sealed.
 */
import { Cause, Effect, Layer } from "effect"
import { Accounts, type Unavailable } from "../../engine/Accounts.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import type { AccountId, Document, Identified, Labels } from "../../engine/log/Document.ts"
import { Journal, type StorageFailure } from "../../engine/log/Journal.ts"
import { tryRead } from "../../engine/log/Record.ts"
import { logOf } from "../../engine/process/Log.ts"
import * as Loop from "../../engine/process/Loop.ts"
import { Placement } from "../../engine/process/Placement.ts"
import { DocumentFormats } from "../../engine/views/DocumentFormats.ts"
import { Views } from "../../engine/views/Views.ts"
import { INSTALLATION } from "../shared/AccountIds.ts"
import * as Configured from "../processing/ConfiguredProcessors.ts"
import { type Kept, OPERATION, WEBHOOK_ENDPOINT } from "../shared/Documents.ts"
import { isRolling, type KeyringShape } from "../shared/Keyring.ts"
import * as Mails from "../mail/Mails.ts"
import { challengeSealing } from "../lifecycles/Operations.ts"
import * as Passwords from "../team/Passwords.ts"
import { PaymentsConfig } from "../shared/PaymentsConfig.ts"
import { PERSON } from "../team/People.ts"
import { reseal } from "../shared/Sealing.ts"
import * as SecondFactors from "../team/SecondFactors.ts"
import { subjectOf, type TimerName } from "../shared/TimerNames.ts"
import * as WebhookEndpoints from "../webhooks/WebhookEndpoints.ts"

const log = logOf("payments")

/** A kind of documents with sealed texts. */
interface SealedKind {
  readonly kind: Kept<Identified, unknown>
  /** The documents that may have sealed texts, if not all of the kind. */
  readonly among?: Labels | TimerName
  /** Whether the documents are in the installation's account, in the merchants' accounts, or in both. */
  readonly in: "installation" | "merchants" | "all"
  /** Returns the hidden part with its texts sealed anew; undefined if none is under an older secret. */
  readonly resealed: (keys: Keys, account: AccountId, document: Document) => unknown
}

type Keys = { readonly keyring: KeyringShape }

const sealed = <V extends Identified, H>(
  kind: Kept<V, H>,
  where: SealedKind["in"],
  resealed: (keys: Keys, account: AccountId, document: Document<V, H>) => H | undefined,
  among?: SealedKind["among"]
): SealedKind => ({ kind, in: where, resealed, ...(among !== undefined && { among }) }) as unknown as SealedKind

const SEALED: ReadonlyArray<SealedKind> = [
  sealed(WEBHOOK_ENDPOINT, "merchants", WebhookEndpoints.resealed),
  sealed(
    OPERATION,
    "merchants",
    ({ keyring }, _, { hidden, id }) => {
      const { sealedChallenge: before } = hidden
      const sealedChallenge = before === null ? undefined : reseal(challengeSealing(keyring, id), before)
      return sealedChallenge === undefined ? undefined : { ...hidden, sealedChallenge }
    },
    { status: "waiting" }
  ),
  sealed(Mails.MAIL, "all", Mails.resealed, "mail.attempt"),
  sealed(Configured.PROCESSOR, "installation", (keys, _, document) => Configured.resealed(keys, document)),
  sealed(SecondFactors.SECOND_FACTOR, "installation", (keys, _, document) => SecondFactors.resealed(keys, document)),
  sealed(PERSON, "installation", (keys, _, document) => {
    const password = Passwords.resealed(keys, document)
    return password === undefined ? undefined : { ...document.hidden, password }
  })
]

const isIn = (account: AccountId, { in: where }: SealedKind): boolean =>
  where === "all" || (where === "installation") === (account === INSTALLATION)

const PAGE = 100

/** Ids of the documents of each account that have a timer, by the timer's name. */
type Timed = ReadonlyMap<TimerName, ReadonlyMap<AccountId, ReadonlyArray<string>>>

const readTimed: Effect.Effect<Timed, StorageFailure, Views> = Effect.gen(function* () {
  const views = yield* Views
  const timed = new Map<TimerName, Map<AccountId, Array<string>>>()
  for (const { among } of SEALED) {
    if (typeof among !== "string") continue
    const accounts = new Map<AccountId, Array<string>>()
    for (const { account, id } of yield* views.timersNamed(among, null, Number.MAX_SAFE_INTEGER)) {
      accounts.set(account, [...(accounts.get(account) ?? []), subjectOf(id)])
    }
    timed.set(among, accounts)
  }
  return timed
})

/** Passes the ids of documents in the views that may be under an older secret to `use`, page by page. */
const eachPage = Effect.fnUntraced(function* <E, R>(
  account: AccountId,
  { among, kind: { name, prefix } }: SealedKind,
  timed: Timed,
  use: (ids: ReadonlyArray<string>) => Effect.Effect<void, E, R>
) {
  if (typeof among === "string") {
    const ids = timed.get(among)?.get(account) ?? []
    for (let i = 0; i < ids.length; i += PAGE) yield* use(ids.slice(i, i + PAGE))
    return
  }
  const views = yield* Views
  const query = { kind: name, prefix, limit: PAGE, ...(among !== undefined && { labels: among }) }
  for (let last: string | undefined; ;) {
    const rows = yield* views.list(account, { ...query, ...(last !== undefined && { olderThan: last }) })
    yield* use(rows.map(({ id }) => id))
    last = rows.at(-1)?.id
    if (rows.length < PAGE) return
  }
})

/** Returns those of the documents that have a text under an older secret. A damaged document opens under none. */
const underOlder = Effect.fnUntraced(function* (
  keys: Keys,
  account: AccountId,
  { kind, resealed }: SealedKind,
  ids: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<string>, StorageFailure, DocumentFormats | Views> {
  if (ids.length === 0) return []
  const formats = yield* DocumentFormats
  const rows = yield* Views.use(({ documents }) => documents(ids.map((id) => ({ account, id }))))
  const found = yield* Effect.forEach(rows, (row) =>
    row === undefined
      ? Effect.succeed(undefined)
      : Effect.orElseSucceed(
          tryRead(() => formats.document(row)),
          () => undefined
        )
  )
  return found.flatMap((document) => {
    const isSealed = document?.deleted === false && document.kind === kind.name
    return isSealed && resealed(keys, account, document) !== undefined ? [document.id] : []
  })
})

/** Counts the documents with a text under an older secret, by kind, in the accounts of the views. */
export const countLeft = Effect.fnUntraced(function* (
  keys: Keys
): Effect.fn.Return<Readonly<Record<string, number>>, StorageFailure, DocumentFormats | Views> {
  const left: Record<string, number> = {}
  const timed = yield* readTimed
  for (const account of yield* Views.use(({ accounts }) => accounts)) {
    for (const sealedKind of SEALED) {
      if (!isIn(account, sealedKind)) continue
      yield* eachPage(account, sealedKind, timed, (ids) =>
        Effect.map(underOlder(keys, account, sealedKind, ids), ({ length }) => {
          const { name } = sealedKind.kind
          if (length > 0) left[name] = (left[name] ?? 0) + length
        })
      )
    }
  }
  return left
})

/** Seals the texts of some documents anew in one record, as far as they are still under an older secret. */
const rewrite = (keys: Keys, { kind, resealed }: SealedKind, ids: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const transaction = yield* Transaction
    for (const id of ids) {
      const document = yield* transaction.get(kind, id)
      const hidden = document && resealed(keys, transaction.account, document)
      if (document !== undefined && hidden !== undefined) transaction.put(kind, document.value, hidden)
    }
  })

/** Documents per record: a record stays small, and a command short. */
const TOGETHER = 20

/** Rewrites the documents of one account. `rest` runs after each step of work. */
const resealAccount = Effect.fnUntraced(function* (
  keys: Keys,
  account: AccountId,
  timed: Timed,
  rest: Effect.Effect<void>
): Effect.fn.Return<number, StorageFailure | Unavailable, Accounts | DocumentFormats | Views> {
  const accounts = yield* Accounts
  let count = 0
  for (const sealedKind of SEALED) {
    if (!isIn(account, sealedKind)) continue
    yield* eachPage(account, sealedKind, timed, (page) =>
      Effect.gen(function* () {
        const ids = yield* underOlder(keys, account, sealedKind, page)
        yield* rest
        for (let i = 0; i < ids.length; i += TOGETHER) {
          yield* accounts.run(account, rewrite(keys, sealedKind, ids.slice(i, i + TOGETHER)))
          yield* rest
        }
        count += ids.length
      })
    )
  }
  return count
})

/** Rewrites the documents of all accounts that are served here. Returns their number. */
export const resealAll = Effect.fnUntraced(function* (keys: Keys, rest: Effect.Effect<void>) {
  const { isHere } = yield* Placement
  const timed = yield* readTimed
  let count = 0
  for (const account of yield* Journal.use(({ accounts }) => accounts)) {
    if (!isHere(account)) continue
    count += yield* resealAccount(keys, account, timed, rest).pipe(
      Effect.catchCause((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.failCause(cause) : later(account, cause)))
    )
  }
  return count
})

/** Logs an account whose documents could not be rewritten: it has moved, its storage hangs, or it is damaged. */
const later = (account: AccountId, cause: Cause.Cause<unknown>): Effect.Effect<number> =>
  Effect.as(
    log.warning(`The secrets of ${account} will be sealed anew later`, String(Cause.squash(cause)), {
      cause: "not sealed anew"
    }),
    0
  )

/** Length of a rest, as a multiple of the work before it. */
const REST = 9
const REST_MILLIS_MAX = 2000

/** Makes a rest that is as many times as long as the work since the one before. */
const makeRest = (): Effect.Effect<void> => {
  let since = performance.now()
  return Effect.suspend(() =>
    Effect.sleep(Math.min(Math.max((performance.now() - since) * REST, 1), REST_MILLIS_MAX))
  ).pipe(Effect.andThen(Effect.sync(() => void (since = performance.now()))))
}

/** Pause between two rounds, in milliseconds: accounts that arrive and texts of a process that lags need another. */
const PAUSE_MILLIS = 10_000

/** Rewrites as long as the layer lives, in a process that has started with two secrets. */
export const layer: Layer.Layer<
  never,
  never,
  Accounts | DocumentFormats | Journal | PaymentsConfig | Placement | Views
> = Layer.effectDiscard(
  Effect.gen(function* () {
    const config = yield* PaymentsConfig
    if (config.keyring.all.length === 1) return
    const round = Effect.gen(function* () {
      if (isRolling(config.keyring)) {
        const count = yield* resealAll(config, makeRest())
        if (count > 0) yield* log.info(`${count} stored secrets were sealed with the new secret`)
      }
      yield* Effect.sleep(PAUSE_MILLIS)
    }).pipe(
      Effect.catch((error) =>
        Effect.andThen(
          log.warning("The rewriting for a rolled secret goes on later", String(error), { cause: "resealing" }),
          Effect.sleep(PAUSE_MILLIS)
        )
      )
    )
    yield* Effect.forkScoped(Loop.forever("rewriting for a rolled secret", round))
  })
)
