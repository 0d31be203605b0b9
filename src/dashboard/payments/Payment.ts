/** The page of a payment, with its history and actions. */
import { Effect, Layer, Schema } from "effect"
import type { CheckoutSession } from "../../domain/CheckoutSession.ts"
import {
  CapturePaymentIntent,
  type PaymentIntent,
  RequestedCancellationReason,
  UpdatePaymentIntent
} from "../../domain/PaymentIntent.ts"
import { CreateRefund, type Refund, RefundReason } from "../../domain/Refund.ts"
import { secondsOf } from "../../domain/Time.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { Command } from "../../http/IdempotentCommand.ts"
import { type Child, html } from "../../html/Html.ts"
import { moneyOf, problemText } from "../../html/Money.ts"
import * as Amounts from "../../html/assets/amount.js"
import { CHECKOUT_SESSION, OPERATION, PAYMENT_INTENT, REFUND } from "../../payments/shared/Documents.ts"
import * as GivenUp from "../../payments/team/GivenUp.ts"
import { nextLookOf, type OperationDocument } from "../../payments/lifecycles/Operations.ts"
import * as PaymentIntents from "../../payments/lifecycles/PaymentIntents.ts"
import { readDocument, requireDocument } from "../../payments/shared/ReadDocument.ts"
import { addressIn } from "../../payments/mail/Receipts.ts"
import * as Refunds from "../../payments/lifecycles/Refunds.ts"
import { dialog, type Problem } from "../frame/Form.ts"
import { billingHtml } from "../frame/Cards.ts"
import { forDevelopers, json } from "../frame/Json.ts"
import { table } from "../frame/Table.ts"
import { amountText, badge, code, facts, money, plainAmount, section, time, words } from "../frame/Values.ts"
import { decodeBody, updateWith } from "../frame/FormDecoding.ts"
import { editAction, editDialog } from "./EditPayment.ts"
import { receiptAction, receiptDialog, receiptsSection } from "./SendReceipt.ts"
import { historySection } from "../history/History.ts"
import { statusName, thingOf } from "../history/OperationSummary.ts"
import { metadataEditor, metadataAction } from "../frame/Metadata.ts"
import { noteActions, noteDialog } from "./Notes.ts"
import { customersOf, paymentPayerHtml } from "./Payers.ts"
import { cardOf, paymentBadge, refundedOf } from "./Payments.ts"
import { objectLink } from "../frame/ObjectLinks.ts"
import { listObjects } from "../frame/Queries.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"

const REFUNDS_MAX = 100

const refundableOf = (payment: PaymentIntent): number => payment.amount_received - refundedOf(payment)

const CANCELABLE: ReadonlySet<string> = new Set([
  "requires_payment_method",
  "requires_confirmation",
  "requires_action",
  "requires_capture"
])

const optionsOf = (literals: ReadonlyArray<string>): ReadonlyArray<readonly [string, string]> => [
  ["", "None"],
  ...literals.map((literal) => [literal, words(literal)] as const)
]

interface Known {
  readonly session: string | undefined
  /** The address of the payer; null if it is not known. */
  readonly address: string | null
}

const buttons = (visit: Visit, payment: PaymentIntent, { address, session }: Known, problem: Problem | null): Child => {
  if (!visit.may("settle")) return null
  const { amount_capturable, currency, id, status } = payment
  const refundable = refundableOf(payment)
  const amountIn = (name: string, most: number, verb: "capture" | "refund") => ({
    name,
    label: "Amount",
    inputmode: "decimal" as const,
    value: plainAmount(most, currency),
    hint: html`Up to ${money(most, currency)}. Leave empty to ${verb} everything.`
  })
  return html`<div class="buttons">
    ${visit.may("build") && editDialog(visit, payment, session, problem)}
    ${receiptDialog(visit, payment, address, problem)}
    ${
      refundable > 0 &&
      dialog("Refund", {
        visit,
        action: `/payments/${id}/refund`,
        submit: "Refund",
        problem,
        content: (fields) => [
          fields.text(amountIn("amount", refundable, "refund")),
          fields.choice({ name: "reason", label: "Reason", options: optionsOf(RefundReason.literals) })
        ]
      })
    }
    ${
      status === "requires_capture" &&
      dialog("Capture", {
        visit,
        action: `/payments/${id}/capture`,
        submit: "Capture",
        problem,
        content: (fields) => fields.text(amountIn("amount_to_capture", amount_capturable, "capture"))
      })
    }
    ${
      CANCELABLE.has(status) &&
      dialog("Cancel", {
        visit,
        action: `/payments/${id}/cancel`,
        submit: "Cancel the payment",
        tone: "danger",
        problem,
        content: (fields) =>
          fields.choice({
            name: "cancellation_reason",
            label: "Reason",
            options: optionsOf(RequestedCancellationReason.literals)
          })
      })
    }
  </div>`
}

const refundsTable = (visit: Visit, refunds: ReadonlyArray<Refund>) =>
  table({
    caption: "Refunds of this payment, newest first",
    columns: [
      { name: "Amount", align: "end", cell: ({ amount, currency }) => money(amount, currency) },
      { name: "Status", cell: ({ status }) => badge(status) },
      { name: "Reason", cell: ({ failure_reason, reason }) => words(failure_reason ?? reason ?? "–"), wide: true },
      { name: "Refund", cell: ({ id }) => code(id), wide: true },
      { name: "Date", cell: ({ created }) => time(created) }
    ],
    rows: refunds,
    href: ({ id }) => visit.to(`/refunds/${id}`),
    empty: null
  })

/** The operation that the payment waits for, in a sentence with a link. */
const pendingHtml = (visit: Visit, { value }: OperationDocument, next: number | null): Child => {
  const again = next !== null && html`, asked again at ${time(secondsOf(next))}`
  const words = html`Asked the processor for the ${thingOf(value)} · ${statusName(value.status)}${again}`
  return [words, html`<br />`, objectLink(visit, value.id)]
}

const findPending = Effect.fnUntraced(function* (visit: Visit, { pending_operation: pending }: PaymentIntent) {
  const operation = pending && (yield* readDocument(visit.account, OPERATION, pending.id))
  if (operation === undefined) return null
  const { now } = yield* Accounts.use(({ outlook }) => outlook(visit.account, 1))
  // A request still waits for the answer to an open one.
  const isAsked = operation.value.status !== "open"
  return pendingHtml(visit, operation, isAsked ? nextLookOf(operation, now) : null)
})

interface Around {
  readonly customer: Child
  readonly checkoutSession: string | undefined
  readonly pending: Child
}

const factsOf = (visit: Visit, payment: PaymentIntent, { checkoutSession, customer, pending }: Around) => {
  const { amount_capturable, amount_received, currency, description, id, last_payment_error } = payment
  return facts([
    ["ID", code(id)],
    ["Waiting for", pending],
    ["Date", time(payment.created)],
    ["Description", description],
    ["Received", money(amount_received, currency)],
    ["Available to capture", amount_capturable > 0 ? money(amount_capturable, currency) : null],
    ["Refunded", refundedOf(payment) > 0 ? money(refundedOf(payment), currency) : null],
    ["Available to refund", refundableOf(payment) > 0 ? money(refundableOf(payment), currency) : null],
    ["Card", cardOf(payment)],
    ["Customer", customer],
    ["Payer", billingHtml(payment.charges.data[0]?.billing_details ?? {})],
    [
      "Checkout",
      checkoutSession &&
        html`<a href="${visit.to(`/checkout-sessions/${checkoutSession}`)}"><code>${checkoutSession}</code></a>`
    ],
    [
      "Last failure",
      last_payment_error && html`${last_payment_error.message} <code>${last_payment_error.decline_code}</code>`
    ],
    ["Canceled", payment.cancellation_reason && words(payment.cancellation_reason)]
  ])
}

/** A link to the checkout page while it is open. */
const checkoutLink = (session: CheckoutSession | undefined): Child => {
  if (session === undefined) return null
  const { status, url } = session
  return status === "open" && url !== null
    ? html`<a class="button" href="${url}" target="_blank" rel="noopener">Open checkout</a>`
    : null
}

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }, problem) {
  const { hidden, value: payment } = yield* requireDocument(visit.account, PAYMENT_INTENT, id)
  const { canceled_at, charges, created, ...rest } = payment
  const session = hidden?.checkoutSession
  const [{ rows: refunds }, history, checkout, customers, receipts, pending] = yield* Effect.all(
    [
      listObjects(visit.account, REFUND, { labels: { payment_intent: id }, limit: REFUNDS_MAX }),
      // Charges, refunds and operations belong to the payment by this label.
      historySection(
        visit,
        { ids: [id, ...(session === undefined ? [] : [session])], labels: { payment_intent: id } },
        noteDialog(visit, id, problem)
      ),
      // A wipe may have deleted the session.
      session === undefined ? Effect.succeed(undefined) : readDocument(visit.account, CHECKOUT_SESSION, session),
      customersOf(visit.account, [payment]),
      receiptsSection(visit, id),
      findPending(visit, payment)
    ],
    { concurrency: "unbounded" }
  )
  return {
    title: amountText(payment.amount, payment.currency),
    section: "Payments",
    back: ["/payments", "Payments"],
    live: [
      "payment_intent",
      "charge",
      "refund",
      "operation",
      "checkout.session",
      "payment_note",
      "event",
      "delivery",
      "mail"
    ],
    aside: [
      paymentBadge(payment),
      checkoutLink(checkout?.value),
      buttons(
        visit,
        payment,
        { session, address: addressIn(checkout?.value) ?? customers.get(payment.customer ?? "")?.email ?? null },
        problem
      )
    ],
    content: [
      factsOf(visit, payment, {
        customer: paymentPayerHtml(visit, customers, payment),
        checkoutSession: session,
        pending
      }),
      history,
      refunds.length > 0 && section("Refunds", refundsTable(visit, refunds)),
      receipts,
      metadataEditor(visit, `/payments/${id}`, payment.metadata, problem),
      forDevelopers(json(visit, { ...rest, created, canceled_at, charges }, "The payment as JSON"))
    ]
  }
})

/** The entered amount in minor units, or an error; undefined for an empty field, which means the full amount. */
const enteredAmount = (text: string, currency: string): number | Invalid | undefined => {
  if (text === "") return undefined
  // The command checks the upper limit.
  const bounds = { minimum: 1, maximum: Number.MAX_SAFE_INTEGER }
  const read = Amounts.readAmountWithin(text, { ...moneyOf(currency, "en"), ...bounds })
  return read.problem === undefined ? read.minor : new Invalid({}, problemText(read))
}

const literalIn = <A extends string>(schema: Schema.Codec<A>, value: string | undefined): A | undefined =>
  Schema.is(schema)(value) ? value : undefined

/** Requires the password for a large live amount (semantics dashboard.password_again). */
const limited = ({ livemode, session }: Visit, id: string, givesUp: GivenUp.GivesUp, command: Command): Command =>
  livemode ? GivenUp.runWithinLimit(session, id, givesUp, command) : command

const onPage = { right: "settle", page: "/payments/:id", show } as const

const refund = action({
  ...onPage,
  name: "refund.create",
  path: "/payments/:id/refund",
  notice: "Refund created.",
  prepare: Effect.fnUntraced(function* (visit, { id = "" }, values) {
    const { currency } = (yield* requireDocument(visit.account, PAYMENT_INTENT, id)).value
    const amount = enteredAmount(values.get("amount") ?? "", currency)
    if (amount instanceof Invalid) return new Invalid({ amount: amount.message! })
    const reason = literalIn(RefundReason, values.get("reason"))
    const entered = {
      payment_intent: id,
      ...(amount !== undefined && { amount }),
      ...(reason !== undefined && { reason })
    }
    const detail = amount === undefined ? "all" : `${plainAmount(amount, currency)} ${currency.toUpperCase()}`
    const command = Effect.flatMap(decodeBody(CreateRefund, entered), Refunds.create)
    const givesUp: GivenUp.GivesUp = (payment) => amount ?? refundableOf(payment)
    return { entered, detail, command: limited(visit, id, givesUp, command) }
  })
})

const capture = action({
  ...onPage,
  name: "payment_intent.capture",
  path: "/payments/:id/capture",
  notice: "Payment captured.",
  prepare: Effect.fnUntraced(function* (visit, { id = "" }, values) {
    const { currency } = (yield* requireDocument(visit.account, PAYMENT_INTENT, id)).value
    const amount = enteredAmount(values.get("amount_to_capture") ?? "", currency)
    if (amount instanceof Invalid) return new Invalid({ amount_to_capture: amount.message! })
    const entered = amount === undefined ? {} : { amount_to_capture: amount }
    const detail = amount === undefined ? "all" : `${plainAmount(amount, currency)} ${currency.toUpperCase()}`
    const command = Effect.flatMap(decodeBody(CapturePaymentIntent, entered), (it) => PaymentIntents.capture(id, it))
    const givesUp: GivenUp.GivesUp = ({ amount_capturable }) => amount_capturable - (amount ?? amount_capturable)
    return { entered, detail, command: limited(visit, id, givesUp, command) }
  })
})

const cancel = action({
  ...onPage,
  name: "payment_intent.cancel",
  path: "/payments/:id/cancel",
  notice: "Payment canceled.",
  prepare: (visit, { id = "" }, values) => {
    const reason = literalIn(RequestedCancellationReason, values.get("cancellation_reason"))
    const entered = reason === undefined ? {} : { cancellation_reason: reason }
    const command = PaymentIntents.cancel(id, entered)
    const detail = reason ?? null
    return Effect.succeed({ entered, detail, command: limited(visit, id, (held) => held.amount_capturable, command) })
  }
})

const updateMetadata = metadataAction({
  ...onPage,
  name: "payment_intent",
  kind: PAYMENT_INTENT,
  update: updateWith(UpdatePaymentIntent, PaymentIntents.update)
})

export const layer = Layer.mergeAll(
  page("/payments/:id", "see", show),
  editAction(show),
  receiptAction(show),
  noteActions(show),
  refund,
  capture,
  cancel,
  updateMetadata
)
