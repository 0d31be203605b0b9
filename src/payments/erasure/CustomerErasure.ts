/**
 * The erasure of a customer's data (semantics erasure.*). A command begins it: the customer keeps its id only, its
 * payment methods are detached, and a timer stands until the data is gone from all records. The
 * process that serves the account does that work (`Erasers.ts`), as often as it is interrupted.
 *
 * No event tells of it: webhooks would spread what is being erased.
 */
import { Effect } from "effect"
import type { Customer, DeletedCustomer } from "../../domain/Customer.ts"
import { CustomerHasPayment, ResourceMissing } from "../../domain/Errors.ts"
import type { PaymentIntent, PaymentIntentStatus } from "../../domain/PaymentIntent.ts"
import { Accounts, type Unavailable } from "../../engine/Accounts.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import type { AccountId, Document } from "../../engine/log/Document.ts"
import * as CheckoutSessions from "../lifecycles/CheckoutSessions.ts"
import * as Customers from "../lifecycles/Customers.ts"
import {
  CHECKOUT_SESSION,
  CUSTOMER,
  HELD_PAYMENT_METHODS,
  heldPaymentMethodsId,
  PAYMENT_INTENT,
  PAYMENT_METHOD,
  type PaymentIntentHidden
} from "../shared/Documents.ts"
import * as PaymentIntents from "../lifecycles/PaymentIntents.ts"
import * as PaymentMethodAttachments from "../lifecycles/PaymentMethodAttachments.ts"
import { PersonalData } from "./PersonalData.ts"
import type { Processors } from "../processing/Processor.ts"
import { timer, timerId } from "../shared/TimerNames.ts"

/** The work begins with the timer's record, and after a start; while it lasts, the timer is set again and again. */
export const LEASE_MILLIS = 3_600_000

const PAGE = 100

export type PaymentIntentDocument = Document<PaymentIntent, PaymentIntentHidden | undefined>

/** Calls `use` with each payment of a customer. */
export const forEachPayment = Effect.fnUntraced(function* (
  account: AccountId,
  customer: string,
  use: (payment: PaymentIntentDocument) => void
): Effect.fn.Return<void, Unavailable, Accounts> {
  const accounts = yield* Accounts
  let last: string | undefined
  for (;;) {
    const { documents, hasMore } = yield* accounts.list(account, {
      kind: PAYMENT_INTENT.name,
      prefix: PAYMENT_INTENT.prefix,
      labels: { customer },
      limit: PAGE,
      ...(last !== undefined && { olderThan: last })
    })
    for (const document of documents) use(document as PaymentIntentDocument)
    if (!hasMore) return
    last = documents.at(-1)!.id
  }
})

const IN_PROGRESS: ReadonlySet<PaymentIntentStatus> = new Set(["processing", "requires_action", "requires_capture"])
const OPEN: ReadonlySet<PaymentIntentStatus> = new Set(["requires_payment_method", "requires_confirmation"])

/** Whether the payer, the processor or the merchant is about to end a payment. */
export const isInProgress = ({ pending_operation, status }: PaymentIntent): boolean =>
  pending_operation !== undefined || IN_PROGRESS.has(status)

/** Whether nothing has been paid yet, so that an erasure ends the payment. */
export const isOpen = ({ status }: PaymentIntent): boolean => OPEN.has(status)

/** The obstacles to an erasure, as found before its command. */
export interface Standing {
  /** A payment in progress; null if there is none. */
  readonly payment: string | null
  /** Whether the customer was deleted. */
  readonly isDeleted: boolean
}

/** Finds what an erasure's command cannot: payments, and whether a missing customer was deleted. */
export const standingOf = Effect.fnUntraced(function* (
  account: AccountId,
  id: string
): Effect.fn.Return<Standing, Unavailable, Accounts> {
  const accounts = yield* Accounts
  const entry = yield* accounts.read(account, id)
  let payment: string | null = null
  yield* forEachPayment(account, id, ({ value }) => {
    if (isInProgress(value)) payment ??= value.id
  })
  return { payment, isDeleted: entry?.deleted === true && entry.kind === CUSTOMER.name }
})

/** Begins an erasure. An erased customer is erased once more, with all that was sent since. Emits no event of it. */
export const begin = Effect.fnUntraced(function* (
  id: string,
  { isDeleted, payment }: Standing
): Effect.fn.Return<Customer | DeletedCustomer, ResourceMissing | CustomerHasPayment, Transaction> {
  const transaction = yield* Transaction
  const known = yield* transaction.get(CUSTOMER, id)
  if (known === undefined && !isDeleted) return yield* new ResourceMissing({ kind: "Customer", id, param: "id" })
  if (payment !== null) return yield* new CustomerHasPayment({ id: payment })
  transaction.setTimer(timer("data.erase", id, transaction.now + LEASE_MILLIS))
  if (known === undefined) return Customers.deletedCustomer(transaction.account, id)
  const personal = new PersonalData(id, [])
  const erased: Customer = { ...personal.value(known.value), erasure: "in_progress" }
  transaction.put(CUSTOMER, erased)
  // Before they are detached, because events show their objects.
  const held = (yield* transaction.get(HELD_PAYMENT_METHODS, heldPaymentMethodsId(id)))?.value.data ?? []
  for (const card of held) {
    const { hidden, value } = (yield* transaction.get(PAYMENT_METHOD, card))!
    transaction.put(PAYMENT_METHOD, personal.value(value), hidden)
  }
  yield* PaymentMethodAttachments.detachAll(id)
  return erased
})

/** Ends a payment that nothing was paid for, and its session. Their data is gone first: events show their objects. */
export const giveUp = Effect.fnUntraced(function* (
  customer: string,
  id: string
): Effect.fn.Return<void, never, Transaction | Processors> {
  const transaction = yield* Transaction
  const payment = yield* transaction.get(PAYMENT_INTENT, id)
  if (payment === undefined || !isOpen(payment.value) || isInProgress(payment.value)) return
  const personal = new PersonalData(customer, [id])
  transaction.put(PAYMENT_INTENT, personal.value(payment.value), personal.hidden(PAYMENT_INTENT.name, payment.hidden))
  const checkoutSession = payment.hidden?.checkoutSession
  const session = checkoutSession && (yield* transaction.get(CHECKOUT_SESSION, checkoutSession))
  if (session && session.value.status === "open") {
    const hidden = personal.hidden(CHECKOUT_SESSION.name, session.hidden)
    transaction.put(CHECKOUT_SESSION, personal.value(session.value), hidden)
    yield* Effect.ignore(CheckoutSessions.expire(session.id))
  } else yield* Effect.ignore(PaymentIntents.cancel(id, { cancellation_reason: "requested_by_customer" }))
})

/** Lets the work begin again, if it has not come to its end. */
export const resume = (id: string): Effect.Effect<void, never, Transaction> =>
  Effect.map(Transaction, (transaction) =>
    transaction.setTimer(timer("data.erase", id, transaction.now + LEASE_MILLIS))
  )

/** Ends an erasure, when the data is gone. */
export const conclude = Effect.fnUntraced(function* (id: string): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  const customer = yield* transaction.get(CUSTOMER, id)
  if (customer !== undefined) transaction.put(CUSTOMER, { ...customer.value, erasure: "completed" })
  transaction.clearTimer(timerId("data.erase", id))
})
