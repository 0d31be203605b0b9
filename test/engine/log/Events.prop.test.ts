/**
 * Events read back as they were written, also when many reads share a query; a damaged or missing record fails only the
 * reads of its events, and is named.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import { Unavailable } from "../../../src/engine/Accounts.ts"
import { type EventPlace, type EventVersionsShape, makeReader } from "../../../src/engine/log/Events.ts"
import { Journal, type Place } from "../../../src/engine/log/Journal.ts"
import { type ChainedRow, GENESIS, type JournalRecord, seal } from "../../../src/engine/log/Record.ts"
import { Random, Seed } from "../../support/Random.ts"
import * as JournalMemory from "../storage/JournalMemory.ts"
import * as Harness from "../Harness.ts"
import { add, type Counter, counterIn, create } from "../Toy.ts"

const ACCOUNTS = ["mer_1:test", "mer_2:test"]
const RECORDS = 6

/** The object of an event: the position of its record. */
const objectOf = ({ account, id, version }: EventPlace): string => JSON.stringify({ account, id, version })

const recordOf = (account: string, version: number, events: number): JournalRecord => ({
  account,
  version,
  at: version,
  now: version,
  clock: 0,
  advanced: 0,
  wiped: false,
  sequence: version,
  request: null,
  changes: [],
  // The same ids in every record: an event must be read from its own.
  events: Array.from({ length: events }, (_, i) => {
    const id = `evt_${i}`
    const object = objectOf({ account, id, version })
    return { id, type: "counter.created", object, format: 1, previous: null }
  }),
  apiVersion: "1",
  timers: [],
  subscriptions: [],
  deliveries: [],
  attempts: [],
  hastened: [],
  response: null
})

/** Makes the rows of a chain, some of them damaged, and the number of events of each. */
const chainOf = (random: Random, account: string) => {
  let newest = GENESIS
  return Array.from({ length: RECORDS }, (_, i) => {
    const events = 1 + random.below(3)
    const { bytes, hash, previous } = seal(newest, recordOf(account, i + 1, events))
    newest = hash
    const damaged = random.chance(0.2)
    const row: ChainedRow = { account, version: i + 1, hash, bytes: damaged ? bytes.subarray(1) : bytes, previous }
    return { row, damaged, events }
  })
}

const isSound = (chain: ReturnType<typeof chainOf>, { id, version }: EventPlace): boolean => {
  const record = chain[version - 1]
  return record !== undefined && !record.damaged && Number(id.slice("evt_".length)) < record.events
}

describe("reading events", () => {
  it.effect.prop(
    "returns the written events, and fails only the reads of damaged or missing records",
    { seed: Seed },
    Effect.fnUntraced(
      function* ({ seed }) {
        const random = new Random(seed)
        const journal = yield* Journal
        const chains = new Map(ACCOUNTS.map((account) => [account, chainOf(random, account)]))
        yield* journal.append([...chains.values()].flatMap((chain) => chain.map(({ row }) => row)))
        const asked: Array<ReadonlyArray<Place>> = []
        const at = (places: ReadonlyArray<Place>) => {
          asked.push(places)
          return Effect.andThen(random.jitter(3), journal.at(places))
        }
        const readEvents = yield* Effect.provideService(makeReader(8), Journal, { ...journal, at })
        const place = (): EventPlace => ({
          account: random.pick(ACCOUNTS),
          // Including a position beyond the last record, and one beyond the longest list of events.
          version: 1 + random.below(random.chance(0.1) ? RECORDS + 1 : RECORDS),
          id: `evt_${random.below(random.chance(0.1) ? 4 : 1)}`
        })
        const lists = Array.from({ length: 40 }, () => Array.from({ length: random.below(4) }, place))
        yield* Effect.forEach(
          lists,
          Effect.fnUntraced(function* (places) {
            yield* random.jitter(10)
            const exit = yield* Effect.exit(readEvents(places))
            const unsound = places.filter((place) => !isSound(chains.get(place.account)!, place))
            if (Exit.isSuccess(exit)) {
              assert.deepStrictEqual(unsound, [])
              assert.deepStrictEqual(
                exit.value.map(({ object }) => object),
                places.map(objectOf)
              )
            } else {
              const [first] = unsound
              assert.isDefined(first, Cause.pretty(exit.cause))
              assert.include(Cause.pretty(exit.cause), `Record ${first.version} of account ${first.account} `)
            }
          }),
          { concurrency: "unbounded", discard: true }
        )
        for (const places of asked) {
          const names = places.map(({ account, version }) => `${account} ${version}`)
          assert.strictEqual(new Set(names).size, names.length, "a record is read once per query")
        }
        const asking = lists.filter(({ length }) => length > 0).length
        assert.isBelow(asked.length, asking, "those who ask at once are asked for together")
      },
      Effect.provide(JournalMemory.layerMemory),
      Effect.scoped
    ),
    { arbitrary: { runs: 100 } }
  )

  it.effect("returns events of a record that are read together as the same objects", () =>
    Effect.gen(function* () {
      const { bytes, hash, previous } = seal(GENESIS, recordOf("mer_1:test", 1, 1))
      const journal = yield* Journal
      yield* journal.append([{ account: "mer_1:test", version: 1, hash, bytes, previous }])
      const readEvents = yield* makeReader(8)
      const place = { account: "mer_1:test", version: 1, id: "evt_0" }
      const [[one], [other]] = yield* Effect.all([readEvents([place]), readEvents([place])], { concurrency: 2 })
      assert.strictEqual(one, other)
    }).pipe(Effect.provide(JournalMemory.layerMemory), Effect.scoped)
  )
})

describe("the version in which an event is rendered", () => {
  /** Accounts whose counters are rendered in the version that a counter of another account counts. */
  const eventVersions: EventVersionsShape = {
    namedBy: (account) => (account === NAMING || named === undefined ? null : { account: NAMING, id: named }),
    versionOf: (document) =>
      document === undefined || document.deleted ? "none" : `v${(document.value as Counter).count}`,
    shownIn: (_, event) => event
  }
  const NAMING = "naming"
  let named: string | undefined

  it.effect("is read from another account, whether active or not, and stored with the event", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      const storage = yield* Harness.storageInMemory
      let isFailing = false
      const faults = (point: string) =>
        isFailing && point === "read" ? Effect.fail(Harness.outage("as the test says")) : Effect.void
      const start = Harness.startEngine(storage, { eventVersions, faults, schedulers: 0 })
      let engine = yield* start
      const count = (by: number) =>
        engine.accounts.run(
          NAMING,
          Effect.flatMap(counterIn("a"), (counter) => add(counter!.value, by))
        )
      const versions = Effect.map(engine.accounts.events("mer_1:test", { limit: 100 }), ({ events }) =>
        events.map(({ apiVersion }) => apiVersion).toReversed()
      )
      yield* engine.accounts.run("mer_1:test", create("early", "plain"))
      named = (yield* engine.accounts.run(NAMING, create("a", "plain"))).id
      yield* engine.accounts.run("mer_1:test", create("a", "plain"))
      yield* count(1)
      yield* engine.accounts.run("mer_1:test", create("b", "plain"))
      assert.deepStrictEqual(yield* versions, ["none", "v0", "v1"])
      // No account is in memory: the other account is activated for it.
      yield* engine.stop
      engine = yield* start
      yield* engine.accounts.run("mer_1:test", create("c", "plain"))
      // An event must not get a version that could not be read.
      yield* engine.stop
      engine = yield* start
      yield* engine.accounts.run("mer_1:test", Effect.void)
      isFailing = true
      assert.instanceOf(yield* Effect.flip(engine.accounts.run("mer_1:test", create("d", "plain"))), Unavailable)
      isFailing = false
      yield* engine.accounts.run("mer_1:test", create("d", "plain"))
      const { events } = yield* engine.accounts.events("mer_1:test", { limit: 100 })
      assert.deepStrictEqual(events.map(({ apiVersion }) => apiVersion).toReversed(), ["none", "v0", "v1", "v1", "v1"])
      yield* Harness.verified(storage)
      yield* engine.stop
    })
  )
})
