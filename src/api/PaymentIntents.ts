/** PaymentIntents (spec: PaymentIntents; semantics §1.12). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Customer, DeletedCustomer } from "../domain/Customer.ts"
import { CustomerId, PaymentMethodId } from "../domain/Identifiers.ts"
import { MetadataParameter } from "../domain/Metadata.ts"
import { Amount, AMOUNT_CAP, Currency } from "../domain/Money.ts"
import {
  CaptureMethod,
  ConfirmationMethod,
  PaymentIntent,
  PaymentIntentDescription,
  RequestedCancellationReason,
  StatementDescriptor
} from "../domain/PaymentIntent.ts"
import { PaymentMethodData, PaymentMethodType } from "../domain/PaymentMethod.ts"
import { RedirectUrl, text, unsettable } from "../domain/Text.ts"
import { commandHeaders, PublishableKey, requestHeaders } from "./Access.ts"
import { commandErrors, errors, paymentErrors } from "./Errors.ts"
import { List, listQuery } from "./List.ts"

/** What a return URL is for, and what it gets (semantics I-14). */
export const RETURN_URL =
  "Where the payer comes back to from an authentication, with `payment_intent`, `payment_intent_client_secret` and " +
  "`redirect_status`, which is `succeeded` or `failed`, in the query. Without it, Till's page says how it ended."

/** What an attempt can be made with. */
const attempt = {
  payment_method: Schema.optionalKey(Schema.NullOr(PaymentMethodId)).annotate({
    description: "In test mode, also a test card's: `pm_card_visa`."
  }),
  payment_method_data: Schema.optionalKey(Schema.NullOr(PaymentMethodData)),
  payment_method_type: Schema.optionalKey(Schema.NullOr(PaymentMethodType)),
  return_url: Schema.optionalKey(Schema.NullOr(RedirectUrl)).annotate({ description: RETURN_URL })
}

/** Where nothing is attempted, they would be of no use (semantics I-2). */
const WITH_CONFIRM = { description: "Only with `confirm: true`." }

export const CreatePaymentIntent = Schema.Struct({
  amount: Amount.annotate({ description: AMOUNT_CAP }),
  currency: Currency,
  capture_method: Schema.optionalKey(Schema.NullOr(CaptureMethod)),
  confirmation_method: Schema.optionalKey(Schema.NullOr(ConfirmationMethod)),
  customer: Schema.optionalKey(Schema.NullOr(CustomerId)),
  description: Schema.optionalKey(Schema.NullOr(PaymentIntentDescription)),
  metadata: Schema.optionalKey(Schema.NullOr(MetadataParameter)),
  confirm: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  ...attempt,
  payment_method_data: attempt.payment_method_data.annotate(WITH_CONFIRM),
  payment_method_type: attempt.payment_method_type.annotate(WITH_CONFIRM),
  return_url: attempt.return_url.annotate({ description: `${WITH_CONFIRM.description} ${RETURN_URL}` }),
  statement_descriptor: Schema.optionalKey(Schema.NullOr(StatementDescriptor))
}).annotate({ identifier: "CreatePaymentIntent" })

export const UpdatePaymentIntent = Schema.Struct({
  amount: Schema.optionalKey(Amount).annotate({ description: AMOUNT_CAP }),
  currency: Schema.optionalKey(Currency),
  customer: Schema.optionalKey(Schema.NullOr(CustomerId)),
  description: Schema.optionalKey(Schema.NullOr(PaymentIntentDescription)),
  metadata: Schema.optionalKey(unsettable(MetadataParameter)),
  payment_method: Schema.optionalKey(Schema.NullOr(PaymentMethodId)),
  capture_method: Schema.optionalKey(CaptureMethod),
  statement_descriptor: Schema.optionalKey(Schema.NullOr(StatementDescriptor)).annotate({
    description: "Until it is charged: in `requires_payment_method`, `requires_confirmation` and `requires_action`."
  })
}).annotate({ identifier: "UpdatePaymentIntent" })

/** `client_secret` lets a publishable key confirm; from a secret key it is only checked (semantics A5, §8.5). */
export const ConfirmPaymentIntent = Schema.Struct({
  ...attempt,
  client_secret: Schema.optionalKey(Schema.NullOr(text()))
}).annotate({ identifier: "ConfirmPaymentIntent" })

export const CapturePaymentIntent = Schema.Struct({
  amount_to_capture: Schema.optionalKey(Schema.NullOr(Amount)).annotate({
    description: "At most the PaymentIntent's `amount`, and that by default."
  })
}).annotate({ identifier: "CapturePaymentIntent" })

export const CancelPaymentIntent = Schema.Struct({
  cancellation_reason: Schema.optionalKey(Schema.NullOr(RequestedCancellationReason))
}).annotate({ identifier: "CancelPaymentIntent" })

/** A PaymentIntent, with its customer in full where `expand[]=customer` asked for it. */
export const ExpandablePaymentIntent = Schema.Struct({
  ...PaymentIntent.fields,
  customer: Schema.NullOr(Schema.Union([CustomerId, Customer, DeletedCustomer]))
}).annotate({ identifier: "ExpandablePaymentIntent" })

const params = { id: Schema.String }

/** Semantics A5: a Checkout Session is paid by confirming the session. */
const ONLY_AUTOMATIC =
  "It cannot confirm where `confirmation_method` is `manual`, nor the PaymentIntent of a Checkout Session."

/** What a passed authentication does not cover (semantics 9.3). */
const AUTHENTICATED_TERMS =
  "Where the payer has authenticated and the server is to confirm again (`confirmation_method: manual`), a higher amount, " +
  "another currency or another payment method ends that: the next confirmation asks the payer again."

export const PaymentIntents = HttpApiGroup.make("payment_intents").add(
  HttpApiEndpoint.post("create", "/v1/payment_intents", {
    headers: commandHeaders,
    payload: CreatePaymentIntent,
    success: PaymentIntent,
    error: paymentErrors
  }),
  HttpApiEndpoint.get("list", "/v1/payment_intents", {
    headers: requestHeaders,
    query: { ...listQuery, customer: Schema.optionalKey(CustomerId) },
    success: List(PaymentIntent),
    error: errors
  }),
  HttpApiEndpoint.get("retrieve", "/v1/payment_intents/:id", {
    headers: requestHeaders,
    params,
    query: {
      "expand[]": Schema.optionalKey(Schema.Array(Schema.Literals(["customer"]))),
      client_secret: Schema.optionalKey(text())
    },
    success: ExpandablePaymentIntent,
    error: errors
  }).annotate(PublishableKey, true),
  HttpApiEndpoint.post("update", "/v1/payment_intents/:id", {
    headers: commandHeaders,
    params,
    payload: UpdatePaymentIntent,
    success: PaymentIntent,
    error: commandErrors
  }).annotate(OpenApi.Description, AUTHENTICATED_TERMS),
  HttpApiEndpoint.post("confirm", "/v1/payment_intents/:id/confirm", {
    headers: commandHeaders,
    params,
    payload: ConfirmPaymentIntent,
    success: PaymentIntent,
    error: paymentErrors
  })
    .annotate(PublishableKey, true)
    .annotate(OpenApi.Description, ONLY_AUTOMATIC),
  HttpApiEndpoint.post("capture", "/v1/payment_intents/:id/capture", {
    headers: commandHeaders,
    params,
    payload: CapturePaymentIntent,
    success: PaymentIntent,
    error: commandErrors
  }),
  HttpApiEndpoint.post("cancel", "/v1/payment_intents/:id/cancel", {
    headers: commandHeaders,
    params,
    payload: CancelPaymentIntent,
    success: PaymentIntent,
    error: commandErrors
  })
)
