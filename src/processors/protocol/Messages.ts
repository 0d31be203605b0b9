/** The messages of the protocol of gateways, version 1 (semantics gateways.*). Times are in Unix seconds. */
import { Schema } from "effect"
import { BillingDetails } from "../../domain/Address.ts"
import { CardFunding } from "../../domain/PaymentMethod.ts"

export const PROTOCOL = 1
export const MESSAGE_BYTES_MAX = 65_536
/** The time for which a gateway keeps the states of its operations, in days. */
export const KEPT_DAYS = 90

const Amount = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 999_999_999_999 })).annotate({
  description: "In the currency's smallest unit."
})
const Currency = Schema.String.check(Schema.isPattern(/^[a-z]{3}$/u)).annotate({
  description: "A code of ISO 4217 in lower case."
})
const Seconds = Schema.Int.annotate({ description: "Unix time in seconds." })
const OperationId = Schema.String.annotate({ description: "op_…, chosen by Till. It is the idempotency key." })
const PaymentId = Schema.String.annotate({ description: "pi_…, under which a payment's operations belong together." })
const Reference = Schema.String.check(Schema.isPattern(/^[^\p{Cc}]{1,255}$/u)).annotate({
  description: "The gateway's own name of the payment, refund or dispute, of 1 to 255 characters."
})
const orNull = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

export const Kind = Schema.Literals(["authorize", "capture", "void", "refund"])

export const Operation = Schema.Struct({
  id: OperationId,
  kind: Kind,
  payment: PaymentId,
  reference: Schema.NullOr(Schema.String).annotate({
    description: "The gateway's reference of the payment, from an earlier operation."
  }),
  amount: Amount,
  currency: Currency,
  token: Schema.NullOr(Schema.String).annotate({ description: "The gateway's token of the card; for authorize only." }),
  capture: Schema.Literals(["automatic", "manual"]).annotate({
    description: "For authorize: whether to take the amount at once, or to hold it for a capture."
  }),
  authenticated: Schema.Boolean.annotate({
    description: "Whether the payer has passed the challenge of this payment."
  }),
  off_session: Schema.Boolean.annotate({
    description: "Whether the payer is absent, so that no challenge is possible."
  }),
  return_url: Schema.NullOr(Schema.String).annotate({ description: "Where a challenge leads the payer afterwards." }),
  customer: Schema.NullOr(Schema.String),
  description: Schema.NullOr(Schema.String),
  descriptor: Schema.NullOr(Schema.String).annotate({ description: "A text for the payer's statement." }),
  billing_details: Schema.NullOr(BillingDetails)
}).annotate({ identifier: "Operation" })
export type Operation = typeof Operation.Type

export const Request = Schema.Union([
  Schema.Struct({ type: Schema.Literal("check") }).annotate({ identifier: "Check" }),
  Schema.Struct({ type: Schema.Literal("token.describe"), token: Schema.String }).annotate({
    identifier: "TokenDescribe"
  }),
  Schema.Struct({ type: Schema.Literal("operation.execute"), operation: Operation }).annotate({
    identifier: "OperationExecute"
  }),
  Schema.Struct({ type: Schema.Literal("operation.retrieve"), id: OperationId }).annotate({
    identifier: "OperationRetrieve"
  }),
  Schema.Struct({ type: Schema.Literal("operation.abandon"), id: OperationId }).annotate({
    identifier: "OperationAbandon"
  }),
  Schema.Struct({
    type: Schema.Literal("operation.list"),
    since: Seconds,
    after: Schema.NullOr(Schema.String).annotate({ description: "`next` of the page before." }),
    limit: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))
  }).annotate({ identifier: "OperationList" })
])
export type Request = typeof Request.Type

export const Status = Schema.Literals([
  "approved",
  "declined",
  "challenge",
  "pending",
  "authenticated",
  "too_late",
  "not_executed",
  "in_progress",
  "never_seen"
])

/** The state of an operation. `never_seen`, `not_executed` and `in_progress` need nothing but an id. */
export const State = Schema.Struct({
  id: OperationId,
  status: Status,
  kind: orNull(Kind).annotate({
    description: "The operation's kind. Without it, Till takes in no operation that it has lost."
  }),
  payment: orNull(PaymentId),
  reference: orNull(Reference),
  amount: orNull(Amount),
  currency: orNull(Currency),
  at: orNull(Seconds),
  decline: orNull(
    Schema.Struct({
      code: Schema.String.annotate({ description: "A decline code of Till's, or the gateway's own." }),
      message: orNull(Schema.String).annotate({ description: "A sentence for the payer." })
    })
  ),
  challenge: orNull(Schema.Struct({ url: Schema.String.annotate({ description: "An https page for the payer." }) })),
  capture_before: orNull(Seconds).annotate({ description: "The end of a hold." }),
  payment_status: orNull(Schema.Literals(["succeeded", "canceled"])).annotate({
    description: "With too_late: the state of the payment."
  })
}).annotate({ identifier: "State" })
export type State = typeof State.Type

export const ERROR_CODES = [
  "unknown_token",
  "unknown_payment",
  "already_authorized",
  "not_capturable",
  "amount_too_large",
  "unsupported",
  "bad_request",
  "mismatch",
  "unauthorized",
  "unavailable"
] as const

export const ErrorBody = Schema.Struct({
  error: Schema.Struct({
    code: Schema.String.check(Schema.isPattern(/^[a-z][a-z0-9_]{0,63}$/u)).annotate({
      description: `One of ${ERROR_CODES.join(", ")}.`
    }),
    message: Schema.String,
    param: orNull(Schema.String)
  })
}).annotate({ identifier: "Error" })

export const TEST_TOKENS = ["approve", "decline", "challenge", "pending"] as const

export const Checked = Schema.Struct({
  protocol: Schema.Literal(PROTOCOL),
  name: Schema.String,
  livemode: Schema.Boolean,
  currencies: orNull(Schema.Array(Currency)).annotate({ description: "Null for any currency." }),
  fields: orNull(
    Schema.Struct({ frame: Schema.String.annotate({ description: "The https page with the inputs of a card." }) })
  ),
  test_tokens: orNull(
    Schema.Struct({
      approve: Schema.String,
      decline: Schema.String,
      challenge: orNull(Schema.String),
      pending: orNull(Schema.String)
    })
  ).annotate({ description: "Tokens with known outcomes; null in live mode." })
}).annotate({ identifier: "Checked" })
export type Checked = typeof Checked.Type

export const TokenDescribed = Schema.Struct({
  brand: Schema.String,
  last4: Schema.String.check(Schema.isPattern(/^[0-9]{4}$/u)),
  exp_month: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 12 })),
  exp_year: Schema.Int.check(Schema.isBetween({ minimum: 1000, maximum: 9999 })),
  funding: CardFunding,
  country: Schema.String.check(Schema.isPattern(/^[A-Z]{2}$/u)),
  fingerprint: orNull(Schema.String).annotate({ description: "The same for the same card number." })
}).annotate({ identifier: "TokenDescribed" })

export const Listed = Schema.Struct({
  data: Schema.Array(State),
  next: orNull(Schema.String).annotate({ description: "`after` of the next page; null on the last one." })
}).annotate({ identifier: "Listed" })

/** Messages from a gateway. Each only causes Till to retrieve operations. */
export const Notification = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("operation.updated"),
    operation: Schema.Struct({ id: OperationId, payment: PaymentId })
  }).annotate({ identifier: "OperationUpdated" }),
  Schema.Struct({
    type: Schema.Literal("refund.created"),
    payment: PaymentId,
    refund: Schema.Struct({ reference: Reference, amount: Amount })
  }).annotate({ identifier: "RefundCreated" }),
  Schema.Struct({
    type: Schema.Literal("dispute.updated"),
    dispute: Schema.Struct({ reference: Reference, payment: PaymentId })
  }).annotate({ identifier: "DisputeUpdated" })
])
