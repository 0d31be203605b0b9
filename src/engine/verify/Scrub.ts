/**
 * Scrubbing: verification of what nobody asks for, beside requests. Every account is gone through once in a period, so
 * that what a disk has lost is known while there are backups from before.
 *
 * It works for a tenth of the time, on few records at once and in little memory, and waits while requests keep the
 * event loop busy. An account is still read in a snapshot: of a large one, that stays open for minutes. They come in
 * an order by chance, and a start begins anew: so none is always the one that a restart has left out.
 */
import { Clock, Effect, Random } from "effect"
import { performance } from "node:perf_hooks"
import type { AccountId, Millis } from "../log/Document.ts"
import type { StorageFailure } from "../log/Journal.ts"
import * as Loop from "../process/Loop.ts"
import type { PlacementShape } from "../process/Placement.ts"
import type { Manner, Outcome } from "./Verify.ts"

/** Fingerprints of 32 MB. */
const ROWS_MAX = 500_000
/** Worked on in a millisecond or two. */
const PAGE = 50
/** It rests for so many times as long as it has worked. */
const REST = 9
const REST_MILLIS_MAX = 2000
/** Of the time in which it has rested, requests have taken this much. */
const BUSY = 0.7
const GIVE_WAY_MILLIS = 250
/** Under a load that does not end it goes on all the same, a page every five seconds. */
const GIVE_WAY_MAX = 20

/** Leaves time to whatever else this process has to do. */
export const gently = (): Manner => {
  let since = performance.now()
  const pause = Effect.gen(function* () {
    let rest = Math.min(Math.max((performance.now() - since) * REST, 1), REST_MILLIS_MAX)
    for (let times = 0; times <= GIVE_WAY_MAX; times++) {
      const before = performance.eventLoopUtilization()
      yield* Effect.sleep(rest)
      if (performance.eventLoopUtilization(before).utilization < BUSY) break
      rest = GIVE_WAY_MILLIS
    }
    since = performance.now()
  })
  return { rowsMax: ROWS_MAX, page: PAGE, pause }
}

/** A start, and whoever measures how fast Till is, has other things to do first. */
const DELAY_MILLIS = 5 * 60_000
const DAY_MILLIS = 86_400_000

/**
 * Goes through all accounts that are served here, again and again, and logs what is wrong: account, version and place,
 * never data.
 */
export const forever = (
  period: Millis,
  accounts: Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>,
  isHere: PlacementShape["isHere"],
  check: (account: AccountId) => Effect.Effect<Outcome, { readonly message: string }>
): Effect.Effect<never> => {
  const checked = (account: AccountId) =>
    check(account).pipe(
      Effect.tap(({ problem }) =>
        problem === null ? Effect.void : Effect.logError("The database is not as it should be", problem)
      ),
      Effect.catch(({ message }) =>
        Effect.as(Effect.logWarning(`Account ${account} could not be checked`, message), UNCHECKED)
      )
    )
  const round = Effect.gen(function* () {
    const beganAt = yield* Clock.currentTimeMillis
    const found = yield* Effect.catch(accounts, ({ message }) =>
      Effect.as(Effect.logWarning("The accounts could not be checked", message), [])
    )
    const order = yield* Random.shuffle(found)
    let count = 0
    let records = 0
    let problems = 0
    for (const [i, account] of order.entries()) {
      yield* sleepUntil(beganAt + (period * i) / order.length)
      if (!isHere(account)) continue
      count++
      const outcome = yield* checked(account)
      records += outcome.records
      if (outcome.problem !== null) problems++
    }
    yield* Effect.logInfo(`${count} accounts were checked, ${records} records; ${problems} have a problem`)
    yield* sleepUntil(beganAt + period)
  })
  return Effect.andThen(Effect.sleep(DELAY_MILLIS), Loop.forever("scrubbing", round))
}

const UNCHECKED: Outcome = { records: 0, problem: null }

/** A timer does not reach as far as a period may. */
const sleepUntil = Effect.fnUntraced(function* (time: Millis) {
  for (;;) {
    const left = time - (yield* Clock.currentTimeMillis)
    if (left <= 0) return
    yield* Effect.sleep(Math.min(left, DAY_MILLIS))
  }
})
