/**
 * Payer authentication: `GET /authenticate/{pi}` shows the challenge, `POST` takes the answer (semantics
 * payment_intents.manual_confirmation, payment_intents.authentication, pages.not_found), and `GET /challenge/{cs}`
 * redirects the payer of a custom checkout there.
 *
 * Access requires the client secret; without it, the answer is a 404. Afterwards the payer is redirected to the
 * `return_url` of this confirmation only.
 *
 * A processor behind a network has a page of its own for the challenge: the same address leads there. From there the
 * payer comes to `GET /authenticate/{pi}/return`, which asks the processor and leads on (semantics
 * operations.challenge, operations.return). Its secret opens nothing else.
 */
import { Clock, Effect, Layer, Result } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { AuthenticationOutcome, PaymentIntent } from "../../domain/PaymentIntent.ts"
import { locationOf, withParameters, withSessionId } from "../../domain/RedirectUrl.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { FixedWindows } from "../../http/RateLimits.ts"
import { matchesClientSecret } from "../../payments/shared/ClientSecrets.ts"
import { OPERATION } from "../../payments/shared/Documents.ts"
import { lookAt } from "../../payments/lifecycles/OperationDispatcher.ts"
import { challengeSealing } from "../../payments/lifecycles/Operations.ts"
import * as PaymentIntentTransitions from "../../payments/lifecycles/PaymentIntentTransitions.ts"
import * as PaymentIntents from "../../payments/lifecycles/PaymentIntents.ts"
import { PaymentsConfig } from "../../payments/shared/PaymentsConfig.ts"
import { readDocument } from "../../payments/shared/ReadDocument.ts"
import { open } from "../../payments/shared/Sealing.ts"
import { noticeOf } from "../checkout/ClosedSession.ts"
import { pathOf } from "../checkout/Embedding.ts"
import { idempotencyKeyOf, isCrossSite, makeToken, readForm, wantsData } from "../../html/Forms.ts"
import { findPaymentIntent, findSession, type FoundPaymentIntent } from "../checkout/FindSession.ts"
import { foreignForm, notFound, notice } from "../../html/Notice.ts"
import { data, redirect, page, seeOther } from "../../html/PageResponse.ts"
import * as AuthenticationPage from "./PayerAuthenticationPage.ts"
import { queryOf, route, translationOf } from "../../html/Routing.ts"
import { type Translation, translationFor } from "../../html/Translation.ts"
import type { Submissions } from "../../html/FormSubmission.ts"
import * as FormSubmission from "../../html/FormSubmission.ts"

const missing = (request: HttpServerRequest.HttpServerRequest, depth = 1) =>
  page(notice({ ...notFound(translationOf(request)), depth }), { status: 404 })

/** Returns the PaymentIntent if the secret matches. */
const findWithSecret = Effect.fnUntraced(function* (id: string, secret: string) {
  const found = yield* findPaymentIntent(id)
  return found !== undefined && matchesClientSecret(found.paymentIntent, secret) ? found : undefined
})

const returnUrl = ({ next_action }: PaymentIntent): string | null => next_action?.redirect_to_url.return_url ?? null

/** The page for a payer who has no challenge to answer. */
const outcomePage = Effect.fnUntraced(function* (found: FoundPaymentIntent, translation: Translation, depth = 1) {
  const checkoutUrl = yield* checkoutUrlOf(found)
  return page(notice({ ...AuthenticationPage.noticeOf({ ...found, translation, checkoutUrl }), depth }), {
    pictures: [found.brand.icon]
  })
})

/** The hosted checkout to return to. Other sessions are on pages of the shop, whose addresses Till does not know. */
const checkoutUrlOf = Effect.fnUntraced(function* ({ checkoutSession }: FoundPaymentIntent) {
  const session = checkoutSession === undefined ? undefined : (yield* findSession(checkoutSession))?.session
  return session?.ui_mode === "hosted" ? (yield* PaymentsConfig).publicUrl + pathOf(session) : null
})

/** Makes the page's script reload the page, whose content has changed. */
const reload = data(200, { reload: true })

/** The terms that the payer agrees to. The merchant may change them while the page is open. */
const termsOf = ({ amount, currency, payment_method }: PaymentIntent): string =>
  `${amount} ${currency} ${payment_method}`

/** The subject of a form's token: an answer is valid for one PaymentIntent and one set of terms. */
const subjectOf = (id: string, terms: string): string => `${id} ${terms}`

/** The processor's page for the payer's authentication; null if Till's own page asks. */
const processorPageOf = Effect.fnUntraced(function* ({ account, waiting }: FoundPaymentIntent) {
  if (waiting === null) return null
  const sealed = (yield* readDocument(account, OPERATION, waiting))?.hidden.sealedChallenge ?? null
  const { keyring } = yield* PaymentsConfig
  return sealed === null ? null : open(challengeSealing(keyring, waiting), sealed)
})

/** Shows the challenge, or a notice if the PaymentIntent does not wait for an answer. */
const showChallenge = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  found: FoundPaymentIntent
) {
  const { brand, merchant, paymentIntent } = found
  const translation = translationFor(request.headers["accept-language"], found.locale)
  if (paymentIntent.status !== "requires_action") return yield* outcomePage(found, translation)
  const elsewhere = yield* processorPageOf(found)
  if (elsewhere !== null) return seeOther(elsewhere)
  const terms = termsOf(paymentIntent)
  const token = makeToken(yield* PaymentsConfig, subjectOf(paymentIntent.id, terms))
  return page(AuthenticationPage.render({ paymentIntent, merchant, brand, translation, terms, token }), {
    pictures: [brand.icon],
    formTargets: [returnUrl(paymentIntent), yield* successUrlBehind(paymentIntent)]
  })
})

const get = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const found = yield* findWithSecret(id, queryOf(request).get("client_secret") ?? "")
  return found === undefined ? missing(request) : yield* showChallenge(request, found)
})

/**
 * The checkout page that the payer returns to redirects immediately, so the policy must allow its `success_url` too.
 */
const successUrlBehind = Effect.fnUntraced(function* (paymentIntent: PaymentIntent) {
  const { publicUrl } = yield* PaymentsConfig
  const url = returnUrl(paymentIntent)
  const prefix = `${publicUrl}/checkout/`
  if (url === null || !url.startsWith(prefix)) return null
  const found = yield* findSession(url.slice(prefix.length).split("?", 1)[0]!)
  return found?.session.payment_intent === paymentIntent.id ? found.session.success_url : null
})

/** Stored for a repeated submission: the PaymentIntent has no `return_url` after the answer. */
interface Kept {
  readonly returnUrl: string | null
  readonly succeeded: boolean
}

const NOWHERE: Kept = { returnUrl: null, succeeded: false }

interface Answer {
  readonly outcome: AuthenticationOutcome
  /** The terms that the form showed. */
  readonly terms: string
  readonly idempotencyKey: string
}

const answer = (
  submissions: Submissions,
  { account, paymentIntent: { id } }: FoundPaymentIntent,
  { idempotencyKey, outcome, terms }: Answer
) => {
  const command = Effect.gen(function* () {
    const { value: paymentIntent } = yield* PaymentIntentTransitions.find(id)
    // The merchant has changed the terms, so the payer is asked again.
    if (termsOf(paymentIntent) !== terms) return NOWHERE
    const url = returnUrl(paymentIntent)
    const result = yield* PaymentIntents.authenticate(id, outcome)
    // The payer has answered even if the card was declined afterwards. The page at `return_url` reports the decline.
    const succeeded = Result.isSuccess(result) && result.success.status !== "requires_payment_method"
    const kept: Kept = { returnUrl: url, succeeded }
    return kept
  })
  return submissions.submit({ account, path: `/authenticate/${id}`, idempotencyKey, entered: { outcome } }, command)
}

const post = Effect.fnUntraced(function* (
  submissions: Submissions,
  request: HttpServerRequest.HttpServerRequest,
  id: string
) {
  if (isCrossSite(request)) return page(notice(foreignForm(translationOf(request))), { status: 403 })
  const values = yield* readForm(request)
  const found = yield* findWithSecret(id, values?.get("client_secret") ?? "")
  if (values === undefined || found === undefined) return missing(request)
  const isScript = wantsData(request)
  const outcome = values.get("outcome")
  const terms = values.get("terms") ?? ""
  const idempotencyKey = idempotencyKeyOf(yield* PaymentsConfig, subjectOf(id, terms), values.get("token") ?? "")
  if (idempotencyKey === undefined || (outcome !== "success" && outcome !== "failure")) {
    return page(notice(foreignForm(translationOf(request))), { status: 400 })
  }
  const submitted = yield* Effect.catchTag(
    answer(submissions, found, { outcome, terms, idempotencyKey }),
    // The same form was submitted before with the other answer. The first answer counts.
    "IdempotencyKeyReuse",
    () => Effect.succeed(null)
  )
  const kept = submitted?.ok === true ? (submitted.body as Kept) : undefined
  if (kept?.returnUrl == null) {
    return isScript ? reload : yield* showChallenge(request, (yield* findPaymentIntent(id)) ?? found)
  }
  return redirect(isScript, wayBack(found, kept.returnUrl, kept.succeeded ? "succeeded" : "failed"))
})

/**
 * Adds the outcome of an authentication to a `return_url` (semantics payment_intents.authentication, pages.redirects).
 */
const wayBack = (
  { checkoutSession, paymentIntent }: FoundPaymentIntent,
  returnUrl: string,
  outcome: "succeeded" | "failed" | "pending"
): string => {
  const filledIn = checkoutSession === undefined ? returnUrl : withSessionId(returnUrl, checkoutSession)
  return locationOf(
    withParameters(filledIn, {
      payment_intent: paymentIntent.id,
      payment_intent_client_secret: paymentIntent.client_secret,
      redirect_status: outcome
    })
  )
}

/** The time for which a payer who is back waits for the processor's word, in milliseconds. */
const BACK_MILLIS_MAX = 10_000
/** Pauses before the looks within that time, in milliseconds. */
const PAUSES_MILLIS = [0, 1000, 2000, 4000]
/** Looks at one operation that payers' returns cause, per minute. */
const LOOKS_MAX = 20

/** Asks the processor about a payer who is back, until there is a word. */
const listen = Effect.fnUntraced(function* (windows: FixedWindows, account: AccountId, operation: string) {
  for (const pause of PAUSES_MILLIS) {
    yield* Effect.sleep(pause)
    if (windows.count(operation, yield* Clock.currentTimeMillis).isExceeded) return
    yield* lookAt(account, operation, "look")
    if ((yield* readDocument(account, OPERATION, operation))?.value.status !== "waiting") return
  }
})

/** The outcome of a payer's way through the processor's page. */
const outcomeOf = ({ status }: PaymentIntent): "succeeded" | "failed" | "pending" => {
  if (status === "requires_action") return "pending"
  return status === "requires_payment_method" || status === "canceled" ? "failed" : "succeeded"
}

/** Leads a payer on who comes from the processor's page. A processor without a word does not hold the payer up. */
const comeBack = Effect.fnUntraced(function* (
  windows: FixedWindows,
  request: HttpServerRequest.HttpServerRequest,
  id: string
) {
  const query = queryOf(request)
  const found = yield* findPaymentIntent(id)
  if (found === undefined) return missing(request, 2)
  const operation = yield* readDocument(found.account, OPERATION, query.get("operation") ?? "")
  const url = operation?.value.payment_intent === id ? URL.parse(operation.hidden.request.returnUrl ?? "") : null
  const secret = { client_secret: url === null ? null : url.searchParams.get("secret") }
  if (operation === undefined || !matchesClientSecret(secret, query.get("secret") ?? "")) {
    return missing(request, 2)
  }
  if (operation.value.status === "waiting") {
    const heard = listen(windows, found.account, operation.value.id)
    yield* Effect.timeoutOption(Effect.interruptible(heard), BACK_MILLIS_MAX)
  }
  const after = (yield* findPaymentIntent(id)) ?? found
  const { returnUrl } = operation.hidden
  return returnUrl === null
    ? yield* outcomePage(after, translationFor(request.headers["accept-language"], after.locale), 2)
    : seeOther(wayBack(after, returnUrl, outcomeOf(after.paymentIntent)))
})

/**
 * Redirects the payer of a custom checkout to the challenge. The challenge requires the PaymentIntent's secret, which a
 * session does not contain: with a publishable key, a shop's page only receives it with a decline (semantics
 * keys.publishable.payment_intents). So that page sends the payer here. Without the session's secret, the answer is a
 * 404.
 */
const leadToChallenge = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const found = yield* findSession(id)
  if (found === undefined || !matchesClientSecret(found.session, queryOf(request).get("client_secret") ?? "")) {
    return missing(request)
  }
  const challenge = found.paymentIntent?.next_action?.redirect_to_url.url
  if (challenge !== undefined) return seeOther(challenge)
  if (found.session.status === "open") return missing(request)
  const translation = translationFor(request.headers["accept-language"], found.session.locale)
  return page(notice(noticeOf({ ...found, translation })), { status: 410, pictures: [found.brand.icon] })
})

export const layer = Layer.unwrap(
  Effect.map(FormSubmission.make, (submissions) => {
    const windows = new FixedWindows(LOOKS_MAX)
    return Layer.mergeAll(
      route("GET", "/authenticate/:id/return", (request, { id = "" }) => comeBack(windows, request, id)),
      route("GET", "/authenticate/:id", (request, { id = "" }) => get(request, id)),
      route("POST", "/authenticate/:id", (request, { id = "" }) => post(submissions, request, id)),
      route("GET", "/challenge/:id", (request, { id = "" }) => leadToChallenge(request, id))
    )
  })
)
