/**
 * Messages of processors: `POST /processors/{prc}/webhooks`, outside of /v1 and its keys (semantics
 * gateways.notifications).
 *
 * - The signature is the authentication. It is checked over the bytes, before they are read as JSON.
 * - A message causes a look, and nothing else: it may be late, repeated or out of order. So 200 means that the
 *   processor's present word is durable, or that there is nothing to ask. 503 makes the processor send it again.
 * - A refund that was made at the processor is taken in once, if a look there finds it (semantics operations.adopted).
 * - A processor learns nothing about payments of others: theirs are answered like unknown ones.
 * - The process that serves the payment's account asks. Another one forwards the message to it.
 */
import { Clock, Effect, Layer, Option } from "effect"
import { HttpRouter, type HttpServerRequest, type HttpServerResponse } from "effect/http"
import type { Operation } from "../domain/Operation.ts"
import { addressGroup } from "../domain/Networks.ts"
import { Accounts, Unavailable } from "../engine/Accounts.ts"
import type { AccountId } from "../engine/log/Document.ts"
import { logOf } from "../engine/process/Log.ts"
import * as Metrics from "../engine/process/Metrics.ts"
import { OPERATION, PAYMENT_INTENT } from "../payments/shared/Documents.ts"
import { adopt, lookAt } from "../payments/lifecycles/OperationDispatcher.ts"
import { Processors } from "../payments/processing/Processor.ts"
import { isDocumentOf } from "../payments/shared/ReadDocument.ts"
import type { Notice } from "../payments/processing/RemoteProcessor.ts"
import { HttpConfig } from "../server/HttpConfig.ts"
import { RequestTooLarge } from "../server/HttpErrors.ts"
import { RequestBodies } from "../server/RequestBody.ts"
import { following, readBodyOf, senderOf } from "./forward/ForwardPage.ts"
import { FixedWindows } from "./RateLimits.ts"
import { noteAccount, RequestIds, respond, sourceOf } from "./RequestContext.ts"

const log = logOf("http")

const MESSAGE_BYTES_MAX = 262_144
/** The longest time from a message to its answer, in milliseconds. */
const LOOK_MILLIS_MAX = 10_000
/** Messages of one processor at once, in one process. */
const MESSAGES_MAX = 64
/** Messages of one address without a valid signature, per minute. */
const UNSIGNED_MAX = 60
/** Refunds of a payment that are read at a time. */
const REFUNDS_PAGE = 100

const MESSAGES = {
  name: "till_processor_messages_total",
  description: "Messages that processors have sent, by their type and by what came of them.",
  labels: ["type", "outcome"]
}

/** The result of a message, and the metric's label. */
type Outcome =
  /** The processor's word is durable. */
  | "applied"
  /** Till uses no messages of this type, or has nothing to ask about. */
  | "ignored"
  /** The payment is unknown, or belongs to another processor. */
  | "foreign"
  /** The processor has not answered, or its messages are too many. */
  | "postponed"

type Request = HttpServerRequest.HttpServerRequest

interface Refusal {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly retryAfterSeconds?: number
}

const NOT_FOUND: Refusal = { status: 404, code: "not_found", message: "There is no such processor." }
const UNSIGNED: Refusal = { status: 401, code: "unauthorized", message: "The signature is not valid." }
const UNREADABLE: Refusal = { status: 400, code: "bad_request", message: "The message is not one of the protocol." }
const TOO_LARGE: Refusal = { status: 413, code: "bad_request", message: "The message is longer than 256 KiB." }
const POSTPONED: Refusal = {
  status: 503,
  code: "unavailable",
  message: "The message could not be applied yet; send it again.",
  retryAfterSeconds: 1
}
const tooMany = (retryAfterSeconds: number): Refusal => ({
  status: 429,
  code: "unavailable",
  message: "Too many messages without a valid signature came from this address.",
  retryAfterSeconds
})

const bodyOf = (refusal: Refusal | undefined): string =>
  refusal === undefined
    ? "{}"
    : JSON.stringify({ error: { code: refusal.code, message: refusal.message, param: null } })

type About<Kind> = Extract<Notice, { readonly kind: Kind }>

/** Asks the processor about what a message names. */
const look = Effect.fnUntraced(function* (
  id: string,
  notice: About<"operation" | "refund">
): Effect.fn.Return<Outcome, Unavailable, Accounts> {
  const accounts = yield* Accounts
  const account = yield* accounts.holder(notice.payment)
  if (account === undefined) return "foreign"
  yield* noteAccount(account)
  if (notice.kind === "refund") return yield* lookAtRefund(account, id, notice)
  const entry = yield* accounts.read(account, notice.operation)
  const isTheirs =
    isDocumentOf(entry, OPERATION) && entry.value.processor === id && entry.value.payment_intent === notice.payment
  return isTheirs ? yield* ask(account, [notice.operation]) : "foreign"
})

/** A refund is one of Till's operations, whose outcome may be missing here, or was made at the processor. */
const lookAtRefund = Effect.fnUntraced(function* (
  account: AccountId,
  processor: string,
  { amount, payment, reference }: About<"refund">
): Effect.fn.Return<Outcome, Unavailable, Accounts> {
  const before = yield* refundsOf(account, processor, payment)
  const open = before.filter(({ status }) => status !== "final").map(({ id }) => id)
  const heard = open.length === 0 ? "applied" : yield* ask(account, open)
  if (heard === "postponed") return heard
  const refunds = open.length === 0 ? before : yield* refundsOf(account, processor, payment)
  const found = yield* Accounts.use((accounts) => accounts.read(account, payment))
  const remote = isDocumentOf(found, PAYMENT_INTENT) ? found.hidden?.remote : undefined
  if (remote?.processor !== processor) return refunds.length > 0 ? "ignored" : "foreign"
  const isKnown = refunds.some((refund) => refund.reference === reference) || remote.refunds?.includes(reference)
  if (isKnown === true) return heard
  const made = { processor, id: reference, isLost: false, kind: "refund", payment, amount } as const
  const adopted = yield* adopt(account, made, "webhook")
  return adopted === "adopted" ? "applied" : adopted === "unheard" ? "postponed" : "ignored"
})

/** Reads all refunds of a payment that were begun at a processor. */
const refundsOf = Effect.fnUntraced(function* (account: AccountId, processor: string, payment: string) {
  const accounts = yield* Accounts
  const found: Array<Operation> = []
  let olderThan: string | undefined
  for (;;) {
    const { documents, hasMore } = yield* accounts.list(account, {
      kind: OPERATION.name,
      prefix: OPERATION.prefix,
      labels: { payment_intent: payment, kind: "refund" },
      limit: REFUNDS_PAGE,
      ...(olderThan !== undefined && { olderThan })
    })
    const operations = documents.filter((one) => isDocumentOf(one, OPERATION)).map(({ value }) => value)
    found.push(...operations.filter((operation) => operation.processor === processor))
    if (!hasMore) return found
    olderThan = documents.at(-1)!.id
  }
})

const ask = (account: AccountId, operations: ReadonlyArray<string>): Effect.Effect<Outcome, Unavailable> =>
  Effect.map(
    Effect.forEach(operations, (operation) => lookAt(account, operation, "webhook")),
    (heard) => (heard.every(Boolean) ? "applied" : "postponed")
  )

const make = Effect.gen(function* () {
  const processors = yield* Processors
  const requestIds = yield* RequestIds
  const count = yield* Metrics.counters(MESSAGES, [["operation", "applied"]])
  const unsigned = new FixedWindows(UNSIGNED_MAX)
  const warned = new FixedWindows(1)
  /** Messages under way, by processor. */
  const running = new Map<string, number>()

  const respondTo = (request: Request, refusal: Refusal | undefined): HttpServerResponse.HttpServerResponse => {
    const { retryAfterSeconds, status = 200 } = refusal ?? {}
    const headers = retryAfterSeconds === undefined ? undefined : { "retry-after": String(retryAfterSeconds) }
    return respond(request, requestIds.next(), { status, body: bodyOf(refusal), headers })
  }

  /** Takes a place for a message of a processor. */
  const within = <E, R>(id: string, looked: Effect.Effect<Outcome, E, R>): Effect.Effect<Outcome, E, R> =>
    Effect.suspend(() => {
      const before = running.get(id) ?? 0
      if (before >= MESSAGES_MAX) return Effect.succeed("postponed" as const)
      running.set(id, before + 1)
      return Effect.ensuring(
        looked,
        Effect.sync(() => {
          const after = running.get(id)! - 1
          if (after === 0) running.delete(id)
          else running.set(id, after)
        })
      )
    })

  const apply = (id: string, notice: Exclude<Notice, { readonly kind: "unreadable" }>) => {
    if (notice.kind === "dispute" || notice.kind === "other") return Effect.succeed("ignored" as const)
    const looked = Effect.timeoutOption(Effect.interruptible(look(id, notice)), LOOK_MILLIS_MAX)
    return within(id, looked.pipe(Effect.map(Option.getOrElse((): Outcome => "postponed"))))
  }

  /** Reads and applies a message. Fails with `Unavailable` if another process serves its account. */
  const receive = Effect.fnUntraced(function* (request: Request, id: string) {
    const processor = processors.byId(id)
    if (processor === null) return respondTo(request, NOT_FOUND)
    const address = addressGroup(yield* senderOf(request))
    const now = yield* Clock.currentTimeMillis
    const standing = unsigned.peek(address, now)
    if (standing.remaining === 0) return respondTo(request, tooMany(standing.resetSeconds))
    const raw = yield* readBodyOf(request, MESSAGE_BYTES_MAX)
    const notice = processor.verify(headersOf(request), raw, now)
    if (notice === null) {
      unsigned.count(address, now)
      count(["unknown", "unsigned"])
      if (!warned.count(id, now).isExceeded) {
        yield* log.warning(`A message to the processor ${id} has no valid signature`, undefined, { cause: "unsigned" })
      }
      return respondTo(request, UNSIGNED)
    }
    if (notice.kind === "unreadable") {
      count(["unknown", "unreadable"])
      return respondTo(request, UNREADABLE)
    }
    const outcome = yield* apply(id, notice)
    count([notice.kind, outcome])
    return respondTo(request, outcome === "postponed" ? POSTPONED : undefined)
  })

  const failed = (request: Request, failure: Unavailable | RequestTooLarge) =>
    Effect.succeed(respondTo(request, failure instanceof RequestTooLarge ? TOO_LARGE : POSTPONED))

  return (request: Request, id: string) =>
    Effect.catch(following(request, receive(request, id), LOOK_MILLIS_MAX), (failure) => failed(request, failure))
})

/** Header values by lower-case names. The values of a repeated header are joined, and so fit no signature. */
const headersOf = (request: Request): Readonly<Record<string, string | undefined>> =>
  Object.fromEntries(
    Object.entries(sourceOf(request).headers).filter((entry): entry is [string, string] => typeof entry[1] === "string")
  )

type Services = Accounts | HttpConfig | Processors | RequestBodies | RequestIds

export const layer: Layer.Layer<never, never, HttpRouter.HttpRouter | Services> = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const services = yield* Effect.context<Services>()
    const receive = yield* make
    yield* router.add("POST", "/processors/:id/webhooks", (request) =>
      Effect.flatMap(HttpRouter.params, ({ id = "" }) => Effect.provideContext(receive(request, id), services))
    )
  })
) as Layer.Layer<never, never, HttpRouter.HttpRouter | Services>
