/**
 * Authentication of a payer: `GET /authenticate/{pi}` asks, `POST` takes the answer (semantics I-12 to I-14, §8.11,
 * §8.29).
 *
 * Only who has the PaymentIntent's client secret gets in, and is told nothing otherwise. Afterwards the payer is led to
 * the `return_url` of this very confirmation, and nowhere else.
 */
import { Effect, Layer, Result } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { AuthenticationOutcome, PaymentIntent } from "../domain/PaymentIntent.ts"
import { matchesClientSecret } from "../payments/ClientSecrets.ts"
import * as PaymentIntentSteps from "../payments/PaymentIntentSteps.ts"
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

/** What a payer agrees to. A merchant may change all of it while the payer looks at the page. */
const termsOf = ({ amount, currency, payment_method }: PaymentIntent): string =>
  `${amount} ${currency} ${payment_method}`

/** What a form's token is good for. */
const subjectOf = (id: string, terms: string): string => `${id} ${terms}`

/** Asks, if there is anything to ask. */
const ask = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, found: FoundPaymentIntent) {
  const { merchant, paymentIntent } = found
  if (paymentIntent.status !== "requires_action") return yield* donePage(found)
  const terms = termsOf(paymentIntent)
  const token = makeToken(yield* PaymentsConfig, subjectOf(paymentIntent.id, terms))
  const locale = localeOf(request.headers["accept-language"])
  return page(AuthenticationPage.render({ paymentIntent, merchant, locale, terms, token }), {
    formTargets: [returnUrl(paymentIntent), yield* successUrlBehind(paymentIntent)]
  })
})

const get = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const found = yield* open(id, queryOf(request).get("client_secret") ?? "")
  return found === undefined ? page(notice(NOT_FOUND), { status: 404 }) : yield* ask(request, found)
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

const NOWHERE: Kept = { returnUrl: null, succeeded: false }

interface Answer {
  readonly outcome: AuthenticationOutcome
  /** What the payer was asked to agree to. */
  readonly terms: string
  readonly idempotencyKey: string
}

const answer = (
  submissions: Submissions,
  { account, paymentIntent: { id } }: FoundPaymentIntent,
  { idempotencyKey, outcome, terms }: Answer
) => {
  const command = Effect.gen(function* () {
    const { value: paymentIntent } = yield* PaymentIntentSteps.find(id)
    // Asked anew, the payer may agree to what is wanted now.
    if (termsOf(paymentIntent) !== terms) return NOWHERE
    const url = returnUrl(paymentIntent)
    // The answer was given either way; that the card was declined afterwards is for the one who is returned to.
    const result = yield* PaymentIntents.authenticate(id, outcome)
    const kept: Kept = { returnUrl: url, succeeded: outcome === "success" && Result.isSuccess(result) }
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
  const terms = values.get("terms") ?? ""
  const idempotencyKey = idempotencyKeyOf(yield* PaymentsConfig, subjectOf(id, terms), values.get("token") ?? "")
  if (idempotencyKey === undefined || (outcome !== "success" && outcome !== "failure")) {
    return page(notice(NOT_FROM_HERE), { status: 400 })
  }
  const submitted = yield* Effect.catchTag(
    answer(submissions, found, { outcome, terms, idempotencyKey }),
    // The same form was sent with the other answer before: the first one counts.
    "IdempotencyKeyReuse",
    () => Effect.succeed(null)
  )
  const kept = submitted?.ok === true ? (submitted.body as Kept) : undefined
  if (kept?.returnUrl == null) {
    return isScript ? reload : yield* ask(request, (yield* findPaymentIntent(id)) ?? found)
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
