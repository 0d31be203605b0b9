/**
 * The comparison of an installation with a processor's list (semantics processors.reconcile), by what both have of each
 * operation, and by the processor's answers to looks.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { Operation } from "../../src/domain/Operation.ts"
import type { Document } from "../../src/engine/log/Document.ts"
import { OPERATION, PAYMENT_INTENT } from "../../src/payments/shared/Documents.ts"
import type { Discrepancy, ReconciliationStep } from "../../src/payments/lifecycles/OperationDispatcher.ts"
import type { OperationDocument } from "../../src/payments/lifecycles/Operations.ts"
import type { ListedOperation, OperationPage, RemoteProcessor } from "../../src/payments/processing/RemoteProcessor.ts"
import * as Reconciliation from "../../src/processors/Reconciliation.ts"

const PRC = "prc_1"
const ACCOUNT = "mer_1:live"

type Outcome = NonNullable<Operation["outcome"]>["kind"]

const outcomeOf = (kind: Outcome) => ({ kind, code: null, message: null, processor_code: null })

const operationOf = (id: string, part: Partial<Operation> = {}): Operation => ({
  id,
  object: "operation",
  kind: "authorize",
  status: "final",
  outcome: outcomeOf("approved"),
  resolved_by: "answer",
  payment_intent: "pi_1",
  refund: null,
  processor: PRC,
  reference: "gw_1",
  amount: 2000,
  currency: "usd",
  created: 0,
  updated: 0,
  livemode: true,
  ...part
})

const listed = (id: string, part: Partial<ListedOperation> = {}): ListedOperation => ({
  id,
  status: "approved",
  kind: "authorize",
  payment: "pi_1",
  reference: "gw_1",
  amount: 2000,
  currency: "usd",
  ...part
})

const documentOf = (kind: string, value: { readonly id: string }, hidden: object = {}) =>
  ({ id: value.id, kind, value, hidden, deleted: false }) as unknown as Document

/** An account with a payment, `pi_1`, and the processor's list. */
class Scene {
  readonly documents = new Map<string, Document>()
  readonly settled: Array<string> = []
  readonly adopted: Array<string> = []
  /** The operations as looks find them. */
  readonly words = new Map<string, Partial<Operation>>()
  adoption: "adopted" | "nothing" | "unheard" = "adopted"
  page: OperationPage = { kind: "page", operations: [], next: null }
  slow = 0

  constructor(operations: ReadonlyArray<Operation>, remote: object | undefined = { processor: PRC }) {
    const hidden = remote === undefined ? {} : { remote }
    this.documents.set("pi_1", documentOf(PAYMENT_INTENT.name, { id: "pi_1" }, hidden))
    for (const operation of operations) this.documents.set(operation.id, documentOf(OPERATION.name, operation))
  }

  readonly find = (_: string, id: string) => Effect.succeed(this.documents.get(id) as OperationDocument | undefined)

  readonly #reconcile = Reconciliation.make({
    accounts: {
      read: (_, id) => Effect.succeed(this.documents.get(id)),
      list: (_, { labels, limit, olderThan }) => {
        const found = [...this.documents.values()]
          .filter(({ kind, value }) => kind === OPERATION.name && (value as Operation).status === labels!["status"])
          .filter(({ id }) => olderThan === undefined || id < olderThan)
          .toSorted((a, b) => (a.id < b.id ? 1 : -1))
        return Effect.succeed({ documents: found.slice(0, limit), hasMore: found.length > limit })
      }
    },
    processors: {
      byId: (id) =>
        id === PRC
          ? ({ id, list: () => Effect.as(Effect.sleep(this.slow), this.page) } as unknown as RemoteProcessor)
          : null
    },
    find: this.find,
    settle: (_, id) =>
      Effect.sync(() => {
        this.settled.push(id)
        const word = this.words.get(id)
        if (word === undefined) return false
        const { value } = this.documents.get(id)!
        this.documents.set(id, documentOf(OPERATION.name, { ...value, ...word }))
        return true
      }),
    adopt: (_, { id }) =>
      Effect.sync(() => {
        this.adopted.push(id)
        return this.adoption
      })
  })

  reconcile(part: ReconciliationStep["part"] = "list", after: string | null = null, processor = PRC) {
    return this.#reconcile(ACCOUNT, { processor, since: 0, part, after })
  }

  compare(...operations: ReadonlyArray<ListedOperation>) {
    this.page = { kind: "page", operations, next: null }
    return Effect.map(this.reconcile(), ({ discrepancies }) => resultsOf(discrepancies))
  }
}

const resultsOf = (discrepancies: ReadonlyArray<Discrepancy>) => discrepancies.map(({ id, result }) => [id, result])

describe("processors.reconcile: an operation of the processor's list", () => {
  it.effect("that has the same outcome here is not looked at", () =>
    Effect.gen(function* () {
      const scene = new Scene([
        operationOf("op_1"),
        operationOf("op_2", { outcome: outcomeOf("declined") }),
        operationOf("op_3", { outcome: outcomeOf("refused") }),
        operationOf("op_4", { outcome: outcomeOf("superseded") })
      ])
      const results = yield* scene.compare(
        listed("op_1"),
        listed("op_2", { status: "declined" }),
        listed("op_3", { status: "not_executed" }),
        listed("op_4", { status: "not_executed" })
      )
      assert.deepStrictEqual([results, scene.settled], [[], []])
    })
  )

  it.effect.each([
    ["approved there alone", operationOf("op_1", { outcome: outcomeOf("declined") }), listed("op_1")],
    ["approved here alone", operationOf("op_1"), listed("op_1", { status: "declined" })],
    ["of another amount", operationOf("op_1"), listed("op_1", { amount: 2001 })],
    ["of another payment", operationOf("op_1"), listed("op_1", { payment: "pi_2" })],
    [
      "still asked for there",
      operationOf("op_1", { outcome: outcomeOf("declined") }),
      listed("op_1", { status: "pending" })
    ]
  ] as const)("that is %s is looked at, and reported if that does not bring the same", ([, here, there]) =>
    Effect.gen(function* () {
      const scene = new Scene([here])
      assert.deepStrictEqual(yield* scene.compare(there), [["op_1", "differs"]])
      assert.deepStrictEqual(scene.settled, ["op_1"])
      scene.words.set("op_1", { status: "decide" })
      assert.deepStrictEqual(yield* scene.compare(there), [])
    })
  )

  it.effect("that has no outcome here is looked at, and left to its own part if there is no word", () =>
    Effect.gen(function* () {
      const scene = new Scene([operationOf("op_1", { status: "unresolved", outcome: null })])
      assert.deepStrictEqual(yield* scene.compare(listed("op_1")), [])
      assert.deepStrictEqual(scene.settled, ["op_1"])
      const unresolved = yield* scene.reconcile("unresolved")
      assert.deepStrictEqual(resultsOf(unresolved.discrepancies), [["op_1", "unanswered"]])
    })
  )

  it.effect("that is unknown here is taken in, unless its payment or its card is lost or its kind is not known", () =>
    Effect.gen(function* () {
      const scene = new Scene([])
      const results = yield* scene.compare(
        listed("op_1", { kind: "refund" }),
        listed("op_2", { kind: "capture", payment: "pi_2" }),
        listed("op_3"),
        listed("op_4", { kind: null }),
        listed("op_5", { kind: "void", amount: null }),
        listed("rf_1", { kind: "refund" }),
        listed("op_6", { status: "declined" }),
        listed("op_7", { payment: null })
      )
      assert.deepStrictEqual(
        new Map(results as Array<[string, string]>),
        new Map([
          ["op_1", "taken_in"],
          ["op_2", "unknown_payment"],
          ["op_3", "unknown_operation"],
          ["op_4", "unknown_operation"],
          ["op_5", "unknown_operation"],
          ["rf_1", "taken_in"],
          ["op_7", "unknown_payment"]
        ])
      )
      assert.deepStrictEqual(scene.adopted, ["op_1", "rf_1"])
    })
  )

  it.effect("that is unknown here is not taken in for another processor's payment, and a known refund not again", () =>
    Effect.gen(function* () {
      const theirs = new Scene([], { processor: "prc_2" })
      assert.deepStrictEqual(yield* theirs.compare(listed("op_1", { kind: "refund" })), [["op_1", "unknown_operation"]])
      const known = new Scene([], { processor: PRC, refunds: ["rf_1"] })
      assert.deepStrictEqual(yield* known.compare(listed("rf_1", { kind: "refund" })), [])
      assert.deepStrictEqual([theirs.adopted, known.adopted], [[], []])
    })
  )

  it.effect("is reported if the processor gives no word about it, and not if a look does not find it", () =>
    Effect.gen(function* () {
      const scene = new Scene([])
      scene.adoption = "unheard"
      assert.deepStrictEqual(yield* scene.compare(listed("op_1", { kind: "refund" })), [["op_1", "unanswered"]])
      scene.adoption = "nothing"
      assert.deepStrictEqual(yield* scene.compare(listed("op_1", { kind: "refund" })), [])
    })
  )

  it.effect("may have any id: only Till's own are read", () =>
    Effect.gen(function* () {
      const scene = new Scene([])
      const strange = ["", "\0", "pi_1", "x".repeat(300)].map((id) => listed(id, { kind: "refund" }))
      const results = yield* scene.compare(...strange)
      assert.deepStrictEqual(
        results.map(([, result]) => result),
        ["unknown_operation", "unknown_operation", "taken_in", "unknown_operation"]
      )
    })
  )
})

describe("processors.reconcile: Till's operations without an outcome", () => {
  it.effect("are looked at page by page, those of the processor alone", () =>
    Effect.gen(function* () {
      const ids = Array.from({ length: 60 }, (_, i) => `op_${String(i).padStart(2, "0")}`)
      const waits = { status: "waiting", outcome: outcomeOf("pending") } as const
      const scene = new Scene([
        ...ids.map((id) => operationOf(id, waits)),
        operationOf("op_99", { ...waits, processor: "prc_2" })
      ])
      for (const id of ids.slice(1)) scene.words.set(id, {})
      const first = yield* scene.reconcile("waiting")
      assert.deepStrictEqual([first.compared, first.discrepancies, first.next], [49, [], "op_11"])
      const second = yield* scene.reconcile("waiting", first.next)
      assert.deepStrictEqual([second.compared, second.next], [11, null])
      assert.deepStrictEqual(resultsOf(second.discrepancies), [["op_00", "unanswered"]])
      assert.strictEqual(new Set(scene.settled).size, 60)
    })
  )

  it.effect("are reported if a person has to decide, and not once they are final", () =>
    Effect.gen(function* () {
      const scene = new Scene(["op_1", "op_2", "op_3"].map((id) => operationOf(id, { status: "open", outcome: null })))
      scene.words.set("op_1", { status: "final", outcome: outcomeOf("declined") })
      scene.words.set("op_2", { status: "decide" })
      const { discrepancies } = yield* scene.reconcile("open")
      assert.deepStrictEqual(resultsOf(discrepancies), [
        ["op_3", "unanswered"],
        ["op_2", "decide"]
      ])
      assert.isNull(discrepancies[0]!.status)
    })
  )
})

describe("processors.reconcile: a comparison", () => {
  it.effect("fails with the reason if the processor gives no list, is unknown, or takes longer than 15 seconds", () =>
    Effect.gen(function* () {
      const scene = new Scene([])
      scene.page = { kind: "unavailable", why: "No connection." }
      assert.include(yield* Effect.flip(scene.reconcile()), { message: "No connection." })
      assert.include(yield* Effect.flip(scene.reconcile("list", null, "prc_x")), {
        message: "There is no processor prc_x."
      })
      scene.slow = 16_000
      const waiting = yield* Effect.forkChild(Effect.flip(scene.reconcile()))
      yield* TestClock.adjust(15_000)
      assert.include(yield* Fiber.join(waiting), { message: "The processor answers too slowly: try again." })
    })
  )
})
