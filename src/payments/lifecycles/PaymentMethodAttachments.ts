/**
 * Attachments of payment methods to customers (semantics payment_methods.attach, payment_methods.states). A payment
 * method is attached once and detached once, by request or with the deletion of its customer, and cannot be used
 * afterwards.
 *
 * A payment method names its customer, and an entry per customer names its payment methods; only this file writes them,
 * and always together. So deleting a customer needs no search. `PAYMENT_METHODS_PER_CUSTOMER_MAX` bounds the entry and
 * the record of a deletion.
 */
import { Effect } from "effect"
import { ParameterInvalid, PaymentMethodTaken, type ResourceMissing } from "../../domain/Errors.ts"
import {
  type AttachPaymentMethod,
  PAYMENT_METHODS_PER_CUSTOMER_MAX,
  type PaymentMethod,
  type PaymentMethodOperation,
  paymentMethodStates
} from "../../domain/PaymentMethod.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import {
  findCustomer,
  findDocument,
  HELD_PAYMENT_METHODS,
  heldPaymentMethodsId,
  PAYMENT_METHOD
} from "../shared/Documents.ts"
import { emit, previousAttributes } from "../shared/Events.ts"
import { copyOfBuiltIn, isBuiltIn, type PaymentMethodDocument, stateOf } from "./PaymentMethods.ts"
import type { PaymentsConfig } from "../shared/PaymentsConfig.ts"

/** Attaches a payment method, or a copy of a built-in one. Emits `payment_method.attached` for a change. */
export const attach = Effect.fnUntraced(function* (
  id: string,
  { customer }: AttachPaymentMethod
): Effect.fn.Return<
  PaymentMethod,
  ResourceMissing | PaymentMethodTaken | ParameterInvalid,
  Transaction | PaymentsConfig
> {
  const transaction = yield* Transaction
  const before = (yield* copyOfBuiltIn(id)) ?? (yield* findDocument(PAYMENT_METHOD, id))
  yield* findCustomer(customer, "customer")
  const { customer: holder } = before.value
  if (holder === customer) return before.value
  if (holder !== null) return yield* new PaymentMethodTaken({ id })
  yield* requireAllowed("attach", before)
  const held = yield* heldBy(customer)
  if (held.length >= PAYMENT_METHODS_PER_CUSTOMER_MAX) {
    const rule = `a customer with fewer than ${PAYMENT_METHODS_PER_CUSTOMER_MAX} payment methods`
    return yield* new ParameterInvalid({ param: "customer", rule })
  }
  hold(transaction, customer, [...held, before.value.id])
  const { value } = move(transaction, "attach", before, customer)
  emit(transaction, "payment_method.attached", value.id)
  return value
})

/**
 * Attaches the payment method of a successful payment, for `setup_future_usage`, and returns the id that the payment
 * names afterwards: of a built-in one, the copy's. The payment stands even if the payment method cannot be attached
 * because it was attached to another customer or detached, or the customer was deleted, since the attempt.
 */
export const save = (id: string, customer: string): Effect.Effect<string, never, Transaction | PaymentsConfig> =>
  attach(id, { customer }).pipe(
    Effect.map((attached) => attached.id),
    Effect.orElseSucceed(() => id)
  )

/** Detaches an attached payment method for good. Emits `payment_method.detached`. */
export const detach = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<PaymentMethod, ResourceMissing | ParameterInvalid, Transaction> {
  const transaction = yield* Transaction
  if (isBuiltIn(transaction.account, id)) return yield* notAllowed("detach")
  const document = yield* findDocument(PAYMENT_METHOD, id)
  yield* requireAllowed("detach", document)
  const customer = document.value.customer!
  const held = yield* heldBy(customer)
  hold(
    transaction,
    customer,
    held.filter((one) => one !== id)
  )
  return release(transaction, document)
})

/** Detaches all payment methods of a customer who is being deleted, in the order of their attachment. */
export const detachAll = Effect.fnUntraced(function* (customer: string): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const entry = yield* transaction.get(HELD_PAYMENT_METHODS, heldPaymentMethodsId(customer))
  if (entry === undefined) return
  for (const id of entry.value.data) {
    release(transaction, (yield* transaction.get(PAYMENT_METHOD, id))!)
  }
  transaction.delete(HELD_PAYMENT_METHODS, entry.id)
})

const release = (transaction: Transaction, before: PaymentMethodDocument): PaymentMethod => {
  const { value } = move(transaction, "detach", before, null)
  emit(transaction, "payment_method.detached", value.id, previousAttributes(before.value, value))
  return value
}

/** Writes a payment method with its new customer, or null. Throws if the state table forbids the transition. */
const move = (
  transaction: Transaction,
  operation: "attach" | "detach",
  before: PaymentMethodDocument,
  customer: string | null
): PaymentMethodDocument => {
  const value = { ...before.value, customer }
  const after = { value, hidden: { ...before.hidden, detached: operation === "detach" } }
  paymentMethodStates.requireTransition(value.id, operation, stateOf(before), stateOf(after))
  transaction.put(PAYMENT_METHOD, after.value, after.hidden)
  return after
}

const heldBy = Effect.fnUntraced(function* (
  customer: string
): Effect.fn.Return<ReadonlyArray<string>, never, Transaction> {
  const transaction = yield* Transaction
  const entry = yield* transaction.get(HELD_PAYMENT_METHODS, heldPaymentMethodsId(customer))
  return entry?.value.data ?? []
})

const hold = (transaction: Transaction, customer: string, data: ReadonlyArray<string>): void =>
  transaction.put(HELD_PAYMENT_METHODS, { id: heldPaymentMethodsId(customer), data })

const RULES: Readonly<Record<"attach" | "detach", string>> = {
  attach: "a payment method that was not detached before",
  detach: "a payment method that a customer has"
}

const notAllowed = (operation: "attach" | "detach"): ParameterInvalid =>
  new ParameterInvalid({ param: "id", rule: RULES[operation] })

const requireAllowed = (
  operation: Extract<PaymentMethodOperation, "attach" | "detach">,
  document: PaymentMethodDocument
): Effect.Effect<void, ParameterInvalid> =>
  paymentMethodStates.isAllowed(operation, stateOf(document)) ? Effect.void : Effect.fail(notAllowed(operation))
