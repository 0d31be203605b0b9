/** The calls for operations, in virtual time: which, when, and under which key (semantics operations.*). */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Exit, Layer, References, Scope } from "effect"
import type { Operation } from "../../src/domain/Operation.ts"
import type { PaymentIntent } from "../../src/domain/PaymentIntent.ts"
import { Accounts } from "../../src/engine/Accounts.ts"
import { partitionOf, Placement } from "../../src/engine/process/Placement.ts"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import { OperationDispatcher } from "../../src/payments/lifecycles/OperationDispatcher.ts"
import * as OperationOutcomes from "../../src/payments/lifecycles/OperationOutcomes.ts"
import * as PaymentIntents from "../../src/payments/lifecycles/PaymentIntents.ts"
import { PaymentsConfig } from "../../src/payments/shared/PaymentsConfig.ts"
import { Processors } from "../../src/payments/processing/Processor.ts"
import type { Outcome, RemoteProcessor } from "../../src/payments/processing/RemoteProcessor.ts"
import * as Refunds from "../../src/payments/lifecycles/Refunds.ts"
import * as TestHelpers from "../../src/payments/TestHelpers.ts"
import * as Harness from "../engine/Harness.ts"
import { PROCESSOR, VirtualProcessor } from "../models/Operations.ts"
import * as Fixtures from "../support/fixtures/Operations.ts"
import { engineWithOperations } from "../support/MemoryEngine.ts"
import { paymentsConfig } from "../support/PaymentsConfig.ts"

const SECOND = 1000
const HOUR = 3600 * SECOND
const ACCOUNT = "mer_1:test"

const UNKNOWN: Outcome = { kind: "unknown", why: "The connection was lost." }
const NEVER_SEEN: Outcome = { kind: "not_executed", why: "never seen", retryAfterMillis: null }
const CHALLENGE: Outcome = { kind: "challenge", url: "https://bank.example/3ds", reference: "ref_1" }
const approved = (amount: number = 2000): Outcome => ({ ...Fixtures.APPROVED, amount }) as Outcome

type Name = "perform" | "look" | "fence"

/** A processor that answers as a test decides, and keeps its calls with their times. */
class Scripted {
  answers: Record<Name, (count: number) => Outcome | Effect.Effect<Outcome>> = {
    perform: () => UNKNOWN,
    look: () => UNKNOWN,
    fence: () => UNKNOWN
  }
  calls: Array<readonly [name: Name, operation: string, atMillis: number]> = []
  keyMillis = 24 * HOUR

  readonly #call = (name: Name, id: string): Effect.Effect<Outcome> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      this.calls.push([name, id, now])
      const answer = this.answers[name](this.calls.filter(([called]) => called === name).length)
      return Effect.isEffect(answer) ? answer : Effect.succeed(answer)
    })

  get remote(): RemoteProcessor {
    const { remote } = new VirtualProcessor()
    return {
      ...remote,
      keyMillis: this.keyMillis,
      perform: ({ id }) => this.#call("perform", id),
      look: ({ id }) => this.#call("look", id),
      fence: ({ id }) => this.#call("fence", id)
    }
  }

  /** The calls since a time, with seconds from then. */
  since(begun: number): ReadonlyArray<readonly [Name, number]> {
    return this.calls.map(([name, , at]) => [name, Math.round((at - begun) / SECOND)])
  }
}

/** A service with a scripted processor, in the time of the test clock. */
const starting = Effect.fnUntraced(function* (placement: Layer.Layer<Placement>) {
  yield* Harness.startClock
  const processor = new Scripted()
  const virtual = new VirtualProcessor()
  const processors = Layer.sync(Processors, () => virtual.processorsOf(processor.remote))
  const layer = engineWithOperations(processors, undefined, placement).pipe(
    Layer.provide(Layer.succeed(PaymentsConfig, paymentsConfig()))
  )
  const services = yield* Effect.acquireRelease(
    Effect.flatMap(Scope.make(), (scope) =>
      Effect.map(Harness.buildAlone(layer, scope), (services) => ({ scope, services }))
    ),
    ({ scope }) => Scope.close(scope, Exit.void)
  )
  return { processor, service: new Service(services.services) }
})

const started = (placement: Layer.Layer<Placement>) =>
  Effect.provideService(starting(placement), References.MinimumLogLevel, "None")

type Services = Accounts | OperationDispatcher | Placement

class Service {
  readonly accounts: Accounts["Service"]
  readonly placement: Placement["Service"]
  readonly look: OperationDispatcher["Service"]["look"]
  readonly shop: Fixtures.Shop

  constructor(services: Context.Context<Services>) {
    this.accounts = Context.get(services, Accounts)
    this.placement = Context.get(services, Placement)
    this.look = Context.get(services, OperationDispatcher).look
    this.shop = { accounts: this.accounts, merchantId: "mer_1" }
  }

  readonly run = <A, E>(command: Parameters<typeof Fixtures.run<A, E>>[1]): Effect.Effect<A> =>
    Effect.promise(() => Fixtures.run(this.shop, command))

  readonly begin = (terms: object = {}): Effect.Effect<Fixtures.Made> =>
    Effect.promise(() => Fixtures.begin(this.shop, terms))

  /** A person's decision; the reference says that it has happened. */
  readonly decide = (operation: string, reference: string | null): Effect.Effect<boolean> =>
    this.run(OperationOutcomes.decide(operation, reference))

  readonly operation = (id: string): Effect.Effect<Operation> => this.#read(id)
  readonly payment = (id: string): Effect.Effect<PaymentIntent> => this.#read(id)

  readonly #read = <A>(id: string): Effect.Effect<A> =>
    Effect.map(Effect.orDie(this.accounts.read(ACCOUNT, id)), (entry) => {
      if (entry === undefined || entry.deleted) throw new Error(`There is no ${id}`)
      return entry.value as unknown as A
    })
}

/** Begins the operation of a command, with an approval before. */
const afterApproval = Effect.fnUntraced(function* (
  { processor, service }: Effect.Success<ReturnType<typeof started>>,
  terms: object,
  command: (id: string) => Parameters<Service["run"]>[0]
) {
  processor.answers.perform = () => approved()
  const { payment } = yield* service.begin(terms)
  yield* Harness.settled
  processor.answers.perform = () => UNKNOWN
  processor.calls = []
  const begun = yield* Clock.currentTimeMillis
  yield* service.run(command(payment))
  return { payment, begun, operation: (yield* service.payment(payment)).pending_operation!.id }
})

describe("an open operation", () => {
  it.effect("operations.states: unknown is looked at after 1, 4 and 10 s, with the same key again", () =>
    Effect.gen(function* () {
      const { processor, service } = yield* started(Placement.layerSole)
      processor.answers.look = () => NEVER_SEEN
      const begun = yield* Clock.currentTimeMillis
      const { operation } = yield* service.begin()
      yield* Harness.pass(19 * SECOND, SECOND)
      assert.deepStrictEqual(processor.since(begun), [
        ["perform", 0],
        ["look", 1],
        ["perform", 1],
        ["look", 4],
        ["perform", 4],
        ["look", 10],
        ["perform", 10]
      ])
      assert.deepStrictEqual([...new Set(processor.calls.map(([, id]) => id))], [operation])
      assert.strictEqual((yield* service.operation(operation)).status, "open")
    })
  )

  it.effect("operations.states: only the very first call's denial counts", () =>
    Effect.gen(function* () {
      const { processor, service } = yield* started(Placement.layerSole)
      processor.answers.perform = () => NEVER_SEEN
      const denied = yield* service.begin()
      yield* Harness.settled
      assert.include(yield* service.operation(denied.operation), { status: "final", resolved_by: "answer" })
      processor.calls = []
      processor.answers.perform = (count) => (count === 1 ? UNKNOWN : NEVER_SEEN)
      const { operation } = yield* service.begin()
      yield* Harness.pass(15 * SECOND, SECOND)
      assert.strictEqual((yield* service.operation(operation)).status, "open")
    })
  )

  it.effect("operations.looks: is called at once when its partition comes to another process", () =>
    Effect.gen(function* () {
      const { processor, service } = yield* started(Placement.layerSharedBy(() => 0))
      const partition = partitionOf(ACCOUNT)
      service.placement.confirm(0)
      // Events have the version of the merchant, which is in the installation's account.
      yield* service.placement.acquire(partitionOf(INSTALLATION))
      yield* service.placement.acquire(partition)
      const { operation } = yield* service.begin()
      yield* Harness.settled
      const released = yield* Effect.forkChild(service.placement.release(partition))
      // An operation between two calls is given two seconds.
      yield* Harness.pass(6 * SECOND, SECOND)
      assert.isNotNull(released.pollUnsafe())
      const calls = processor.calls.length
      processor.answers.perform = () => approved()
      yield* service.placement.acquire(partition)
      yield* Harness.pass(SECOND, 100)
      assert.deepStrictEqual(
        processor.calls.slice(calls).map(([name, id]) => [name, id]),
        [["perform", operation]]
      )
      assert.strictEqual((yield* service.operation(operation)).status, "final")
    })
  )

  it.effect("operations.states: a first call's denial does not count once another process may have called", () =>
    Effect.gen(function* () {
      const { processor, service } = yield* started(Placement.layerSharedBy(() => 0))
      const partition = partitionOf(ACCOUNT)
      service.placement.confirm(0)
      // Events have the version of the merchant, which is in the installation's account.
      yield* service.placement.acquire(partitionOf(INSTALLATION))
      yield* service.placement.acquire(partition)
      processor.answers.perform = (count) => (count === 1 ? Effect.as(Effect.sleep(15 * SECOND), NEVER_SEEN) : UNKNOWN)
      const { operation } = yield* service.begin()
      yield* Harness.settled
      const released = yield* Effect.forkChild(service.placement.release(partition))
      yield* Harness.pass(10 * SECOND, SECOND)
      assert.isNotNull(released.pollUnsafe())
      yield* service.placement.acquire(partition)
      yield* Harness.pass(8 * SECOND, SECOND)
      assert.strictEqual((yield* service.operation(operation)).status, "open")
    })
  )

  it.effect("of a test account whose data was deleted changes nothing", () =>
    Effect.gen(function* () {
      const { processor, service } = yield* started(Placement.layerSole)
      processor.answers.perform = () => Effect.as(Effect.sleep(5 * SECOND), approved())
      const { operation, payment } = yield* service.begin()
      yield* service.run(TestHelpers.deleteData)
      yield* Harness.pass(60 * SECOND, SECOND)
      for (const id of [operation, payment]) {
        assert.isUndefined(yield* Effect.orDie(service.accounts.read(ACCOUNT, id)))
      }
    })
  )
})

describe("a challenge beside another attempt", () => {
  it.effect("operations.states: is ended at the processor once the payment has gone on without it", () =>
    Effect.gen(function* () {
      const { processor, service } = yield* started(Placement.layerSole)
      processor.answers.perform = (count) => (count === 1 ? CHALLENGE : UNKNOWN)
      const first = yield* service.begin()
      yield* Harness.pass(SECOND, SECOND)
      processor.answers.look = () => CHALLENGE
      yield* Effect.orDie(service.look(ACCOUNT, first.operation, "look"))
      assert.strictEqual((yield* service.operation(first.operation)).status, "waiting")
      assert.notInclude(
        processor.calls.map(([name]) => name),
        "fence"
      )
      processor.answers.look = () => UNKNOWN
      const second = yield* Effect.promise(() => Fixtures.confirmAgain(service.shop, first))
      yield* Harness.pass(25 * SECOND, SECOND)
      assert.strictEqual((yield* service.payment(first.payment)).status, "processing")
      processor.answers.look = () => CHALLENGE
      processor.answers.fence = () => NEVER_SEEN
      yield* Harness.pass(90 * SECOND, SECOND)
      for (const { operation } of [second, first]) {
        assert.deepInclude(yield* service.operation(operation), { status: "final", resolved_by: "look" })
      }
      assert.strictEqual((yield* service.payment(first.payment)).status, "requires_payment_method")
    })
  )
})

describe("an unresolved operation", () => {
  for (const found of [NEVER_SEEN, CHALLENGE]) {
    it.effect(
      `operations.states: authorize, ${found.kind}: declined once the processor confirms that it never will be`,
      () =>
        Effect.gen(function* () {
          const { processor, service } = yield* started(Placement.layerSole)
          const { operation, payment } = yield* service.begin()
          yield* Harness.pass(25 * SECOND, SECOND)
          assert.strictEqual((yield* service.operation(operation)).status, "unresolved")
          processor.calls = []
          processor.answers.look = () => found
          yield* Harness.pass(90 * SECOND, SECOND)
          assert.isTrue(processor.calls.every(([name]) => name !== "perform"))
          assert.include(
            processor.calls.map(([name]) => name),
            "fence"
          )
          assert.strictEqual((yield* service.operation(operation)).status, "unresolved")
          processor.answers.fence = () => NEVER_SEEN
          yield* Harness.pass(60 * SECOND, SECOND)
          assert.strictEqual((yield* service.operation(operation)).status, "final")
          assert.strictEqual((yield* service.payment(payment)).last_payment_error?.decline_code, "processing_error")
        })
    )
  }

  const capture = (id: string) => PaymentIntents.capture(id, {})
  const cancel = (id: string) => PaymentIntents.cancel(id, {})
  const refund = (id: string) => Refunds.create({ payment_intent: id, amount: 500 })
  for (const [kind, terms, command] of [
    ["capture", { capture_method: "manual" }, capture],
    ["void", { capture_method: "manual" }, cancel],
    ["refund", {}, refund]
  ] as const) {
    it.effect(
      `operations.states: ${kind}, not executed: the same key again, until an hour before its end; then a fence`,
      () =>
        Effect.gen(function* () {
          const made = yield* started(Placement.layerSole)
          const { processor, service } = made
          const { begun, operation } = yield* afterApproval(made, terms, command as typeof capture)
          processor.answers.look = () => NEVER_SEEN
          yield* Harness.pass(60 * SECOND, SECOND)
          yield* Harness.pass(24 * HOUR - 120 * SECOND, HOUR / 4)
          const performed = processor.calls.filter(([name]) => name === "perform").map(([, , at]) => at - begun)
          const fenced = processor.calls.filter(([name]) => name === "fence").map(([, , at]) => at - begun)
          assert.isAbove(performed.at(-1)!, 21 * HOUR)
          assert.isBelow(performed.at(-1)!, 23 * HOUR)
          assert.isNotEmpty(fenced)
          assert.isAtLeast(fenced[0]!, 23 * HOUR)
          assert.deepStrictEqual([...new Set(processor.calls.map(([, id]) => id))], [operation])
          assert.strictEqual((yield* service.operation(operation)).status, "unresolved")
          processor.answers.fence = () => NEVER_SEEN
          yield* service.look(ACCOUNT, operation, "look").pipe(Effect.orDie)
          assert.include(yield* service.operation(operation), { status: "final", resolved_by: "look" })
        })
    )
  }

  /** A capture about which a person has to decide. */
  const undecided = Effect.fnUntraced(function* (made: Effect.Success<ReturnType<typeof started>>) {
    const { operation } = yield* afterApproval(made, { capture_method: "manual" }, capture)
    yield* Harness.pass(60 * SECOND, SECOND)
    yield* Harness.pass(25 * HOUR, HOUR)
    return operation
  })

  it.effect("operations.states: a first call's denial does not count after another call", () =>
    Effect.gen(function* () {
      const made = yield* started(Placement.layerSole)
      const { processor, service } = made
      const denied = Effect.as(Effect.sleep(35 * SECOND), NEVER_SEEN)
      processor.answers.perform = (count) => (count === 1 ? approved() : count === 2 ? denied : UNKNOWN)
      const { payment } = yield* service.begin({ capture_method: "manual" })
      yield* Harness.settled
      yield* service.run(capture(payment))
      const operation = (yield* service.payment(payment)).pending_operation!.id
      yield* Harness.pass(25 * SECOND, SECOND)
      processor.answers.look = () => NEVER_SEEN
      yield* Effect.orDie(service.look(ACCOUNT, operation, "webhook"))
      assert.strictEqual(processor.calls.filter(([name]) => name === "perform").length, 3)
      processor.answers.look = () => UNKNOWN
      yield* Harness.pass(12 * SECOND, SECOND)
      assert.strictEqual((yield* service.operation(operation)).status, "unresolved")
    })
  )

  it.effect("operations.decide: nothing is sent again once a person has to decide, and it is asked about daily", () =>
    Effect.gen(function* () {
      const made = yield* started(Placement.layerSole)
      const { processor, service } = made
      const operation = yield* undecided(made)
      assert.strictEqual((yield* service.operation(operation)).status, "decide")
      processor.calls = []
      processor.answers.look = () => NEVER_SEEN
      yield* Harness.pass(72 * HOUR, HOUR)
      assert.deepStrictEqual(
        processor.calls.map(([name]) => name),
        ["look", "look", "look"]
      )
      assert.strictEqual((yield* service.operation(operation)).status, "decide")
      processor.answers.look = () => approved()
      yield* Harness.pass(25 * HOUR, HOUR)
      assert.include(yield* service.operation(operation), {
        status: "final",
        resolved_by: "look",
        processor: PROCESSOR
      })
    })
  )

  for (const [given, end] of [
    [NEVER_SEEN, "final"],
    [approved(), "decide"]
  ] as const) {
    it.effect(`operations.decide: what a person says has not happened is given up at once: ${given.kind}`, () =>
      Effect.gen(function* () {
        const made = yield* started(Placement.layerSole)
        const { processor, service } = made
        const operation = yield* undecided(made)
        processor.calls = []
        processor.answers.look = (count) => (count === 1 ? UNKNOWN : NEVER_SEEN)
        processor.answers.fence = () => given
        yield* service.decide(operation, null)
        yield* Harness.settled
        assert.include(yield* service.operation(operation), { status: "final", resolved_by: "operator" })
        // No answer at first: it is asked again after a day.
        yield* Harness.pass(25 * HOUR, HOUR)
        assert.strictEqual((yield* service.operation(operation)).status, end)
        processor.answers.look = () => given
        yield* Harness.pass(50 * HOUR, HOUR)
        const before = ["look", "look", "fence"]
        const isContradicted = end === "decide"
        assert.deepStrictEqual(
          processor.calls.map(([name]) => name),
          isContradicted ? [...before, "look"] : before
        )
        // The processor's word, twice, counts.
        assert.include(yield* service.operation(operation), {
          status: "final",
          resolved_by: isContradicted ? "look" : "operator"
        })
        // A message about a confirmed decision gives nothing up once more.
        processor.calls = []
        yield* Effect.orDie(service.look(ACCOUNT, operation, "webhook"))
        assert.deepStrictEqual(
          processor.calls.map(([name]) => name),
          ["look"]
        )
      })
    )
  }

  it.effect("operations.decide: what a person says has happened is asked about, and never given up", () =>
    Effect.gen(function* () {
      const made = yield* started(Placement.layerSole)
      const { processor, service } = made
      const operation = yield* undecided(made)
      processor.calls = []
      processor.answers.look = () => NEVER_SEEN
      yield* service.decide(operation, "ref_1")
      yield* Harness.settled
      assert.deepStrictEqual(
        processor.calls.map(([name]) => name),
        ["look"]
      )
      assert.strictEqual((yield* service.operation(operation)).status, "decide")
    })
  )

  it.effect(
    "operations.decide: an authorization that a person says has not happened is given up at its challenge",
    () =>
      Effect.gen(function* () {
        const { processor, service } = yield* started(Placement.layerSole)
        const { operation } = yield* service.begin()
        yield* Harness.pass(60 * SECOND, SECOND)
        yield* Harness.pass(25 * HOUR, HOUR)
        processor.calls = []
        processor.answers.look = () => CHALLENGE
        processor.answers.fence = () => NEVER_SEEN
        yield* service.decide(operation, null)
        yield* Harness.pass(25 * HOUR, HOUR)
        // The processor has confirmed it: no daily look follows.
        assert.deepStrictEqual(
          processor.calls.map(([name]) => name),
          ["look", "fence"]
        )
        assert.include(yield* service.operation(operation), { status: "final", resolved_by: "operator" })
      })
  )
})

describe("an operation made at the processor itself", () => {
  it.effect("operations.adopted: is never sent again, nor given up", () =>
    Effect.gen(function* () {
      const { processor, service } = yield* started(Placement.layerSole)
      processor.answers.perform = () => approved()
      const { payment } = yield* service.begin()
      yield* Harness.settled
      processor.calls = []
      processor.answers.look = () => NEVER_SEEN
      const made = { id: "rf_1", isLost: false, kind: "refund", amount: 500, payment } as const
      yield* service.run(OperationOutcomes.adopt(PROCESSOR, made, { kind: "pending", reference: "rf_1" }, "webhook"))
      const { documents } = yield* Effect.orDie(service.accounts.list(ACCOUNT, { kind: "operation", limit: 1 }))
      const { id } = documents[0]!
      assert.strictEqual((yield* service.operation(id)).status, "waiting")
      yield* Harness.pass(90 * SECOND, SECOND)
      assert.deepStrictEqual(
        processor.calls.map(([name, of]) => [name, of]),
        [["look", "rf_1"]]
      )
      assert.include(yield* service.operation(id), { status: "final", resolved_by: "look" })
    })
  )
})
