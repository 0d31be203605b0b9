/**
 * The engine on a Postgres that hangs (semantics storage.hang): no request waits for ever, and no write is lost or
 * doubled.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Option, Schedule } from "effect"
import { runOnce } from "../../src/engine/Accounts.ts"
import { project } from "../../src/engine/views/Projection.ts"
import type { ViewsShape } from "../../src/engine/views/Views.ts"
import { HangLimits, StatementLimit } from "../../src/postgres/StatementLimit.ts"
import { ACCOUNTS } from "./Clients.ts"
import * as Harness from "./Harness.ts"
import * as PostgresStorage from "./PostgresStorage.ts"
import * as Toy from "./Toy.ts"

const [ACCOUNT, OTHER] = ACCOUNTS as [string, string]
const LIMIT_MILLIS = 300

const increment = (engine: Harness.RunningEngine) =>
  engine.accounts.run(
    ACCOUNT,
    Effect.gen(function* () {
      const counter = yield* Toy.counterIn("a")
      return (yield* Toy.add(counter!.value, 1)).count
    })
  )

const assertUnavailable = (exit: Exit.Exit<unknown, { readonly _tag: string }>) => {
  const reason = Exit.isFailure(exit) ? exit.cause.reasons.find(({ _tag }) => _tag === "Fail") : undefined
  assert.strictEqual(reason?._tag === "Fail" ? reason.error._tag : undefined, "Unavailable")
}

/** Increments as soon as the account is available again. */
const incrementOnceBack = (engine: Harness.RunningEngine) =>
  Effect.retry(increment(engine), {
    schedule: Schedule.spaced("50 millis"),
    while: ({ _tag }) => _tag === "Unavailable"
  })

/** An engine, with its account, whose connections to Postgres lead through a proxy. */
const startBehindProxy = Effect.gen(function* () {
  const postgres = yield* PostgresStorage.make
  const { proxy, storage } = yield* postgres.connectThroughProxy("engine")
  const engine = yield* Harness.startEngine(storage)
  const { id } = yield* engine.accounts.run(ACCOUNT, Toy.create("a", "plain"))
  return { engine, id, proxy, storage }
})
const startWithLimit = Effect.provideService(startBehindProxy, StatementLimit, LIMIT_MILLIS)

/** An engine without time limits for statements, which detects a hanging database quickly. */
const startWithBreaker = startBehindProxy.pipe(
  Effect.provideService(StatementLimit, 1_000_000),
  Effect.provideService(HangLimits, { silentMillis: 200, probeMillis: 200, pauseMillis: 50 })
)

const LOCKED_OUT = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
const VIEWS = "checkpoints, objects, idempotency, timers, subscriptions, deliveries"
const address = { account: ACCOUNT, id: "a" }

/** Queries of the views by commands, activations and shared fibers. */
const urgent = (views: ViewsShape): ReadonlyArray<Effect.Effect<unknown, { readonly message: string }>> => [
  views.checkpoint(ACCOUNT),
  views.documents([address]),
  views.keys([address]),
  views.timers(ACCOUNT, 1),
  views.nextTimers(1, [], null),
  views.timersNamed("expire", [0], 0),
  views.timerCounts("expire"),
  views.subscriptions(ACCOUNT),
  views.newest([{ account: ACCOUNT, kind: "counter", limit: 1 }]),
  views.keepNumber("a", 1),
  views.accountsNumbered(1),
  views.accountsUnnumbered(1),
  views.pendingDeliveries([address]),
  views.takeDeliveries({ now: 0, limit: 1, busy: [], partitions: [0], leasedUntil: 0 }),
  views.nextDelivery([], [0]),
  views.apply({ ...project([]), checkpoints: [{ account: ACCOUNT, from: 0, to: 1, ahead: 0 }] }, 0),
  views.expireKeys(0, 1),
  views.expireEvents(ACCOUNT, 0, 1)
]

describe("the engine on a Postgres that hangs", () => {
  it.live("gives up statements of the views that others wait for, but not a wipe", () =>
    Effect.gen(function* () {
      const postgres = yield* PostgresStorage.make
      const storage = yield* Effect.provideService(postgres.connect("engine"), StatementLimit, LIMIT_MILLIS)
      const views = Harness.viewsOf(storage)
      const scope = yield* Effect.scope
      yield* views.checkpoint(ACCOUNT)
      const sweep = { account: ACCOUNT, wiped: true, unsubscribed: [], clock: 0 }
      const wipe = views.apply(
        { ...project([]), checkpoints: [{ account: ACCOUNT, from: 0, to: 1, ahead: 0 }], sweep },
        0
      )
      const wiping = yield* postgres.locked(
        VIEWS,
        Effect.gen(function* () {
          const wiping = yield* Effect.forkIn(wipe, scope, { startImmediately: true })
          for (const statement of urgent(views)) {
            const { message } = yield* Effect.flip(statement)
            assert.strictEqual(message, `The storage failed: No answer within ${LIMIT_MILLIS} ms`)
          }
          // Given-up statements are canceled shortly after: none may run before the wipe when the lock is gone.
          yield* Effect.repeat(postgres.readRows<{ pid: number }>(LOCKED_OUT), {
            until: (waiting) => waiting.length <= 1,
            schedule: Schedule.spaced("20 millis")
          })
          return wiping
        })
      )
      assert.deepStrictEqual(yield* Fiber.join(wiping), [])
    })
  )

  it.live("gives up a write whose statement waits, cancels the statement, and goes on", () =>
    Effect.gen(function* () {
      const postgres = yield* PostgresStorage.make
      const storage = yield* Effect.provideService(postgres.connect("engine"), StatementLimit, LIMIT_MILLIS)
      const engine = yield* Harness.startEngine(storage)
      yield* engine.accounts.run(ACCOUNT, Toy.create("a", "plain"))
      const before = yield* increment(engine)
      yield* postgres.locked(
        "journal",
        Effect.gen(function* () {
          assertUnavailable(yield* Effect.exit(increment(engine)))
          // The account starts anew, which needs the journal too.
          assertUnavailable(yield* Effect.exit(increment(engine)))
        })
      )
      // The statements were canceled, not only abandoned: none runs after the lock is gone.
      assert.strictEqual(yield* incrementOnceBack(engine), before + 1)
      yield* engine.projector.drained
      yield* engine.stop
      yield* Harness.verified(storage)
    })
  )

  it.live("gives up a command whose document cannot be loaded; one that is in memory needs no views", () =>
    Effect.gen(function* () {
      const postgres = yield* PostgresStorage.make
      const storage = yield* Effect.provideService(postgres.connect("engine"), StatementLimit, LIMIT_MILLIS)
      const first = yield* Harness.startEngine(storage)
      yield* first.accounts.run(ACCOUNT, Toy.create("a", "plain"))
      const before = yield* increment(first)
      yield* first.projector.drained
      assert.strictEqual(yield* postgres.locked("objects", increment(first)), before + 1)
      yield* first.projector.drained
      yield* first.stop
      const second = yield* Harness.startEngine(storage)
      yield* postgres.locked("objects", Effect.map(Effect.exit(increment(second)), assertUnavailable))
      assert.strictEqual(yield* incrementOnceBack(second), before + 2)
      yield* second.projector.drained
      yield* second.stop
      yield* Harness.verified(storage)
    })
  )

  it.live("fires its timers over new connections after the old ones drop all data", () =>
    Effect.gen(function* () {
      const { engine, id, proxy, storage } = yield* startWithLimit
      yield* runOnce(engine.accounts, ACCOUNT, Toy.request(null), () =>
        Toy.command({ op: "setTimer", slot: "a", delay: 600 })
      )
      yield* engine.projector.drained
      proxy.swallow()
      // Until then no read shows the state that the timer is about to change.
      const count = Effect.map(
        Effect.option(engine.accounts.read(ACCOUNT, id)),
        (read) => Option.isSome(read) && read.value?.deleted === false && (read.value.value as Toy.Counter).count
      )
      for (let i = 0; i < 2000 && (yield* count) !== 1 + Toy.TIMER_INCREMENT; i++) yield* Effect.sleep(50)
      assert.strictEqual(yield* count, 1 + Toy.TIMER_INCREMENT)
      yield* engine.projector.drained
      yield* engine.stop
      yield* Harness.verified(storage)
    })
  )

  it.live("counts a write that arrives after it was given up as a late write, and not as a fork of the account", () =>
    Effect.gen(function* () {
      const { engine, proxy, storage } = yield* startWithLimit
      const before = yield* increment(engine)
      proxy.stall()
      // The request to cancel cannot reach the server either, so the connection is closed.
      assertUnavailable(yield* Effect.exit(increment(engine)))
      proxy.resume()
      yield* incrementOnceBack(engine)
      const after = yield* incrementOnceBack(engine)
      // The late write may have succeeded or not.
      assert.include([before + 2, before + 3], after)
      yield* engine.projector.drained
      yield* engine.stop
      yield* Harness.verified(storage)
    })
  )

  it.live("sends it nothing while it hangs: refuses writes, reads from memory, and then continues", () =>
    Effect.gen(function* () {
      const { engine, id, proxy, storage } = yield* startWithBreaker
      const { accounts } = engine
      const { id: other } = yield* accounts.run(OTHER, Toy.create("a", "plain"))
      const before = yield* increment(engine)
      proxy.stall()
      // The first write detects the hang; its outcome is unknown, so the account starts anew.
      assertUnavailable(yield* Effect.exit(increment(engine)))
      for (let i = 0; i < 20; i++) {
        assertUnavailable(yield* Effect.exit(increment(engine)))
        assertUnavailable(yield* Effect.exit(accounts.read(ACCOUNT, id)))
        // An account without running commands stays in memory; its commands are refused before they change anything.
        assertUnavailable(yield* Effect.exit(accounts.run(OTHER, Toy.create(`b${i}`, "plain"))))
        assert.isDefined(yield* accounts.read(OTHER, other))
      }
      proxy.resume()
      yield* incrementOnceBack(engine)
      const after = yield* incrementOnceBack(engine)
      // The first write may have succeeded or not; the others have not.
      assert.include([before + 2, before + 3], after)
      const { id: next } = yield* accounts.run(OTHER, Toy.create("b", "plain"))
      yield* engine.projector.drained
      assert.deepStrictEqual(
        (yield* accounts.list(OTHER, { kind: Toy.COUNTER.name, limit: 10 })).documents.map(({ id }) => id),
        [next, other]
      )
      yield* engine.stop
      yield* Harness.verified(storage)
    })
  )

  it.live("loses time with one write if the network drops all connections, and not with one for each of them", () =>
    Effect.gen(function* () {
      // A connection is closed five seconds after it was given up.
      const limitMillis = 8000
      const { engine, proxy, storage } = yield* startBehindProxy.pipe(
        Effect.provideService(StatementLimit, limitMillis),
        Effect.provideService(HangLimits, { silentMillis: 200, probeMillis: 200, pauseMillis: 50 })
      )
      const before = yield* increment(engine)
      yield* engine.projector.drained
      const views = Harness.viewsOf(storage)
      yield* Effect.all(
        Array.from({ length: 30 }, () => views.newest([{ account: ACCOUNT, kind: "counter", limit: 1 }])),
        { concurrency: "unbounded" }
      )
      proxy.swallow()
      assertUnavailable(yield* Effect.exit(increment(engine)))
      // A busy machine may look like a hanging database, but not for as long as another write's limit.
      const after = yield* Effect.timeout(incrementOnceBack(engine), limitMillis)
      assert.include([before + 1, before + 2], after)
      yield* engine.projector.drained
      yield* engine.stop
      yield* Harness.verified(storage)
    })
  )

  it.live("treats it as hanging while a lock blocks reads of the journal", () =>
    Effect.gen(function* () {
      const postgres = yield* PostgresStorage.make
      const storage = yield* postgres
        .connect("engine")
        .pipe(
          Effect.provideService(StatementLimit, 1_000_000),
          Effect.provideService(HangLimits, { silentMillis: 200, probeMillis: 200, pauseMillis: 50 })
        )
      const engine = yield* Harness.startEngine(storage)
      yield* engine.accounts.run(ACCOUNT, Toy.create("a", "plain"))
      const before = yield* increment(engine)
      yield* postgres.locked(
        "journal",
        Effect.gen(function* () {
          for (let i = 0; i < 5; i++) assertUnavailable(yield* Effect.exit(increment(engine)))
        })
      )
      // The first write may have happened before it was canceled.
      assert.include([before + 1, before + 2], yield* incrementOnceBack(engine))
      yield* engine.projector.drained
      yield* engine.stop
      yield* Harness.verified(storage)
    })
  )
})
