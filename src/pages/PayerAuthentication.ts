/**
 * Authentication of a payer: `GET /authenticate/{pi}` asks, `POST` takes the answer (semantics I-12 to I-14, §8.11,
 * §8.29).
 *
 * Only who has the PaymentIntent's client secret gets in, and is told nothing otherwise. Afterwards the payer is led to
 * the `return_url` of this very confirmation, and nowhere else.
 */
import { Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { KeptFailure } from "../domain/Errors.ts"
import type { AuthenticationOutcome, PaymentIntent } from "../domain/PaymentIntent.ts"
import { matchesClientSecret } from "../payments/ClientSecrets.ts"
import * as PaymentIntentChanges from "../payments/PaymentIntentChanges.ts"
import * as PaymentIntents from "../payments/PaymentIntents.ts"
import { PaymentsConfig } from "../payments/PaymentsConfig.ts"
import * as AuthenticationPage from "./AuthenticationPage.ts"
import { pathOf } from "./Embedding.ts"
import { isCrossSite, readForm, wantsData } from "./FormBody.ts"
import { idempotencyKeyOf, makeToken } from "./FormToken.ts"
import { localeOf } from "./Money.ts"
import { NOT_FOUND, NOT_FROM_HERE, notice } from "./Notice.ts"
import { data, leadOn, page } from "./PageResponse.ts"
import type { FoundPaymentIntent } from "./Payers.ts"
import { findPaymentIntent, findSession } from "./Payers.ts"
import { queryOf, route } from "./Routing.ts"
import type { Submissions } from "./Submission.ts"
import * as Submission from "./Submission.ts"
import { returnUrlOf } from "./SuccessUrl.ts"

/** The PaymentIntent, for who has its secret. */
const open = Effect.fnUntraced(function* (id: string, secret: string) {
  const found = yield* findPaymentIntent(id)
  return found !== undefined && matchesClientSecret(found.paymentIntent, secret) ? found : undefined
})

const returnUrl = ({ next_action }: PaymentIntent): string | null => next_action?.redirect_to_url.return_url ?? null

/** What to say to somebody who has nothing to answer (any more). */
const donePage = Effect.fnUntraced(function* (found: FoundPaymentIntent) {
  return page(notice(AuthenticationPage.noticeOf({ ...found, checkoutUrl: yield* checkoutUrlOf(found) })))
})

/** The way back to the checkout. Pages of other sessions than hosted ones are the shop's, and it alone knows them. */
const checkoutUrlOf = Effect.fnUntraced(function* ({ checkoutSession }: FoundPaymentIntent) {
  const session = checkoutSession === undefined ? undefined : (yield* findSession(checkoutSession))?.session
  return session?.ui_mode === "hosted" ? (yield* PaymentsConfig).publicUrl + pathOf(session) : null
})

/** What the page's script is told, if not where to go: its page has something else to say now. */
const reload = data(200, { reload: true })

const get = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const found = yield* open(id, queryOf(request).get("client_secret") ?? "")
  if (found === undefined) return page(notice(NOT_FOUND), { status: 404 })
  const { merchant, paymentIntent } = found
  if (paymentIntent.status !== "requires_action") return yield* donePage(found)
  const token = makeToken(yield* PaymentsConfig, id)
  const locale = localeOf(request.headers["accept-language"])
  return page(AuthenticationPage.render({ paymentIntent, merchant, locale, token }), {
    formTargets: [returnUrl(paymentIntent), yield* successUrlBehind(paymentIntent)]
  })
})

/** A checkout page that the payer comes back to leads on at once, so the form leads there as well. */
const successUrlBehind = Effect.fnUntraced(function* (paymentIntent: PaymentIntent) {
  const { publicUrl } = yield* PaymentsConfig
  const url = returnUrl(paymentIntent)
  const prefix = `${publicUrl}/checkout/`
  if (url === null || !url.startsWith(prefix)) return null
  const found = yield* findSession(url.slice(prefix.length).split("?", 1)[0]!)
  return found?.session.payment_intent === paymentIntent.id ? found.session.success_url : null
})

/** What is kept of an answer, for those who send it again: by then the PaymentIntent no longer says where to go. */
interface Kept {
  readonly returnUrl: string | null
  readonly succeeded: boolean
}

const answer = (
  submissions: Submissions,
  { account, paymentIntent }: FoundPaymentIntent,
  outcome: AuthenticationOutcome,
  idempotencyKey: string
) => {
  const { id } = paymentIntent
  const command = Effect.gen(function* () {
    const url = returnUrl((yield* PaymentIntentChanges.find(id)).value)
    const result: PaymentIntent | KeptFailure = yield* PaymentIntents.authenticate(id, outcome)
    // The answer was given either way; that the card was declined afterwards is for the one who is returned to.
    if ("_tag" in result && result._tag !== "CardDeclined") return result
    const kept: Kept = { returnUrl: url, succeeded: outcome === "success" && !("_tag" in result) }
    return kept
  })
  return submissions.submit(
    { account, path: `/authenticate/${id}`, idempotencyKey, entered: { outcome } },
    command,
    JSON.stringify
  )
}

const post = Effect.fnUntraced(function* (
  submissions: Submissions,
  request: HttpServerRequest.HttpServerRequest,
  id: string
) {
  if (isCrossSite(request)) return page(notice(NOT_FROM_HERE), { status: 403 })
  const values = yield* readForm(request)
  const found = yield* open(id, values?.get("client_secret") ?? "")
  if (values === undefined || found === undefined) return page(notice(NOT_FOUND), { status: 404 })
  const isScript = wantsData(request)
  const outcome = values.get("outcome")
  const idempotencyKey = idempotencyKeyOf(yield* PaymentsConfig, id, values.get("token") ?? "")
  if (idempotencyKey === undefined || (outcome !== "success" && outcome !== "failure")) {
    return page(notice(NOT_FROM_HERE), { status: 400 })
  }
  const submitted = yield* Effect.catchTag(
    answer(submissions, found, outcome, idempotencyKey),
    // The same form was sent with the other answer before: the first one counts.
    "IdempotencyKeyReuse",
    () => Effect.succeed(null)
  )
  const kept = submitted?.ok === true ? (submitted.body as Kept) : undefined
  if (kept?.returnUrl == null) {
    return isScript ? reload : yield* donePage((yield* findPaymentIntent(id)) ?? found)
  }
  return leadOn(
    isScript,
    returnUrlOf(kept.returnUrl, {
      payment_intent: id,
      payment_intent_client_secret: found.paymentIntent.client_secret,
      redirect_status: kept.succeeded ? "succeeded" : "failed"
    })
  )
})

export const layer = Layer.unwrap(
  Effect.map(Submission.make, (submissions) =>
    Layer.mergeAll(
      route("GET", "/authenticate/:id", (request, { id = "" }) => get(request, id)),
      route("POST", "/authenticate/:id", (request, { id = "" }) => post(submissions, request, id))
    )
  )
)
