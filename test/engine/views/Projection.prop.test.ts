/**
 * The fold of records into rows, in which new documents are separate from those that may have a row.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import { runOnce } from "../../../src/engine/Accounts.ts"
import { piecesOf, project, type Projection } from "../../../src/engine/views/Projection.ts"
import { GENESIS, seal, type SealedRecord } from "../../../src/engine/log/Record.ts"
import { Views } from "../../../src/engine/views/Views.ts"
import * as Harness from "../Harness.ts"
import { Random, Seed } from "../../support/Random.ts"
import * as Toy from "../Toy.ts"

const ACCOUNT = "mer_1:test"

/**
 * Makes records that create and change documents. Documents with even numbers are never marked as new. A share of the
 * records wipes the account.
 */
const recordsOf = (random: Random, length: number, wipes: number = 0): ReadonlyArray<SealedRecord> => {
  const made = new Set<number>()
  return Array.from({ length }, (_, i) => {
    const wiped = random.chance(wipes)
    const changes = [0, 1, 2, 3, 4, 5]
      .filter(() => !wiped && random.chance(0.4))
      .map((n) => {
        const created = n % 2 === 1 && !made.has(n)
        made.add(n)
        const document = random.chance(0.2) ? null : JSON.stringify({ id: `ctr_${n}`, count: i })
        const format = 1 + random.below(3)
        return { id: `ctr_${n}`, kind: "counter", document, hidden: null, labels: {}, format, created }
      })
    const nothing = {
      events: [],
      apiVersion: null,
      timers: [],
      subscriptions: [],
      deliveries: [],
      attempts: [],
      hastened: [],
      response: null
    }
    const record = { ...nothing, account: ACCOUNT, version: i + 1, at: 1, now: 1, clock: 0, advanced: 0, wiped }
    return seal(GENESIS, { ...record, sequence: i, request: null, changes }).record
  })
}

describe("the fold of records", () => {
  it.prop("has one row of each document, the newest, and separates new documents", [Seed], ([seed]) => {
    const random = new Random(seed)
    const records = recordsOf(random, 1 + random.below(8))
    const changes = records.flatMap(({ changes, version }) => changes.map((change) => ({ ...change, version })))
    const expected = (created: boolean) =>
      [...new Set(changes.map(({ id }) => id))]
        .filter((id) => changes.some((change) => change.id === id && change.created) === created)
        .map((id) => changes.findLast((change) => change.id === id)!)
        .map(({ documentSpan, format, id, version }) => ({ id, version, format, documentSpan }))
    const found = (rows: Projection["documentsCreated"]) =>
      rows.map(({ documentSpan, format, id, version }) => ({ id, version, format, documentSpan }))
    const { documentsChanged, documentsCreated } = project(records)
    assert.deepStrictEqual(found(documentsCreated), expected(true))
    assert.deepStrictEqual(found(documentsChanged), expected(false))
  })

  it.effect.prop(
    "lists every record that wrote a document except the newest, however the records are cut into batches",
    { seed: Seed },
    Effect.fnUntraced(function* ({ seed }) {
      const random = new Random(seed)
      const records = recordsOf(random, 1 + random.below(30), 0.1)
      const views = Harness.viewsOf(yield* Harness.storageInMemory)
      for (let from = 0, to = 0; from < records.length; from = to) {
        to = from + 1 + random.below(8)
        for (const piece of piecesOf(records.slice(from, to))) yield* views.apply(project(piece), 0)
      }
      const kept = records.slice(records.findLastIndex(({ wiped }) => wiped) + 1)
      const versions = (n: number) =>
        kept.filter(({ changes }) => changes.some(({ id }) => id === `ctr_${n}`)).map(({ version }) => version)
      const expected = [0, 1, 2, 3, 4, 5].flatMap((n) =>
        versions(n)
          .slice(0, -1)
          .map((version) => ({ account: ACCOUNT, id: `ctr_${n}`, version }))
      )
      const found = yield* views.scan(ACCOUNT, "revisions", "", 1000)
      assert.deepStrictEqual(
        found.map(({ row }) => row),
        expected
      )
    })
  )

  it.effect("treats a document as new under an id that its command generated, and under no other", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      const storage = yield* Harness.storageInMemory
      const projections: Array<Projection> = []
      const views = Harness.viewsOf(storage)
      const watched = Context.add(storage, Views, {
        ...views,
        apply: (projection, leasedUntil) => {
          projections.push(projection)
          return views.apply(projection, leasedUntil)
        }
      })
      const engine = yield* Harness.startEngine(watched)
      yield* Effect.addFinalizer(() => engine.kill)
      const kinds = (rows: Projection["documentsCreated"]) => rows.map(({ kind }) => kind).toSorted()
      const projected = Effect.fnUntraced(function* (operation: Toy.Operation) {
        yield* runOnce(engine.accounts, ACCOUNT, Toy.request(null), () => Toy.command(operation))
        yield* engine.projector.drained
        const { documentsChanged, documentsCreated } = projections.splice(0)[0]!
        return { created: kinds(documentsCreated), changed: kinds(documentsChanged) }
      })
      assert.deepStrictEqual(yield* projected({ op: "create", slot: "a", name: "plain" }), {
        created: ["counter"],
        changed: ["slot"]
      })
      assert.deepStrictEqual(yield* projected({ op: "increment", slot: "a", by: 1 }), {
        created: [],
        changed: ["counter"]
      })
    })
  )
})
