/**
 * Scrubbing: background verification of all accounts, once per period. Data that a disk has lost is detected while
 * backups from before the loss still exist.
 *
 * It works a tenth of the time, on few records at a time and in little memory, and waits while requests keep the event
 * loop busy. Each account is read in a snapshot; for a large one, that stays open for minutes. Accounts come in random
 * order, because a restart begins anew: no account is left out by every restart.
 */
import { Clock, Effect, Random } from "effect"
import type { AccountId, Millis } from "../log/Document.ts"
import type { StorageFailure } from "../log/Journal.ts"
import { measureUtilisation } from "../process/EventLoop.ts"
import { logOf } from "../process/Log.ts"
import * as Loop from "../process/Loop.ts"
import * as Metrics from "../process/Metrics.ts"
import type { PlacementShape } from "../process/Placement.ts"
import type { Manner, Outcome } from "./Verify.ts"

const log = logOf("engine")

/** Digests in memory at a time: 32 MB. */
const ROWS_MAX = 500_000
/** Records or rows per page: one or two milliseconds of work. */
const PAGE = 50
/** Length of a rest, as a multiple of the work before it. */
const REST = 9
const REST_MILLIS_MAX = 2000
/** Event-loop utilisation during a rest from which the scrub rests again. */
const BUSY = 0.7
const GIVE_WAY_MILLIS = 250
/** Further rests in a row, at most: under a continuous load a page is verified every five seconds. */
const GIVE_WAY_MAX = 20

/** Verifies slowly, with rests that leave the event loop to requests. */
export const gently = (): Manner => {
  let since = performance.now()
  const pause = Effect.gen(function* () {
    let rest = Math.min(Math.max((performance.now() - since) * REST, 1), REST_MILLIS_MAX)
    for (let times = 0; times <= GIVE_WAY_MAX; times++) {
      const utilisation = measureUtilisation()
      yield* Effect.sleep(rest)
      if (utilisation() < BUSY) break
      rest = GIVE_WAY_MILLIS
    }
    since = performance.now()
  })
  return { rowsMax: ROWS_MAX, page: PAGE, pause }
}

/** Pause before the first scrub, so that it disturbs neither the start nor a short benchmark. */
const DELAY_MILLIS = 5 * 60_000
const DAY_MILLIS = 86_400_000

/** The result of a round: when it ended, and how many accounts it checked and found damaged. */
export interface Round {
  readonly at: Millis
  readonly accounts: number
  readonly problems: number
}

interface Work {
  /** Length of a round, in milliseconds. */
  readonly period: Millis
  readonly accounts: Effect.Effect<ReadonlyArray<AccountId>, StorageFailure>
  readonly isHere: PlacementShape["isHere"]
  readonly check: (account: AccountId) => Effect.Effect<Outcome, { readonly message: string }>
  readonly onRound: (round: Round) => void
}

/** Verifies all accounts served here, in rounds. Logs account, version and place, no data. */
export const forever = ({ accounts, check, isHere, onRound, period }: Work): Effect.Effect<never> => {
  const checked = (account: AccountId) =>
    check(account).pipe(
      Effect.tap(({ problem }) =>
        problem === null ? Effect.void : log.error("A scrub has found damage", problem, { cause: problem })
      ),
      Effect.catch(({ message }) =>
        Effect.as(log.warning(`Account ${account} could not be checked`, message, { cause: "not checked" }), UNCHECKED)
      )
    )
  const round = (countOutcome: (outcome: ReadonlyArray<string>) => void) =>
    Effect.gen(function* () {
      const beganAt = yield* Clock.currentTimeMillis
      const found = yield* Effect.catch(accounts, ({ message }) =>
        Effect.as(log.warning("The accounts could not be checked", message), [])
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
        countOutcome([outcome === UNCHECKED ? "unchecked" : outcome.problem === null ? "intact" : "damaged"])
      }
      onRound({ at: yield* Clock.currentTimeMillis, accounts: count, problems })
      yield* log.info(`${count} accounts were checked, ${records} records; ${problems} have a problem`, undefined, {
        cause: "checked"
      })
      yield* sleepUntil(beganAt + period)
    })
  const counting = Metrics.counters(CHECKED, [["intact"], ["damaged"], ["unchecked"]])
  return Effect.flatMap(counting, (countOutcome) =>
    Effect.andThen(Effect.sleep(DELAY_MILLIS), Loop.forever("scrubbing", round(countOutcome)))
  )
}

const CHECKED = {
  name: "till_scrub_accounts_total",
  description: "Accounts that scrubs have checked, by the outcome.",
  labels: ["outcome"]
}

const UNCHECKED: Outcome = { records: 0, problem: null }

/** Sleeps in steps, because a period may be longer than a timer can be. */
const sleepUntil = Effect.fnUntraced(function* (time: Millis) {
  for (;;) {
    const left = time - (yield* Clock.currentTimeMillis)
    if (left <= 0) return
    yield* Effect.sleep(Math.min(left, DAY_MILLIS))
  }
})
