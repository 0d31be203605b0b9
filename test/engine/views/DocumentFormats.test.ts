/**
 * Documents of several formats in one account: reads return the newest format, stored documents stay unchanged, and
 * deliveries and responses are repeated with the same bytes.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Checksum from "../../../src/engine/log/Checksum.ts"
import { Effect } from "effect"
import { runOnce } from "../../../src/engine/Accounts.ts"
import type { Kind, Step } from "../../../src/engine/log/Document.ts"
import type { EventVersionsShape } from "../../../src/engine/log/Events.ts"
import * as DocumentFormats from "../../../src/engine/views/DocumentFormats.ts"
import { AS_SHOWN } from "../../../src/engine/log/Record.ts"
import { Transaction } from "../../../src/engine/actor/Transaction.ts"
import * as Harness from "../Harness.ts"
import { answer, COUNTER, type Counter, create } from "../Toy.ts"

const ACCOUNT = "mer_1:test"

/** A later format of counters: with one more field, a renamed field, and another hidden part. */
interface Meter extends Omit<Counter, "count"> {
  readonly total: number
  readonly unit: string | null
}
const STEPS: ReadonlyArray<Step> = [
  { value: DocumentFormats.adding({ unit: null }) },
  {
    value: DocumentFormats.renaming({ count: "total" }),
    hidden: (older, { count }) => ({ ...(older as object), countedBefore: count })
  }
]
const METER: Kind<Meter, { readonly secret: string; readonly countedBefore?: number }> = {
  name: COUNTER.name,
  labels: ({ name, slot }) => ({ name, slot }),
  search: ({ name, slot, total }) => ({ terms: [`slot=${slot}`, `name=${name}`], measure: total }),
  tallies: ({ total: count, ...meter }) => COUNTER.tallies!({ ...meter, count }),
  steps: STEPS
}

const meterOf = ({ count, ...counter }: Counter) => ({ ...counter, total: count, unit: null })

const REQUEST = { id: "req_1", idempotencyKey: "k", fingerprint: "f", apiVersion: "2026-03-09" }

const add = (id: string, by: number) =>
  Effect.gen(function* () {
    const transaction = yield* Transaction
    const { hidden, value } = (yield* transaction.get(METER, id))!
    const changed = { ...value, total: value.total + by }
    transaction.put(METER, changed, hidden)
    transaction.emit("counter.incremented", id, { total: value.total })
    return changed
  })

/** Makes an account with two counters, one of them deleted, and an event of every change. */
const older = Effect.gen(function* () {
  yield* Harness.startClock
  const storage = yield* Harness.storageInMemory
  const engine = yield* Harness.startEngine(storage)
  const command = Effect.gen(function* () {
    const transaction = yield* Transaction
    transaction.subscribe("we_1", ["*"])
    const counter = yield* create("a", "plain", 7)
    return answer(200, JSON.stringify(counter))
  })
  const reply = yield* runOnce(engine.accounts, ACCOUNT, REQUEST, () => command)
  const kept = JSON.parse(reply.body) as Counter
  const gone = yield* engine.accounts.run(ACCOUNT, create("b", "plain", 8))
  const remove = Effect.gen(function* () {
    const transaction = yield* Transaction
    yield* transaction.get(COUNTER, gone.id)
    // The event's object is in no change of the record.
    transaction.emit("counter.deleted", gone.id)
    transaction.delete(COUNTER, gone.id)
  })
  yield* engine.accounts.run(ACCOUNT, remove)
  yield* engine.accounts.list(ACCOUNT, { kind: COUNTER.name, limit: 1 })
  yield* engine.kill
  return { storage, kept, gone, reply, command }
})

/** Versions of an API, of which the newest renders a counter's `total`, and "1" its `count`. */
const asCounts = (text: string): string => {
  const { total, unit: _, ...counter } = JSON.parse(text)
  return JSON.stringify(total === undefined ? counter : { ...counter, count: total })
}
const EVENT_VERSIONS: EventVersionsShape = {
  namedBy: () => null,
  versionOf: () => "1",
  shownIn: (version, event) =>
    version !== "1"
      ? event
      : {
          object: asCounts(event.object),
          previous: event.previous === null ? null : { count: event.previous["total"] }
        }
}

const later = (storage: Harness.Storage) => Harness.startEngine(storage, { kinds: [METER] })

const objectsOf = (engine: Harness.RunningEngine) =>
  Effect.map(Harness.allEvents(engine, ACCOUNT, "older", 10), (events) =>
    events.toReversed().map(({ object }) => JSON.parse(object))
  )

const rowOf = (document: string | null, hidden: string | null, format: number) => {
  const documentSpan = document === null ? null : { at: 0, length: document.length }
  const of = { account: ACCOUNT, id: "ctr_1", kind: "counter", version: 3, labels: {} }
  const row = { ...of, documentSpan, hiddenSpan: null, format, search: null }
  return { ...row, document, hidden, checksum: Checksum.ofDocument(row, document, hidden) }
}

describe("documents of an older format", () => {
  it.effect("are read in the newest, wherever they are read", () =>
    Effect.gen(function* () {
      const { gone, kept, storage } = yield* older
      const before = yield* Harness.recordsOf(storage, ACCOUNT)
      const engine = yield* later(storage)
      const { documents } = yield* engine.accounts.list(ACCOUNT, { kind: METER.name, limit: 10 })
      assert.deepStrictEqual(documents.map(({ value }) => value) as ReadonlyArray<unknown>, [meterOf(kept)])
      const read = yield* engine.accounts.read(ACCOUNT, kept.id)
      assert.isFalse(read!.deleted)
      if (read?.deleted !== false) return
      assert.deepStrictEqual(
        [JSON.parse(read.json), read.value, read.hidden, read.format, read.labels] as ReadonlyArray<unknown>,
        [meterOf(kept), meterOf(kept), { secret: "secret of a", countedBefore: 7 }, 3, { name: "plain", slot: "a" }]
      )
      const images = [meterOf(kept), meterOf(gone), meterOf(gone)]
      assert.deepStrictEqual(yield* objectsOf(engine), images)
      // Later writes are in the newest format, beside the older ones.
      const changed = yield* engine.accounts.run(ACCOUNT, add(kept.id, 5))
      assert.deepStrictEqual(changed, { ...meterOf(kept), total: 12 })
      yield* engine.kill
      const again = yield* later(storage)
      assert.deepStrictEqual(yield* objectsOf(again), [...images, changed])
      const reread = yield* again.accounts.read(ACCOUNT, kept.id)
      assert.strictEqual(reread?.deleted === false ? reread.json : undefined, JSON.stringify(changed))
      const { entries } = yield* again.accounts.history(ACCOUNT, { ids: [kept.id], limit: 10 })
      const left = entries.flatMap(({ documents }) => documents.map((it) => !it.deleted && it.value))
      assert.deepStrictEqual(left as ReadonlyArray<unknown>, [changed, meterOf(kept)])
      const told = entries.flatMap(({ events }) => events.map(({ object }) => JSON.parse(object)))
      assert.deepStrictEqual(told, [changed, meterOf(kept)])
      yield* again.kill
      yield* Harness.verified(storage, [METER])
      yield* Harness.rebuilt(storage, [METER])
      yield* Harness.verified(storage, [METER])
      const records = yield* Harness.recordsOf(storage, ACCOUNT)
      assert.deepStrictEqual(records.slice(0, before.length), before)
      const formats = records.flatMap(({ changes }) =>
        changes.filter(({ id }) => id === kept.id).map(({ format }) => format)
      )
      assert.deepStrictEqual(formats, [1, 3])
    })
  )

  it.effect(
    "are rendered in the version of the event, and an object rendered in an older version stays unchanged",
    () =>
      Effect.gen(function* () {
        const { gone, kept, storage } = yield* older
        const options = { kinds: [METER], eventVersions: EVENT_VERSIONS }
        const engine = yield* Harness.startEngine(storage, options)
        yield* engine.accounts.run(ACCOUNT, add(kept.id, 5))
        const told = { ...kept, count: 12 }
        const inOrder = (objects: ReadonlyArray<unknown>) =>
          objects.map((object) => Object.entries(object as object).toSorted(([a], [b]) => (a < b ? -1 : 1)))
        const expected = inOrder([kept, gone, gone, told])
        assert.deepStrictEqual(inOrder(yield* objectsOf(engine)), expected)
        const [newest] = yield* Harness.allEvents(engine, ACCOUNT, "older", 1)
        assert.deepStrictEqual([newest!.previous, newest!.format, newest!.apiVersion], [{ count: 7 }, AS_SHOWN, "1"])
        yield* engine.kill
        // A later format does not change it.
        const further = [...STEPS, { value: () => ({ id: "another" }) }]
        const again = yield* Harness.startEngine(storage, { ...options, kinds: [{ ...METER, steps: further }] })
        assert.deepStrictEqual((yield* objectsOf(again))[3], JSON.parse(newest!.object))
        yield* again.kill
        yield* Harness.verified(storage, [METER])
        yield* Harness.rebuilt(storage, [METER])
        yield* Harness.verified(storage, [METER])
      })
  )

  it.effect("are sent to webhooks, and repeated to requests, with their original bytes", () =>
    Effect.gen(function* () {
      const { command, kept, reply, storage } = yield* older
      const engine = yield* later(storage)
      const repeated = yield* runOnce(engine.accounts, ACCOUNT, REQUEST, () => command)
      assert.strictEqual(repeated.body, reply.body)
      assert.strictEqual(repeated.replayOf, REQUEST.id)
      yield* engine.accounts.events(ACCOUNT, { limit: 1 })
      const due = yield* engine.deliveries.take({ limit: 10, busy: [] })
      const contents = yield* Effect.forEach(due, engine.deliveries.content)
      const created = contents.find(({ object, type }) => type === "counter.created" && object.includes(kept.id))
      assert.strictEqual(created?.object, JSON.stringify(kept))
      yield* engine.kill
    })
  )

  it.effect("of a newer Till are refused by an older one, with the reason", () =>
    Effect.gen(function* () {
      const { kept, storage } = yield* older
      const engine = yield* later(storage)
      yield* engine.accounts.run(ACCOUNT, add(kept.id, 1))
      yield* engine.accounts.list(ACCOUNT, { kind: METER.name, limit: 1 })
      yield* engine.kill
      const downgraded = yield* Harness.startEngine(storage)
      const exit = yield* Effect.exit(downgraded.accounts.read(ACCOUNT, kept.id))
      const problem = `holds ${kept.id} in format 3, which a newer Till wrote; this one reads formats up to 1`
      assert.include(String(exit), problem)
      yield* downgraded.kill
    })
  )
})

describe("documents of the newest format", () => {
  it("are sent as their stored text, without parsing", () => {
    // Neither of these would survive being parsed or encoded.
    for (const text of ['{"id": "ctr_1" }', "{ no JSON"]) {
      for (const steps of [[], STEPS]) {
        const formats = DocumentFormats.make([{ name: "counter", steps }], () => "counter")
        const document = formats.document(rowOf(text, text, 1 + steps.length))
        assert.strictEqual(document.deleted === false ? document.json : undefined, text)
        const event = { id: "evt_1", type: "counter.created", at: 1, request: null, object: text, previous: null }
        const stored = { ...event, format: 1 + steps.length, apiVersion: "1", version: 1, deliveries: 0 }
        assert.strictEqual(formats.event(ACCOUNT, stored), stored)
      }
    }
  })
})

describe("tombstones", () => {
  it("have no format", () => {
    const formats = DocumentFormats.make([{ name: "counter", steps: STEPS }], () => "counter")
    assert.isTrue(formats.document(rowOf(null, null, 1)).deleted)
  })
})

describe("steps", () => {
  it("change objects inside, alone or in lists, and ignore missing ones", () => {
    const change = DocumentFormats.inside(
      "charges",
      DocumentFormats.inside("data", DocumentFormats.adding({ fee: null }))
    )
    assert.deepStrictEqual(change({ id: "a", charges: { data: [{ id: "b" }, { id: "c" }] } }), {
      id: "a",
      charges: {
        data: [
          { id: "b", fee: null },
          { id: "c", fee: null }
        ]
      }
    })
    for (const older of [{ id: "a" }, { id: "a", charges: null }, { id: "a", charges: { data: [] } }]) {
      assert.deepStrictEqual(change(older), older)
    }
  })
})
