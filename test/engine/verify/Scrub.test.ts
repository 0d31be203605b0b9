/**
 * Scrubbing checks every account once per period, names problems, and gives way to requests (semantics storage.scrub).
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, type Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import { performance } from "node:perf_hooks"
import { StorageFailure } from "../../../src/engine/log/Journal.ts"
import * as Scrub from "../../../src/engine/verify/Scrub.ts"
import { verifyAccount } from "../../../src/engine/verify/Verify.ts"
import { Views, type ViewsShape } from "../../../src/engine/views/Views.ts"
import * as Harness from "../Harness.ts"
import * as Toy from "../Toy.ts"

const ACCOUNTS = ["mer_1:test", "mer_2:test", "mer_3:live"]
const DAY = 86_400_000
const PERIOD = 3 * DAY

/** Storage with a document and its event in each account. */
const filled = Effect.gen(function* () {
  yield* Harness.startClock
  const storage = yield* Harness.storageInMemory
  const engine = yield* Harness.startEngine(storage)
  for (const account of ACCOUNTS) yield* engine.accounts.run(account, Toy.create("a", "a name that nobody logs"))
  yield* engine.stop
  return storage
})

/** Lines of the log. */
const logged = () => {
  const lines: Array<string> = []
  const logger = Logger.make(({ message }) => lines.push([message].flat().map(String).join(": ")))
  return { lines, layer: Logger.layer([logger]) }
}

const scrubbing = (
  storage: Harness.Storage,
  isHere: (account: string) => boolean,
  check: Parameters<typeof Scrub.forever>[0]["check"],
  layer: Layer.Layer<never>,
  onRound: (round: Scrub.Round) => void = () => {}
) => {
  const { accounts } = Harness.journalOf(storage)
  return Effect.forkScoped(Effect.provide(Scrub.forever({ period: PERIOD, accounts, isHere, check, onRound }), layer))
}

describe("scrubbing", () => {
  it.effect("skips an account that another process serves at its turn", () =>
    Effect.gen(function* () {
      const visits: Array<string> = []
      const { layer, lines } = logged()
      const check = (account: string) => Effect.sync(() => ({ records: visits.push(account), problem: null }))
      const [, elsewhere] = ACCOUNTS
      yield* scrubbing(yield* filled, (account) => account !== elsewhere, check, layer)
      yield* TestClock.adjust("6 minutes")
      yield* Harness.pass(PERIOD, DAY / 8)
      assert.deepStrictEqual(
        visits.slice(0, 2).toSorted(),
        ACCOUNTS.filter((account) => account !== elsewhere)
      )
      assert.include(lines, "2 accounts were checked, 3 records; 0 have a problem")
    })
  )

  it.effect("checks every account once per period, and continues after problems and failures", () =>
    Effect.gen(function* () {
      const storage = yield* filled
      const views = Harness.viewsOf(storage)
      const visits: Array<string> = []
      const [, wrong, failing] = ACCOUNTS as [string, string, string]
      // Like a deleted event.
      const scan: ViewsShape["scan"] = (account, table, after, limit) =>
        account === wrong && table === "events" ? Effect.succeed([]) : views.scan(account, table, after, limit)
      const damaged = Context.add(storage, Views, { ...views, scan })
      const { layer, lines } = logged()
      const check = (account: string) =>
        Effect.suspend(() => {
          visits.push(account)
          return account === failing && visits.length <= ACCOUNTS.length
            ? Effect.fail(new StorageFailure({ cause: new Error("not now") }))
            : verifyAccount(account, Scrub.gently())
        }).pipe(Effect.provideContext(damaged), Effect.provide(Harness.formatsOf([Toy.COUNTER])))
      const rounds: Array<Scrub.Round> = []
      yield* scrubbing(
        storage,
        () => true,
        check,
        layer,
        (round) => rounds.push(round)
      )
      yield* TestClock.adjust("4 minutes")
      assert.isEmpty(visits)
      yield* Harness.pass(5 * 60_000, 1000)
      assert.lengthOf(visits, 1)
      yield* Harness.pass(PERIOD - DAY / 2, DAY / 8)
      assert.deepStrictEqual(visits.toSorted(), ACCOUNTS)
      const problems = () => lines.filter((line) => line.startsWith("A scrub has found damage: "))
      assert.lengthOf(problems(), 1)
      assert.match(problems()[0]!, /: events counter.created evt_\w+ of account mer_2:test is in the journal, but not/)
      assert.include(lines, `Account ${failing} could not be checked: The storage failed: not now`)
      yield* Harness.pass(PERIOD, DAY / 8)
      assert.deepStrictEqual(visits.slice(3, 6).toSorted(), ACCOUNTS)
      assert.include(lines, "3 accounts were checked, 2 records; 1 have a problem")
      assert.include(lines, "3 accounts were checked, 3 records; 1 have a problem")
      assert.notInclude(lines.join("\n"), "nobody logs")
      assert.deepStrictEqual(
        rounds.map(({ accounts, problems }) => ({ accounts, problems })),
        [
          { accounts: 3, problems: 1 },
          { accounts: 3, problems: 1 }
        ]
      )
    })
  )

  it.live("rests ten times as long as it works, and longer while the event loop is busy", () =>
    Effect.gen(function* () {
      const rest = Effect.gen(function* () {
        const { pause } = Scrub.gently()
        const end = performance.now() + 20
        while (performance.now() < end);
        const before = performance.now()
        yield* pause
        return performance.now() - before
      })
      assert.isAtLeast(yield* rest, 170)
      const busy = setInterval(() => {
        const end = performance.now() + 20
        while (performance.now() < end);
      }, 1)
      assert.isAtLeast(
        yield* Effect.ensuring(
          rest,
          Effect.sync(() => clearInterval(busy))
        ),
        2000
      )
    })
  )
})
