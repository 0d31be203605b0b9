/**
 * Repeated lists, while other requests change their documents: each shows a state that the account had between the
 * list's beginning and end, from memory or from the views. Cached pages are bounded.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { ListPages } from "../../../src/engine/read/ListPages.ts"
import { Transaction } from "../../../src/engine/actor/Transaction.ts"
import type { ListQuery } from "../../../src/engine/views/Views.ts"
import { Random, Seed } from "../../support/Random.ts"
import type { RunningEngine } from "../Harness.ts"
import * as Harness from "../Harness.ts"
import type { FaultPoint } from "../storage/Faults.ts"
import * as Toy from "../Toy.ts"

const ACCOUNT = "mer_1:test"
const SLOTS = ["a", "b", "c", "d"] as const
const NAMES = ["", "plain"] as const
/** Few queries, so that most are repetitions. */
const QUERIES: ReadonlyArray<Omit<ListQuery, "kind">> = [
  { limit: 1 },
  { limit: 2 },
  { limit: 10 },
  { limit: 10, labels: { slot: "a" } },
  { limit: 2, labels: { name: "plain" } },
  { limit: 10, labels: { name: "plain", slot: "b" } }
]

/** Ids, newest first. */
type State = ReadonlyArray<Toy.Counter>

const matching = (state: State, { labels = {}, limit, newerThan, olderThan }: Omit<ListQuery, "kind">) => {
  const found = state.filter(
    ({ id, name, slot }) =>
      (labels["slot"] ?? slot) === slot &&
      (labels["name"] ?? name) === name &&
      (newerThan === undefined || id > newerThan) &&
      (olderThan === undefined || id < olderThan)
  )
  const page = newerThan === undefined ? found.slice(0, limit) : found.slice(-limit)
  return { page: page.map((counter) => JSON.stringify(counter)), hasMore: found.length > limit }
}

/** All states of an account from the first, and the number of those that were acknowledged. */
class History {
  readonly states: Array<State> = [[]]
  acknowledged = 0
  readonly ids: Array<string> = []

  become(state: State): number {
    this.states.push(state)
    return this.states.length - 1
  }

  get newest(): State {
    return this.states.at(-1)!
  }
}

const change = (history: History, random: Random) => {
  const slot = random.pick(SLOTS)
  const name = random.pick(NAMES)
  const op = random.below(12) === 0 ? "wipe" : random.pick(["create", "increment", "rename", "delete"] as const)
  const command = Effect.gen(function* () {
    yield* random.jitter(2)
    if (op === "wipe") {
      ;(yield* Transaction).wipe()
      return history.become([])
    }
    const before = history.newest
    const found = before.find((counter) => counter.slot === slot)
    if ((op === "create") === (found !== undefined)) return history.states.length - 1
    const { body } = yield* Toy.command({ op, slot, name, by: 1 } as Toy.Operation)
    const counter = JSON.parse(body) as Toy.Counter
    const others = before.filter(({ id }) => id !== counter.id)
    if (op === "create") history.ids.push(counter.id)
    return history.become(op === "delete" ? others : [...others, counter].toSorted((a, b) => (a.id < b.id ? 1 : -1)))
  })
  return Effect.fnUntraced(function* ({ accounts }: RunningEngine) {
    const at = yield* accounts.run(ACCOUNT, command)
    history.acknowledged = Math.max(history.acknowledged, at)
  })
}

const list = (history: History, random: Random) =>
  Effect.fnUntraced(function* ({ accounts }: RunningEngine) {
    const cursor = random.below(3) === 0 ? random.pick(["", ...history.ids]) : undefined
    const from = cursor === undefined ? {} : random.below(2) === 0 ? { newerThan: cursor } : { olderThan: cursor }
    const query = { ...random.pick(QUERIES), ...from }
    const first = history.acknowledged
    const { documents, hasMore } = yield* accounts.list(ACCOUNT, { kind: Toy.COUNTER.name, ...query })
    const result = { page: documents.map(({ json }) => json), hasMore }
    const possible = history.states.slice(first).map((state) => matching(state, query))
    const isOne = possible.some((state) => JSON.stringify(state) === JSON.stringify(result))
    assert.isTrue(isOne, `${JSON.stringify(query)} result ${JSON.stringify(result)} of ${JSON.stringify(possible)}`)
  })

interface KeptPage {
  readonly version: number
  readonly incarnation: number
  readonly rows: number
}

/** Weight of pages: one more for each page. */
const rowsOf = (kept: ReadonlyMap<string, KeptPage>): number =>
  [...kept.values()].reduce((sum, { rows }) => sum + 1 + rows, 0)

describe("lists", () => {
  it.effect.prop(
    "show a state between their beginning and their end, from memory or not",
    { seed: Seed, cacheBytes: Schema.Literals([0, 2000, 500_000]), idleMillis: Schema.Literals([50, 300_000]) },
    ({ cacheBytes, idleMillis, seed }) =>
      Effect.gen(function* () {
        yield* Harness.startClock
        yield* Harness.flowingTime
        const random = new Random(seed)
        const history = new History()
        const storage = yield* Harness.storageInMemory
        const engine = yield* Harness.startEngine(storage, { faults: () => random.jitter(3), cacheBytes, idleMillis })
        const running: Array<Fiber.Fiber<void, unknown>> = []
        for (let step = 0; step < 40; step++) {
          const request = random.below(3) === 0 ? change(history, random) : list(history, random)
          const fiber = yield* Effect.forkChild(request(engine))
          if (random.below(2) === 0) yield* Fiber.join(fiber)
          else running.push(fiber)
          if (random.below(20) === 0) yield* Effect.sleep(200)
        }
        for (const fiber of running) yield* Fiber.join(fiber)
        yield* engine.stop
      }),
    { arbitrary: { runs: 150 } }
  )

  it.effect("read nothing that has not changed since the last time, and texts only once", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      yield* Harness.flowingTime
      const storage = yield* Harness.storageInMemory
      const first = yield* Harness.startEngine(storage)
      yield* first.accounts.run(ACCOUNT, Toy.create("a", "plain"))
      yield* first.stop
      const visits: Array<FaultPoint> = []
      const faults = (point: FaultPoint) => Effect.sync(() => void visits.push(point))
      const engine = yield* Harness.startEngine(storage, { faults })
      const visitsOf = <A, E>(effect: Effect.Effect<A, E>) =>
        Effect.gen(function* () {
          yield* Harness.settled
          visits.length = 0
          yield* effect
          return visits.length
        })
      const listed = engine.accounts.list(ACCOUNT, { kind: Toy.COUNTER.name, limit: 10 })
      yield* listed
      assert.strictEqual(yield* visitsOf(listed), 1, "the text of a document on a repeated page is cached")
      assert.strictEqual(yield* visitsOf(listed), 0)
      yield* engine.accounts.run(
        ACCOUNT,
        Effect.map(Transaction, (t) => void t.put(Toy.SLOT, { id: "slot_z", counter: "" }))
      )
      assert.strictEqual(yield* visitsOf(listed), 0, "another kind has changed")
      yield* engine.accounts.run(ACCOUNT, Toy.create("b", "plain"))
      yield* engine.projector.drained
      assert.isAbove(yield* visitsOf(listed), 0)
      yield* engine.stop
    })
  )

  it.prop(
    "have few rows in memory, those of the last used pages",
    { seed: Seed, rowsMax: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 60 })) },
    ({ rowsMax, seed }) => {
      const random = new Random(seed)
      const pages = new ListPages(rowsMax)
      const changedAt = new Map<string, number>()
      let actor = {
        account: ACCOUNT,
        incarnation: Symbol("first"),
        isUnchanged: (kind: string, since: number) => (changedAt.get(kind) ?? 0) <= since
      }
      const kept = new Map<string, KeptPage>()
      let incarnation = 0
      for (let version = 1; version < 200; version++) {
        const query: ListQuery = { kind: random.pick(["a", "b"]), limit: 1 + random.below(12) }
        const name = `${query.kind} ${query.limit}`
        if (random.below(8) === 0) changedAt.set(query.kind, version)
        if (random.below(40) === 0) {
          actor = { ...actor, incarnation: Symbol("next") }
          incarnation++
        }
        const known = pages.get(actor, query)
        const expected = kept.get(name)
        kept.delete(name)
        const isTrue = expected?.incarnation === incarnation && actor.isUnchanged(query.kind, expected.version)
        assert.strictEqual(known?.page.length, isTrue ? expected.rows : undefined)
        const row = {
          account: ACCOUNT,
          id: "",
          kind: query.kind,
          version,
          documentSpan: null,
          hiddenSpan: null,
          labels: {},
          format: 1,
          checksum: 0
        }
        const page = Array.from({ length: random.below(query.limit + 1) }, () => row)
        if (isTrue) kept.set(name, expected)
        else {
          pages.set(actor, query, version, { page, hasMore: false })
          kept.set(name, { version, incarnation, rows: page.length })
        }
        for (const name of kept.keys()) {
          if (rowsOf(kept) <= rowsMax) break
          kept.delete(name)
        }
        assert.strictEqual(pages.rows, rowsOf(kept))
        assert.isAtMost(pages.rows, rowsMax)
      }
    },
    { arbitrary: { runs: 200 } }
  )
})
