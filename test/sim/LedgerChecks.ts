/**
 * The checks after a simulation of operations, thirty days after its last fault (semantics operations.*):
 * - Till's payments, refunds and operations agree with the gateway's ledger, except about what a person has to decide;
 * - every operation has an outcome, or waits for a payer or a person;
 * - the gateway has no operation that Till does not have, none was sent with two bodies, and no request was carried out
 *   twice: one authorization and one capture per payment, and no more refunded than captured;
 * - no event happened twice.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { CheckoutSession } from "../../src/domain/CheckoutSession.ts"
import type { Operation } from "../../src/domain/Operation.ts"
import type { PaymentIntent } from "../../src/domain/PaymentIntent.ts"
import type { Refund } from "../../src/domain/Refund.ts"
import type { AccountsShape } from "../../src/engine/Accounts.ts"
import type { OperationDocument } from "../../src/payments/lifecycles/Operations.ts"
import { CHECKOUT_SESSION, PAYMENT_INTENT, REFUND } from "../../src/payments/shared/Documents.ts"
import type { VirtualProcessor } from "../models/Operations.ts"
import { anHour, type GatewayWorld } from "./GatewayWorld.ts"
import { decide, operationsOf } from "./Person.ts"
import type { Process } from "./Process.ts"

/** All that Till shows of an account. */
interface Shown {
  readonly operations: ReadonlyArray<OperationDocument>
  readonly payments: ReadonlyArray<PaymentIntent>
  readonly refunds: ReadonlyArray<Refund>
  readonly sessions: ReadonlyArray<CheckoutSession>
}

const valuesOf = <A>(accounts: AccountsShape, account: string, kind: { readonly name: string }) =>
  Effect.map(Effect.orDie(accounts.list(account, { kind: kind.name, limit: 100 })), ({ documents }) =>
    documents.map(({ value }) => value as A)
  )

const shownOf = (accounts: AccountsShape, account: string): Effect.Effect<Shown> =>
  Effect.all({
    operations: Effect.orDie(operationsOf(accounts, account)),
    payments: valuesOf<PaymentIntent>(accounts, account, PAYMENT_INTENT),
    refunds: valuesOf<Refund>(accounts, account, REFUND),
    sessions: valuesOf<CheckoutSession>(accounts, account, CHECKOUT_SESSION)
  })

/** Returns true for the return of a payment's money that a person has decided not to have happened. */
const isLeftToPerson = ({ hidden, value }: OperationDocument, payment: PaymentIntent): boolean =>
  value.payment_intent === payment.id &&
  hidden.cause === "reverse" &&
  value.resolved_by === "operator" &&
  value.outcome?.kind === "not_executed"

/** Compares a payment with the ledger. */
const agrees = (gateway: VirtualProcessor, payment: PaymentIntent, { operations, refunds, sessions }: Shown): void => {
  const entry = gateway.entry(payment.id)
  const { captured, refunded, status } = entry
  const own = refunds.filter(({ payment_intent }) => payment_intent === payment.id)
  const returned = own.filter((refund) => refund.status === "succeeded").reduce((sum, { amount }) => sum + amount, 0)
  const about = operations
    .filter(({ value }) => value.payment_intent === payment.id)
    .map(({ hidden: { cause, evidence }, value }) => [value, cause, evidence])
  const shown = JSON.stringify({ payment: { ...payment, charges: [] }, entry, about }, null, 1)
  assert.deepStrictEqual(
    own.filter((refund) => refund.status === "pending"),
    [],
    shown
  )
  assert.isUndefined(payment.pending_operation, shown)
  switch (payment.status) {
    case "succeeded":
      assert.deepStrictEqual([status, captured, refunded], ["captured", payment.amount_received, returned], shown)
      break
    case "requires_capture":
      assert.strictEqual(status, "held", shown)
      break
    case "requires_action":
      assert.strictEqual(status, "challenged", shown)
      break
    default:
      assert.notStrictEqual(payment.status, "processing", shown)
      // Money that was taken is given back, unless a person has said that the return did not happen.
      if (operations.some((operation) => isLeftToPerson(operation, payment))) break
      assert.isFalse(status === "held" || captured !== refunded, shown)
  }
  const session = sessions.find(({ payment_intent }) => payment_intent === payment.id)
  if (session !== undefined) {
    assert.strictEqual(session.payment_status === "paid", payment.status === "succeeded", shown)
  }
}

/** Checks that no request was carried out twice, and that the gateway keeps nothing that Till has forgotten. */
const isOnce = (gateway: VirtualProcessor, { operations }: Shown): void => {
  assert.deepStrictEqual(gateway.conflicts, [], "an operation was sent with two bodies")
  const known = new Set(operations.map(({ value }) => value.id))
  const unknown = gateway.operations.filter(({ id }) => !known.has(id))
  assert.deepStrictEqual(unknown, [], "the gateway has an operation that Till does not have")
  const seen = new Map<string, number>()
  const count = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1)
  for (const { amount, id, kind, payment } of gateway.ledger) {
    count(`operation ${id}`)
    if (kind === "authorize" || kind === "capture") count(`${kind} of ${payment}`)
    if (kind === "refund") count(`refund of ${payment} with the request of ${amount}`)
  }
  const twice = [...seen].filter(([, times]) => times > 1).map(([what]) => what)
  assert.deepStrictEqual(twice, [], "carried out twice")
  for (const { captured, refunded } of gateway.entries.values()) assert.isAtMost(refunded, captured)
}

const eventsAreOnce = Effect.fnUntraced(function* (
  accounts: AccountsShape,
  account: string,
  { operations, payments }: Shown
) {
  const { events } = yield* Effect.orDie(accounts.events(account, { limit: 1000 }))
  // Each attempt may ask the payer, of a payment that is the same as at the attempt before.
  const isAsking = ({ type }: { readonly type: string }) => type === "payment_intent.requires_action"
  const happened = events.filter((event) => !isAsking(event)).map(({ object, type }) => `${type} ${object}`)
  const twice = happened.filter((event, i) => happened.indexOf(event) !== i)
  assert.deepStrictEqual(twice, [], "an event happened twice")
  const idOf = ({ object }: { readonly object: string }) => (JSON.parse(object) as { readonly id: string }).id
  for (const { id } of payments) {
    const asked = events.filter((event) => isAsking(event) && idOf(event) === id)
    const attempts = operations.filter(({ value }) => value.kind === "authorize" && value.payment_intent === id)
    assert.isAtMost(asked.length, attempts.length, "a payer was asked twice by one attempt")
  }
  for (const {
    value: { id, status }
  } of operations) {
    const types = events.filter((event) => idOf(event) === id).map(({ type }) => type)
    const alternating = types.map((_, i) => (i % 2 === 0 ? "operation.unresolved" : "operation.resolved"))
    assert.deepStrictEqual(types.toReversed(), alternating, "semantics operations.events")
    assert.isTrue(status !== "final" || types.length % 2 === 0, "an outcome was not announced")
    assert.isTrue(status !== "decide" || types.length % 2 === 1, "a decision was not asked for")
  }
})

/** Checks an account. Returns the operations that a person has to decide about. */
const checked = Effect.fnUntraced(function* (
  accounts: AccountsShape,
  account: string,
  gateway: VirtualProcessor
): Effect.fn.Return<ReadonlyArray<Operation>> {
  const shown = yield* shownOf(accounts, account)
  const undecided = shown.operations.filter(({ value }) => value.status === "decide").map(({ value }) => value)
  const doubtful = new Set(undecided.map(({ payment_intent }) => payment_intent))
  isOnce(gateway, shown)
  for (const { hidden, value } of shown.operations) {
    // A challenge waits for its payer, or for the operation that is to be decided.
    const { status } = gateway.entry(value.payment_intent)
    const isAsked = value.status === "waiting" && (status === "challenged" || doubtful.has(value.payment_intent))
    // The processor has confirmed each decision of a person.
    const isCertain = value.status === "final" && !hidden.asks
    const isEnded = isCertain || value.status === "decide" || isAsked
    assert.isTrue(isEnded, JSON.stringify([value, hidden.evidence]))
  }
  for (const payment of shown.payments) if (!doubtful.has(payment.id)) agrees(gateway, payment, shown)
  yield* eventsAreOnce(accounts, account, shown)
  return undecided
})

/** Checks an account, has a person decide what is to be decided, and checks the account once more. */
export const agreesWithLedger = Effect.fnUntraced(function* (
  { accounts }: Process,
  account: string,
  world: GatewayWorld
): Effect.fn.Return<void> {
  const { gateway, plan } = world
  const undecided = yield* checked(accounts, account, gateway)
  if (plan.faults === 0 && !world.mayJump) assert.isEmpty(undecided, `always answered: ${JSON.stringify(undecided)}`)
  if (undecided.length === 0) return
  let left = undecided
  while (left.length > 0) {
    const refused: Array<Operation> = []
    for (const operation of left) {
      if (!(yield* Effect.orDie(decide(accounts, account, operation, world)))) refused.push(operation)
    }
    assert.isBelow(refused.length, left.length, `decisions were refused: ${JSON.stringify(refused)}`)
    yield* anHour(world)
    left = refused
  }
  assert.deepStrictEqual(yield* checked(accounts, account, gateway), [], "a decision did not end an operation")
})
