/**
 * The engine on a real Postgres: the model, crashes with connections cut, several owners, idempotency, and verification
 * of edited tables.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`. Postgres has timing of
 * its own, so a replay makes the same random choices, but not always the same interleaving.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Schema } from "effect"
import { runOnce } from "../../src/engine/Accounts.ts"
import { keyId } from "../../src/engine/views/Views.ts"
import { ACCOUNTS, Clients, everythingHolds } from "./Clients.ts"
import * as Harness from "./Harness.ts"
import { ModelRun, Steps } from "./ModelRun.ts"
import * as PostgresStorage from "./PostgresStorage.ts"
import { Random, Seed } from "../support/Random.ts"
import * as Toy from "./Toy.ts"

const [ACCOUNT] = ACCOUNTS as [string]

const increment = (engine: Harness.RunningEngine) =>
  engine.accounts.run(
    ACCOUNT,
    Effect.gen(function* () {
      const counter = yield* Toy.counterIn("a")
      return (yield* Toy.add(counter!.value, 1)).count
    })
  )

describe("the engine on Postgres", () => {
  it.live.prop(
    "folds, views, memory and the model agree, also after passivation, a restart and a rebuild",
    { steps: Steps, seed: Seed, cacheBytes: Schema.Literals([0, 1500, 500_000]) },
    ({ cacheBytes, seed, steps }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const postgres = yield* PostgresStorage.make
          const storage = yield* postgres.connect("engine")
          const run = new ModelRun(seed)
          const { handler } = run
          const half = Math.ceil(steps.length / 2)
          const first = yield* Harness.startEngine(storage, { handler, cacheBytes, idleMillis: 30 })
          yield* run.steps(first, steps.slice(0, half))
          yield* run.check(first, storage)
          yield* Effect.sleep(100)
          yield* run.check(first, storage)
          yield* first.stop
          const second = yield* Harness.startEngine(storage, { handler, cacheBytes })
          yield* run.steps(second, steps.slice(half))
          yield* run.check(second, storage)
          yield* second.stop
          yield* Harness.rebuilt(storage)
          const last = yield* Harness.startEngine(storage)
          yield* run.check(last, storage)
          yield* last.stop
        })
      ),
    { arbitrary: { runs: 8, size: 40, maxShrinks: 10 } }
  )

  it.live.prop(
    "loses nothing that was acknowledged when connections are cut and the process dies",
    { seed: Seed, cuts: Schema.Literals([0, 1, 4]), lifeMillis: Schema.Literals([15, 40, 120]) },
    ({ cuts, lifeMillis, seed }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const random = new Random(seed)
          const postgres = yield* PostgresStorage.make
          const clients = new Clients(random)
          const storage = yield* postgres.connect("engine")
          for (let life = 1; life <= 2; life++) {
            const engine = yield* Harness.startEngine(storage, { cacheBytes: 5000 })
            const running = yield* Effect.forEach(Array.from({ length: 6 }), () =>
              Effect.forkDetach(clients.client(engine, 30))
            )
            for (let cut = 0; cut < cuts; cut++) {
              yield* Effect.sleep(random.below(lifeMillis))
              yield* postgres.terminate("engine")
            }
            yield* Effect.sleep(random.below(lifeMillis))
            yield* engine.kill
            for (const fiber of running) {
              const exit = fiber.pollUnsafe()
              if (exit !== undefined) yield* exit
              else yield* Effect.forkDetach(Fiber.interrupt(fiber))
            }
          }
          yield* everythingHolds(yield* postgres.connect("after"), clients)
        })
      ),
    { arbitrary: { runs: 8, maxShrinks: 5 } }
  )

  it.live.prop(
    "counts every acknowledged increment of several owners exactly once",
    { seed: Seed, count: Schema.Literals([2, 3]) },
    ({ count, seed }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const random = new Random(seed)
          const postgres = yield* PostgresStorage.make
          const storages = yield* Effect.forEach(Array.from({ length: count }), (_, i) =>
            postgres.connect(`engine${i}`)
          )
          const engines = yield* Effect.forEach(storages, (storage) => Harness.startEngine(storage))
          yield* engines[0]!.accounts.run(ACCOUNT, Toy.create("a", "plain"))
          const counts = yield* Effect.forEach(
            Array.from({ length: 60 }),
            () => Effect.andThen(Effect.sleep(random.below(60)), Effect.option(increment(random.pick(engines)))),
            { concurrency: "unbounded" }
          )
          const returned = counts.flatMap((count) => (count._tag === "Some" ? [count.value] : []))
          assert.strictEqual(new Set(returned).size, returned.length)
          const records = yield* Harness.recordsOf(storages[0]!, ACCOUNT)
          assert.strictEqual(records.length, returned.length + 1)
          assert.strictEqual(yield* increment(random.pick(engines)), returned.length + 1)
          for (const engine of engines) yield* engine.projector.drained
          yield* Harness.verified(storages[0]!)
          for (const engine of engines) yield* engine.stop
        })
      ),
    { arbitrary: { runs: 5, maxShrinks: 5 } }
  )

  it.live("answers one hundred equal requests with one effect, also from two processes at once", () =>
    Effect.gen(function* () {
      const postgres = yield* PostgresStorage.make
      const storages = [yield* postgres.connect("one"), yield* postgres.connect("two")]
      const engines = yield* Effect.forEach(storages, (storage) => Harness.startEngine(storage))
      yield* engines[0]!.accounts.run(ACCOUNT, Toy.create("a", "plain"))
      const command = Toy.command({ op: "increment", slot: "a", by: 1 })
      const replies = yield* Effect.forEach(
        Array.from({ length: 100 }),
        (_, i) => runOnce(engines[i % 2]!.accounts, ACCOUNT, Toy.request("key"), () => command),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(new Set(replies.map(({ body }) => body)).size, 1)
      assert.strictEqual(replies.filter(({ replayOf }) => replayOf === null).length, 1)
      assert.strictEqual((yield* Harness.recordsOf(storages[0]!, ACCOUNT)).length, 2)
      for (const engine of engines) yield* engine.stop
      // From the journal, by a process that did not run the command.
      const next = yield* Harness.startEngine(yield* postgres.connect("three"))
      const replay = yield* runOnce(next.accounts, ACCOUNT, Toy.request("key"), () => Effect.die(new Error("again")))
      assert.strictEqual(replay.body, replies[0]!.body)
      assert.isNotNull(replay.replayOf)
      yield* next.stop
    })
  )

  it.live("fires timers that became due while no process ran, and timers nearer than expected", () =>
    Effect.gen(function* () {
      const postgres = yield* PostgresStorage.make
      const storage = yield* postgres.connect("engine")
      const first = yield* Harness.startEngine(storage)
      const counter = yield* first.accounts.run(ACCOUNT, Toy.create("a", "plain"))
      const setTimer = Toy.command({ op: "setTimer", slot: "a", delay: 90 })
      yield* runOnce(first.accounts, ACCOUNT, Toy.request(null), () => setTimer)
      yield* first.kill
      yield* Effect.sleep(150)
      const second = yield* Harness.startEngine(storage)
      const count = Effect.map(
        second.accounts.read(ACCOUNT, counter.id),
        (read) => read?.deleted === false && (read.value as Toy.Counter).count
      )
      for (let i = 0; i < 5000 && (yield* count) !== 1 + Toy.TIMER_INCREMENT; i++) yield* Effect.sleep(20)
      assert.strictEqual(yield* count, 1 + Toy.TIMER_INCREMENT)
      yield* runOnce(second.accounts, ACCOUNT, Toy.request(null), () => setTimer)
      for (let i = 0; i < 5000 && (yield* count) !== 2 + 2 * Toy.TIMER_INCREMENT; i++) yield* Effect.sleep(20)
      assert.strictEqual(yield* count, 2 + 2 * Toy.TIMER_INCREMENT)
      yield* second.projector.drained
      yield* Harness.verified(storage)
      yield* second.stop
    })
  )

  it.live("is verified in a snapshot while it goes on", () =>
    Effect.gen(function* () {
      const postgres = yield* PostgresStorage.make
      const engine = yield* Harness.startEngine(yield* postgres.connect("engine"))
      yield* engine.accounts.run(ACCOUNT, Toy.create("a", "plain"))
      yield* Effect.replicateEffect(increment(engine), 20, { discard: true })
      let ended = false
      const writing = yield* Effect.forkChild(
        Effect.whileLoop({ while: () => !ended, body: () => increment(engine), step: () => {} })
      )
      const beside = yield* postgres.connect("beside")
      const seen: Array<number> = []
      // Small pages, so that many records are written between the first and the last.
      for (let i = 0; i < 5; i++) {
        const report = yield* Harness.verification(beside, { page: 7 })
        assert.deepStrictEqual(report.problems, [])
        seen.push(report.records)
      }
      ended = true
      yield* Fiber.join(writing)
      assert.isAbove(seen.at(-1)!, seen[0]!)
      yield* engine.stop
    })
  )

  it.live("is reported by verification after an edit of its tables, and rebuilds its views", () =>
    Effect.gen(function* () {
      const postgres = yield* PostgresStorage.make
      const storage = yield* postgres.connect("engine")
      const engine = yield* Harness.startEngine(storage)
      yield* runOnce(engine.accounts, ACCOUNT, Toy.request("key"), () =>
        Toy.command({ op: "create", slot: "a", name: "plain" })
      )
      yield* runOnce(engine.accounts, ACCOUNT, Toy.request("two"), () =>
        Toy.command({ op: "increment", slot: "a", by: 1 })
      )
      const later = Effect.map(Harness.now, (now) => now + 3_600_000)
      const timer = Effect.flatMap(later, (dueAt) =>
        runOnce(engine.accounts, ACCOUNT, Toy.request(null), () =>
          Toy.command({ op: "setTimer", slot: "a", delay: dueAt })
        )
      )
      yield* timer
      yield* engine.projector.drained
      yield* engine.stop
      yield* Harness.verified(storage)
      const problem = Effect.map(Harness.verification(storage), ({ problems }) => problems.join("\n"))
      const edits: ReadonlyArray<readonly [string, string]> = [
        [`UPDATE objects SET term_numbers = term_numbers[2:] WHERE kind = 'counter'`, "documents ctr_"],
        [`UPDATE objects SET measure = measure + 1 WHERE kind = 'counter'`, "documents ctr_"],
        [`UPDATE objects SET tallies = replace(tallies, ',1,', ',2,') WHERE kind = 'counter'`, "documents ctr_"],
        [`UPDATE objects SET tallies = 'garbage' WHERE kind = 'counter'`, "documents ctr_"],
        ...[1, 24].flatMap((hours): ReadonlyArray<readonly [string, string]> => {
          const [of, span] = [(key: string) => `key = '${key}' AND hours = ${hours}`, String(hours).padStart(2, "0")]
          return [
            [`UPDATE tallies SET amount = amount + 1 WHERE ${of("counters")}`, `tallies ${span} 0000000000 counters`],
            [`UPDATE tallies SET hour = 48 WHERE ${of("slot a")}`, `tallies ${span} 00000000`],
            [`DELETE FROM tallies WHERE ${of("counters")}`, `tallies ${span} 0000000000 counters`]
          ]
        }),
        [`UPDATE checkpoints SET ids_ahead = ids_ahead + 1`, "how far they are"],
        [`UPDATE objects SET document_at = document_at + 1 WHERE kind = 'counter'`, "documents ctr_"],
        [`UPDATE objects SET labels = '{"slot":"b"}' WHERE kind = 'counter'`, "documents ctr_"],
        [`DELETE FROM events WHERE type = 'counter.created'`, "events counter.created evt_"],
        [`UPDATE timers SET due_at = due_at + 1`, "timers timer_ctr_"],
        [`UPDATE idempotency SET version = 98 WHERE key = 'two'`, `keys ${keyId({ version: 98 })}`],
        [
          `INSERT INTO idempotency SELECT account, key, 99, at FROM idempotency LIMIT 1`,
          `keys ${keyId({ version: 99 })}`
        ],
        [`UPDATE idempotency SET key = 'three' WHERE key = 'two'`, "keys 0"]
      ]
      for (const [edit, named] of edits) {
        yield* postgres.edit(edit)
        assert.include(yield* problem, named, edit)
        yield* Harness.rebuilt(storage)
        yield* Harness.verified(storage)
      }
      yield* postgres.edit(
        `UPDATE journal SET record = set_byte(record, 99, get_byte(record, 99) # 1) WHERE version = 1`
      )
      assert.include(yield* problem, `Record 1 of account ${ACCOUNT} is not what was written`)
      yield* postgres.edit(`DELETE FROM journal WHERE version = 1`)
      assert.include(yield* problem, `Record 1 of account ${ACCOUNT} is missing`)
      yield* postgres.edit(`INSERT INTO events VALUES ('${ACCOUNT}', 'evt_invented', 'invented', 3)`)
      yield* postgres.edit(`UPDATE idempotency SET key = 'invented', version = 3 WHERE key = 'two'`)
      // Rows of the missing record are not reported as rows without a record.
      const after = yield* Harness.startEngine(storage)
      const events = (type: string) => after.accounts.events(ACCOUNT, { type: { exact: type }, limit: 1 })
      const replay = (key: string) =>
        runOnce(after.accounts, ACCOUNT, Toy.request(key), () => Toy.command({ op: "increment", slot: "a", by: 1 }))
      const lost = `Record 1 of account ${ACCOUNT} is missing, but the views have it`
      const reads: ReadonlyArray<readonly [Effect.Effect<unknown, unknown>, string]> = [
        [after.accounts.read(ACCOUNT, "slot_a"), lost],
        [after.accounts.list(ACCOUNT, { kind: Toy.SLOT.name, limit: 1 }), lost],
        [events("counter.created"), lost],
        [replay("key"), lost],
        [events("invented"), `Record 3 of account ${ACCOUNT} does not hold evt_invented, but the views point there`],
        [
          replay("invented"),
          `Record 3 of account ${ACCOUNT} does not hold the answer to a key, but the views point there`
        ]
      ]
      for (const [read, problem] of reads) {
        const exit = yield* Effect.exit(read)
        assert.include(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "", problem)
      }
      yield* after.stop
    })
  )
})
