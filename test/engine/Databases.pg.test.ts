/** Accounts in two databases, which are of a real Postgres unless only their owners matter, behind one door. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, References, Schedule, Scope } from "effect"
import { AccountNumbers } from "../../src/engine/log/AccountNumbers.ts"
import { Accounts } from "../../src/engine/Accounts.ts"
import { Databases } from "../../src/engine/Databases.ts"
import { Deliveries } from "../../src/engine/Deliveries.ts"
import type { EventVersionsShape } from "../../src/engine/log/Events.ts"
import { EventVersions } from "../../src/engine/log/Events.ts"
import { partitionOf, PARTITIONS, Placement } from "../../src/engine/process/Placement.ts"
import { Projector } from "../../src/engine/actor/Projector.ts"
import { TimerHandler } from "../../src/engine/actor/Timers.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import { HangLimits, StatementLimit } from "../../src/postgres/StatementLimit.ts"
import * as Harness from "./Harness.ts"
import * as PostgresStorage from "./PostgresStorage.ts"
import * as Toy from "./Toy.ts"

const databaseOf = (partition: number) => (partition < PARTITIONS / 2 ? "east" : "west")
/** An account that lies there. */
const accountIn = (database: string, kind = "test") => {
  for (let i = 1; ; i++) if (databaseOf(partitionOf(`mer_${i}:${kind}`)) === database) return `mer_${i}:${kind}`
}
/** Names the version in which events of all accounts are rendered, and lies in one database only. */
const NAMING = accountIn("east", "naming")
const EAST = accountIn("east")
const WEST = accountIn("west")
const HOMES = { [EAST]: "east", [WEST]: "west" }

/** Events are rendered in the version that the counter in a slot counts. */
const eventVersions = (id: () => string | undefined): EventVersionsShape => ({
  namedBy: (account) => (account === NAMING || id() === undefined ? null : { account: NAMING, id: id()! }),
  versionOf: (document) =>
    document === undefined || document.deleted ? "none" : `v${(document.value as Toy.Counter).count}`,
  shownIn: (_, event) => event
})

type Storages = Readonly<Record<"east" | "west", Harness.Storage>>

/** Starts a process that has what a placement says of both databases. */
const start = Effect.fnUntraced(function* (
  { east, west }: Storages,
  named: () => string | undefined,
  placement: Layer.Layer<Placement> = Placement.layerSole
) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const storages = { east: Layer.succeedContext(east), west: Layer.succeedContext(west) }
  const layer = Databases.layer({ databaseOf, storages }, { replicated: NAMING }).pipe(
    Layer.provideMerge(placement),
    Layer.provide([
      Layer.succeed(TimerHandler, Toy.handleTimer),
      Layer.succeed(AccountNumbers, Harness.numbersUnder("a key")),
      Layer.succeed(EventVersions, eventVersions(named)),
      Harness.formatsOf([Toy.COUNTER])
    ])
  )
  const services = yield* Effect.provideService(Harness.buildAlone(layer, scope), References.MinimumLogLevel, "None")
  const { engines } = Context.get(services, Databases)
  return {
    accounts: Context.get(services, Accounts),
    placement: Context.get(services, Placement),
    deliveriesOf: (database: string) => Context.get(engines.get(database)!, Deliveries),
    drained: Effect.forEach(engines.values(), (engine) => Context.get(engine, Projector).drained),
    stop: Scope.close(scope, Exit.void)
  }
})
type Process = Effect.Success<ReturnType<typeof start>>

const increment = ({ accounts }: Process, account: string) =>
  accounts.run(
    account,
    Effect.flatMap(Toy.counterIn("a"), (counter) => Toy.add(counter!.value, 1))
  )

const versionsIn = ({ accounts }: Process, account: string) =>
  Effect.map(accounts.events(account, { limit: 100 }), ({ events }) =>
    events.map(({ apiVersion }) => apiVersion).toReversed()
  )

/** Each database has the accounts that lie there and no other, and all of them are whole. */
const assertApart = Effect.fnUntraced(function* (storages: Storages, accounts: ReadonlyArray<string>) {
  for (const [name, storage] of Object.entries(storages)) {
    const there = accounts.filter((account) => databaseOf(partitionOf(account)) === name)
    assert.deepStrictEqual([...(yield* Harness.journalOf(storage).accounts)].toSorted(), there.toSorted())
    yield* Harness.verified(storage)
  }
})

const waitFor = <E>(what: string, condition: Effect.Effect<boolean, E>) =>
  condition.pipe(
    Effect.flatMap((holds) => (holds ? Effect.void : Effect.fail("not yet"))),
    Effect.retry({ schedule: Schedule.spaced("20 millis") }),
    Effect.timeoutOrElse({ duration: "30 seconds", orElse: () => Effect.die(new Error(`In vain: ${what}`)) })
  )

const connected = Effect.gen(function* () {
  const [east, west] = [yield* PostgresStorage.make, yield* PostgresStorage.make]
  return { east: yield* east.connect("engine"), west: yield* west.connect("engine") }
})

describe("accounts in two databases", () => {
  it.live("are served behind one door: commands, replays, timers, lists, events, deliveries and ids", () =>
    Effect.gen(function* () {
      const storages = yield* connected
      let named: string | undefined
      const first = yield* start(storages, () => named)
      const ids: Record<string, string> = {}
      named = (yield* first.accounts.run(NAMING, Toy.create("a", "plain"))).id
      for (const account of [EAST, WEST]) {
        yield* first.accounts.run(
          account,
          Effect.map(Transaction, (transaction) => transaction.subscribe("we_1", ["counter.created"]))
        )
        const create = () => Toy.command({ op: "create", slot: "a", name: "plain" })
        const made = yield* first.accounts.execute(account, Toy.request("a key"), create)
        ids[account] = (JSON.parse(made.body) as Toy.Counter).id
      }
      yield* increment(first, NAMING)
      yield* Effect.forEach([EAST, WEST], (account) => increment(first, account), { concurrency: 2 })
      yield* first.stop

      const second = yield* start(storages, () => named)
      const { accounts } = second
      for (const account of [EAST, WEST]) {
        const replay = yield* accounts.execute(account, Toy.request("a key"), () => Effect.die("it ran again"))
        assert.strictEqual((JSON.parse(replay.body) as Toy.Counter).id, ids[account])
        // The version is read in the one database for accounts of both, also if it is not in memory.
        assert.deepStrictEqual(yield* versionsIn(second, account), ["v0", "v1"])
        const journal = Harness.journalOf(storages[HOMES[account] as "east"])
        const version = Effect.map(journal.versions([account]), (versions) => versions.get(account)!)
        const before = yield* version
        yield* accounts.run(
          account,
          Effect.map(Transaction, (transaction) =>
            transaction.setTimer({
              id: `timer_${ids[account]}`,
              name: "increment",
              dueAt: transaction.now + 50
            })
          )
        )
        // Nobody asks the account: its database's scheduler wakes it.
        yield* waitFor(
          "the timer fires",
          Effect.map(version, (now) => now === before + 2)
        )
        const { documents } = yield* accounts.list(account, { kind: Toy.COUNTER.name, limit: 10 })
        assert.deepStrictEqual(
          documents.map(({ id, value }) => [id, (value as Toy.Counter).count]),
          [[ids[account], 1 + Toy.TIMER_INCREMENT]]
        )
        assert.strictEqual(yield* accounts.holder(ids[account]!), account)
        const due = yield* second.deliveriesOf(HOMES[account]!).take({ limit: 10, busy: [] })
        assert.deepStrictEqual(
          due.map((delivery) => [delivery.account, delivery.destination]),
          [[account, "we_1"]]
        )
      }
      assert.isUndefined(yield* accounts.holder(`ctr_${"0".repeat(24)}`))
      yield* second.drained
      yield* second.stop
      yield* assertApart(storages, [NAMING, EAST, WEST])
    })
  )

  it.live("go on in one while the other one hangs", () =>
    Effect.gen(function* () {
      const [east, west] = [yield* PostgresStorage.make, yield* PostgresStorage.make]
      const { proxy, storage } = yield* west
        .connectThroughProxy("engine")
        .pipe(
          Effect.provideService(StatementLimit, 1_000_000),
          Effect.provideService(HangLimits, { silentMillis: 200, probeMillis: 200, pauseMillis: 50 })
        )
      const storages = { east: yield* east.connect("engine"), west: storage }
      const process = yield* start(storages, () => undefined)
      for (const account of [EAST, WEST]) yield* process.accounts.run(account, Toy.create("a", "plain"))
      proxy.stall()
      const refused = yield* Effect.flip(increment(process, WEST))
      assert.isFalse(refused.isElsewhere)
      // The other one's database is known to hang, and this one is written and read as ever.
      for (let by = 1; by <= 5; by++) assert.strictEqual((yield* increment(process, EAST)).count, by)
      const { documents } = yield* process.accounts.list(EAST, { kind: Toy.COUNTER.name, limit: 10 })
      assert.strictEqual(yield* process.accounts.holder(documents[0]!.id), EAST)
      yield* Effect.flip(increment(process, WEST))
      proxy.resume()
      // The first may have come through.
      const back = yield* Effect.retry(increment(process, WEST), { schedule: Schedule.spaced("50 millis") })
      assert.include([1, 2], back.count)
      yield* process.drained
      yield* process.stop
      yield* assertApart(storages, [EAST, WEST])
    })
  )

  it.live("are served by several processes, each with partitions of both", () =>
    Effect.gen(function* () {
      const storages = { east: yield* Harness.storageInMemory, west: yield* Harness.storageInMemory }
      let named: string | undefined
      const shared = Placement.layerSharedBy(() => 0)
      const owner = yield* start(storages, () => named, shared)
      const other = yield* start(storages, () => named, shared)
      for (const { placement } of [owner, other]) placement.confirm(0)
      yield* owner.placement.gain(partitionOf(NAMING))
      yield* other.placement.gain(partitionOf(WEST))
      named = (yield* owner.accounts.run(NAMING, Toy.create("a", "plain"))).id
      // The process that has an account of one database reads the version as the replica of the other one has it.
      yield* other.accounts.run(WEST, Toy.create("a", "plain"))
      assert.deepStrictEqual(yield* versionsIn(other, WEST), ["v0"])
      for (const [process, account] of [
        [owner, WEST],
        [other, NAMING]
      ] as const) {
        assert.isTrue((yield* Effect.flip(increment(process, account))).isElsewhere)
      }
      yield* other.placement.release(partitionOf(WEST))
      yield* owner.placement.gain(partitionOf(WEST))
      assert.strictEqual((yield* increment(owner, WEST)).count, 1)
      assert.isTrue((yield* Effect.flip(increment(other, WEST))).isElsewhere)
      yield* owner.drained
      yield* Effect.forEach([owner, other], ({ stop }) => stop)
      yield* assertApart(storages, [NAMING, WEST])
    })
  )
})
