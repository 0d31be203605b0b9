/** A gateway that speaks Till's protocol, as a processor (semantics gateways.*). */
import { Effect, Option, Schema } from "effect"
import { clean } from "../../domain/Secrets.ts"
import * as StandardWebhooks from "../../domain/StandardWebhooks.ts"
import { secondsOf } from "../../domain/Time.ts"
import type {
  Notice,
  OperationPage,
  OperationRequest,
  RemoteProcessor,
  TokenDescription
} from "../../payments/processing/RemoteProcessor.ts"
import type { Exchange } from "../Exchange.ts"
import { Checked, ErrorBody, KEPT_DAYS, Listed, Notification, type Operation, TokenDescribed } from "./Messages.ts"
import { outcomeOf } from "./Outcomes.ts"
import { call, type Called, jsonOf } from "./SignedCall.ts"

export interface Options {
  /** `prc_…`. */
  readonly id: string
  readonly url: string
  /** Newest first. */
  readonly secrets: ReadonlyArray<StandardWebhooks.Secret>
  readonly exchange: Exchange
  /** From the gateway's profile; null or absent without one. */
  readonly fieldsUrl?: string | null
  /** False unless given. */
  readonly onlyLooks?: boolean
}

/** The gateway does not answer as the protocol demands. `message` is a sentence for an operator. */
export class CheckFailed extends Schema.TaggedError<CheckFailed>()("CheckFailed", { message: Schema.String }) {}

export interface HttpProcessor extends RemoteProcessor {
  /** Reads the gateway's description of itself. */
  readonly check: Effect.Effect<Checked, CheckFailed>
}

const decodeChecked = Schema.decodeUnknownOption(Checked)
const decodeError = Schema.decodeUnknownOption(ErrorBody)
const decodeDescribed = Schema.decodeUnknownOption(TokenDescribed)
const decodeListed = Schema.decodeUnknownOption(Listed)
const decodeNotification = Schema.decodeUnknownOption(Notification)

/** The operations of a page, at most. */
const LISTED_MAX = 100

/** The type of a message that Till does not use. One of the types that it uses would lack a field. */
const OTHER_TYPE = /^(?!operation\.updated$|refund\.created$|dispute\.updated$)/u

/** The operation in the protocol's form. The same for every repetition, since it follows from the stored request. */
export const operationOf = (request: OperationRequest): Operation => ({
  id: request.id,
  kind: request.kind,
  payment: request.payment,
  reference: request.reference,
  amount: request.amount,
  currency: request.currency,
  token: request.token,
  capture: request.capture,
  authenticated: request.authenticated,
  off_session: request.offSession,
  return_url: request.returnUrl,
  customer: request.customer,
  description: request.description,
  descriptor: request.descriptor,
  billing_details: request.billingDetails
})

export const make = (options: Options): HttpProcessor => ({
  kind: "remote",
  id: options.id,
  keyMillis: KEPT_DAYS * 86_400_000,
  fieldsUrl: options.fieldsUrl ?? null,
  describe: (token) => Effect.map(call(options, { type: "token.describe", token }), descriptionOf),
  perform: (request) =>
    Effect.map(call(options, { type: "operation.execute", operation: operationOf(request) }), (called) =>
      outcomeOf("execute", request, called)
    ),
  look: (terms) =>
    Effect.map(call(options, { type: "operation.retrieve", id: terms.id }), (called) =>
      outcomeOf("retrieve", terms, called)
    ),
  fence: (terms) =>
    Effect.map(call(options, { type: "operation.abandon", id: terms.id }), (called) =>
      outcomeOf("abandon", terms, called)
    ),
  list: (since, after) =>
    Effect.map(call(options, { type: "operation.list", since, after, limit: LISTED_MAX }), pageOf),
  onlyLooks: options.onlyLooks ?? false,
  verify: (headers, raw, now) =>
    StandardWebhooks.verify(options.secrets, headers, raw, secondsOf(now)) === null ? null : noticeOf(raw),
  check: Effect.flatMap(call(options, { type: "check" }), (called) => {
    const checked = called.kind === "signed" && called.status === 200 ? decodeChecked(called.body) : Option.none()
    return Option.match(checked, {
      onNone: () => Effect.fail(new CheckFailed({ message: reasonOf(called) })),
      onSome: Effect.succeed
    })
  })
})

const reasonOf = (called: Called, what = "a check"): string => {
  if (called.kind !== "signed") return called.why
  if (called.status === 200) return `The answer to ${what} does not have the protocol's form.`
  const error = decodeError(called.body)
  const text = Option.isSome(error) ? `: ${clean(error.value.error.message)}` : "."
  return `The gateway answered ${what} with status ${called.status}${text}`
}

const pageOf = (called: Called): OperationPage => {
  const listed = called.kind === "signed" && called.status === 200 ? decodeListed(called.body) : Option.none()
  return Option.match(listed, {
    onNone: () => ({ kind: "unavailable", why: reasonOf(called, "the list of operations") }),
    onSome: ({ data, next = null }) => ({
      kind: "page",
      operations: data.map(
        ({ amount = null, currency = null, id, kind = null, payment = null, reference = null, status }) => {
          return { id, status, kind, payment, reference, amount, currency }
        }
      ),
      next
    })
  })
}

const descriptionOf = (called: Called): TokenDescription => {
  if (called.kind !== "signed") return { kind: "unavailable", why: called.why }
  if (called.status === 200) {
    return Option.match(decodeDescribed(called.body), {
      onNone: () => ({ kind: "unavailable", why: "The answer describes no card." }),
      onSome: ({ fingerprint = null, ...card }) => ({ kind: "card", card: { ...card, fingerprint } })
    })
  }
  const error = decodeError(called.body)
  if (Option.isNone(error)) return { kind: "unavailable", why: `An answer with status ${called.status} has no error.` }
  const message = clean(error.value.error.message)
  return called.status === 400 ? { kind: "refused", message } : { kind: "unavailable", why: message }
}

const isOfOtherType = Schema.is(Schema.Struct({ type: Schema.String.check(Schema.isPattern(OTHER_TYPE)) }))

/** Returns the notice of a signed message. */
const noticeOf = (raw: Uint8Array): Notice => {
  const json = jsonOf(raw)
  return Option.match(decodeNotification(json), {
    onNone: () => ({ kind: isOfOtherType(json) ? "other" : "unreadable" }),
    onSome: (message): Notice => {
      switch (message.type) {
        case "operation.updated":
          return { kind: "operation", operation: message.operation.id, payment: message.operation.payment }
        case "refund.created":
          return { kind: "refund", payment: message.payment, ...message.refund }
        case "dispute.updated":
          return { kind: "dispute", payment: message.dispute.payment }
      }
    }
  })
}
