/**
 * Erasures on a restored backup, before a service runs on it. People whose data was erased after the backup was made
 * are erased again. No timer fires here; an erasure that a payment in progress stands against is left to the service.
 */
import { Effect, Layer } from "effect"
import { ApiVersions } from "../domain/ApiVersions.ts"
import { Accounts, type Unavailable } from "../engine/Accounts.ts"
import { RunningTime } from "../engine/actor/RunningTime.ts"
import { Postponed, TimerHandler } from "../engine/actor/Timers.ts"
import { type ErasedPerson, noting } from "../engine/Erasures.ts"
import { AccountNumbers } from "../engine/log/AccountNumbers.ts"
import type { AccountId } from "../engine/log/Document.ts"
import type { ErasureKey } from "../engine/log/Erased.ts"
import { Journal, type StorageFailure } from "../engine/log/Journal.ts"
import { Placement } from "../engine/process/Placement.ts"
import { WakeUp } from "../engine/process/WakeUp.ts"
import { CommitFeed } from "../engine/views/CommitFeed.ts"
import { INSTALLATION } from "./shared/AccountIds.ts"
import * as CustomerErasure from "./erasure/CustomerErasure.ts"
import * as Erasers from "./erasure/Erasers.ts"
import * as Formats from "./Formats.ts"
import { layerEventVersions } from "./merchants/Merchants.ts"
import * as Simulator from "./processing/Simulator.ts"

/** Erasures that one record notes, at most. */
const NOTED_MAX = 10_000

const layer = Accounts.layer().pipe(
  Layer.provide([WakeUp.layer, CommitFeed.layer, Placement.layerSole, RunningTime.layer]),
  Layer.provide(Layer.succeed(TimerHandler, () => Effect.fail(new Postponed()))),
  // The ids that are made here are those of events, which are never looked up alone.
  Layer.provide([AccountNumbers.layerNone, Layer.provide(layerEventVersions, ApiVersions.layer())]),
  Layer.provideMerge(Layer.merge(Formats.layer, Simulator.layer))
)

/**
 * Notes all replaced records once more. In a backup that was cut at a time, the records that noted them may be missing.
 */
const noteAgain = Effect.fnUntraced(function* (
  key: ErasureKey
): Effect.fn.Return<void, Unavailable | StorageFailure, Accounts | Journal> {
  const accounts = yield* Accounts
  const journal = yield* Journal
  const replaced = new Map<AccountId, Array<readonly [number, string]>>()
  for (const { account, erased, version } of yield* journal.erased) {
    const rows = replaced.get(account)
    if (rows === undefined) replaced.set(account, [[version, erased]])
    else rows.push([version, erased])
  }
  for (const [account, all] of replaced) {
    for (let i = 0; i < all.length; i += NOTED_MAX) {
      yield* accounts.run(account, noting(key, account, all.slice(i, i + NOTED_MAX)))
    }
  }
})

export interface Options {
  readonly key: ErasureKey
  readonly people: ReadonlyArray<Pick<ErasedPerson, "account" | "id">>
  /** Whether the restored accounts end before the backup does. */
  readonly isCut: boolean
}

/** Erases people once more who are in the restored accounts. Returns their number. */
export const eraseAgain = ({ isCut, key, people }: Options) =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const erase = yield* Erasers.make(key, { pauses: () => Effect.void, onBegin: () => Effect.void })
    if (isCut) yield* noteAgain(key)
    let count = 0
    // The installation's account names the addresses of its people: it comes last.
    for (const { account, id } of people.toSorted(
      (a, b) => Number(a.account === INSTALLATION) - Number(b.account === INSTALLATION)
    )) {
      if (Erasers.isOfTeam(id)) {
        yield* erase(account, id)
        count++
        continue
      }
      const { isDeleted } = yield* CustomerErasure.standingOf(account, id)
      const begun = yield* Effect.result(accounts.run(account, CustomerErasure.begin(id, { isDeleted, payment: null })))
      if (begun._tag === "Success") {
        yield* erase(account, id)
        count++
      } else if (begun.failure._tag === "Unavailable") return yield* begun.failure
    }
    return count
  }).pipe(Effect.provide(layer))
