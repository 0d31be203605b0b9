/**
 * Serves the hosted and the embedded checkout: `GET /checkout/{cs}` shows a session, `POST` pays for it (semantics
 * checkout.url, pages.checkout, checkout.confirm, checkout.expire).
 *
 * The form pays by the same lifecycle as `POST /v1/checkout_sessions/{id}/confirm`, once per form. The response is a
 * page or a redirect; the page's script requests the same as data. Payers are only redirected to Till's own pages and
 * to the session's own URLs. No response contains card data.
 */
import { Effect, Layer } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { successUrlOf } from "../../domain/CheckoutSession.ts"
import { stateOf } from "../../domain/PaymentLink.ts"
import * as CheckoutSessions from "../../payments/lifecycles/CheckoutSessions.ts"
import { matchesClientSecret } from "../../payments/shared/ClientSecrets.ts"
import type { TokenizedPaymentMethodData } from "../../payments/lifecycles/PaymentMethods.ts"
import { PaymentsConfig } from "../../payments/shared/PaymentsConfig.ts"
import { type AmountField, amountFieldOf } from "./AmountField.ts"
import {
  type CardField,
  complaintsOf,
  type Details,
  detailsOf,
  type Field,
  type FieldErrors,
  fieldOf,
  type FormParts,
  formPartsOf,
  readEntered
} from "./CheckoutForm.ts"
import * as CheckoutPage from "./CheckoutPage.ts"
import { noticeOf, pauseOf } from "./ClosedSession.ts"
import { picturesOf } from "./CheckoutOrder.ts"
import { adviceOf } from "./Declines.ts"
import { embedderOf, mayOpen, PagesConfig, pathOf } from "./Embedding.ts"
import { type FormValues, idempotencyKeyOf, isCrossSite, makeToken, readForm, wantsData } from "../../html/Forms.ts"
import type { Frame } from "../../html/Layout.ts"
import { findPaymentIntent, findSession, type FoundSession } from "./FindSession.ts"
import { failureTextOf, foreignForm, notFound, notice } from "../../html/Notice.ts"
import { data, redirect, page, seeOther } from "../../html/PageResponse.ts"
import { queryOf, route, translationOf } from "../../html/Routing.ts"
import { countryFor, type Translation, translationFor } from "../../html/Translation.ts"
import { inactiveNotice } from "./PaymentLinkPage.ts"
import { ANOTHER, CHOICE } from "./SavedCards.ts"
import type { Submissions, Submitted } from "../../html/FormSubmission.ts"
import * as FormSubmission from "../../html/FormSubmission.ts"

/** A request for a session's page. */
interface Visit {
  readonly found: FoundSession
  readonly translation: Translation
  /** The payer's likely country; undefined if it cannot be guessed. */
  readonly country: string | undefined
  /** The field for an amount that the payer chooses; null if there is none. */
  readonly amount: AmountField | null
  readonly wantsData: boolean
  readonly publicUrl: string
  /** The origin that may frame the page; null if none may. */
  readonly embedder: string | null
}

/** The form after an attempt: status, message, and the values to show again. */
interface Problem {
  readonly status: number
  readonly message: string | null
  readonly details: Details
  readonly errors?: FieldErrors
  /** Card fields to type again, which the page's script empties. */
  readonly again?: ReadonlyArray<CardField>
  /** Token of the shown form: the submitted one if the payer should send the same form again. */
  readonly token: string
}

type Answer = HttpServerResponse.HttpServerResponse

/** The page's own address. */
const pageOf = ({ found, publicUrl }: Visit): string => publicUrl + pathOf(found.session)

/** True for a session without a payment link, and for one whose link takes payments (semantics payment_links.late). */
const isLinkOpen = ({ link }: FoundSession): boolean => link === null || stateOf(link) === "open"

/**
 * True for an open session, unless it is closed for a while after too many failed attempts (semantics
 * checkout.attempts), or its payment link takes no more payments.
 */
const isPayable = (found: FoundSession): boolean =>
  found.session.status === "open" && found.hidden.closedUntil === null && isLinkOpen(found)

const frameOf = ({ embedder, found: { session } }: Visit): Frame | null =>
  embedder === null ? null : { origin: embedder, status: session.status, location: successUrlOf(session) }

/** The session's form, or the changes to it as data for the page's script. */
const formPage = (visit: Visit, problem: Problem): Answer => {
  const { amount, embedder, found, translation, wantsData } = visit
  const { brand, cards, goods, lines, merchant, saved, session } = found
  const { again = [], details, errors = {}, message, status, token } = problem
  if (wantsData) return data(status, { message, errors, again, token })
  const frame = frameOf(visit)
  const order = { session, lines, goods, merchant, brand, translation }
  const shown = { ...order, amount, saved, cards, token, details, errors, message, frame }
  const cardFrame = cards.kind === "frame" ? cards.url : null
  return page(CheckoutPage.render(shown), {
    status,
    // A form without a script is redirected to the processor's page for a challenge, too.
    formTargets: [session.success_url, cardFrame],
    framed: cardFrame,
    pictures: [brand.icon, ...picturesOf(goods)],
    frameAncestors: embedder === null ? [] : [embedder]
  })
}

/** The notice for a session that cannot be paid, or not before a time. */
const closedPage = (visit: Visit): Answer => {
  const { embedder, found, translation, wantsData } = visit
  const { closedUntil } = found.hidden
  const isOpen = found.session.status === "open"
  const isPaused = isOpen && isLinkOpen(found)
  const status = isPaused ? 429 : 410
  if (wantsData) return data(status, { reload: true })
  const closed = { ...found, translation }
  const closedNotice = isPaused
    ? pauseOf(closed, closedUntil!)
    : isOpen
      ? inactiveNotice({ ...closed, link: found.link! })
      : noticeOf(closed)
  const pictures = [found.brand.icon]
  if (embedder === null) return page(notice(closedNotice), { status, pictures })
  return page(notice({ ...closedNotice, frame: frameOf(visit) }), { pictures, frameAncestors: [embedder] })
}

/**
 * Redirects the payer of a complete session to the shop. In a frame the page is reloaded instead, and then reports to
 * the shop's page, which knows the next address.
 */
const completed = (visit: Visit): Answer => {
  if (visit.embedder !== null && visit.wantsData) return data(200, { reload: true })
  return redirect(visit.wantsData, successUrlOf(visit.found.session) ?? pageOf(visit))
}

/** The page before its form is sent, with the outcome of an earlier attempt. */
const showSession = (visit: Visit, query: URLSearchParams, token: string): Answer => {
  const { hidden, paymentIntent, saved, session } = visit.found
  const secret = query.get("payment_intent_client_secret")
  const returns = paymentIntent !== null && secret !== null && matchesClientSecret(paymentIntent, secret)
  // A payer with the payment's secret has just authenticated and paid. Without it, the session was paid before.
  if (session.status === "complete" && returns) return completed(visit)
  if (!isPayable(visit.found)) return closedPage(visit)
  // Removes the payment's secret from the address bar. The session's own secret stays: an embedded page requires it.
  if (secret !== null || (query.size > 0 && session.client_secret === null)) return seeOther(pageOf(visit))
  const failure = failureOf(visit)
  const known = detailsOf(hidden.collected ?? session.customer_details, visit.amount, saved)
  const details = { ...known, country: known.country || (visit.country ?? ""), ...choiceAfter(failure) }
  return formPage(visit, { status: 200, ...failure, details, token })
}

/** The message about a failed last attempt, with advice beside a field. */
const failureOf = ({
  found: { cards, paymentIntent, saved },
  translation
}: Visit): Pick<Problem, "message" | "errors" | "again"> => {
  const text = paymentIntent === null ? null : failureTextOf(paymentIntent, translation)
  if (paymentIntent === null || text === null) return { message: null }
  return {
    message: `${text} ${translation.text("failure.not_charged")}`,
    ...adviceOf(paymentIntent, saved, translation, cards.kind === "frame")
  }
}

/** Selects the fields of a new card, with the advice, unless a saved card has failed. */
const choiceAfter = ({ errors }: Pick<Problem, "errors">): Details =>
  errors === undefined || CHOICE in errors ? {} : { [CHOICE]: ANOTHER }

/** Confirms the session with the entered values. */
const confirm = (
  submissions: Submissions,
  visit: Visit,
  confirmation: NonNullable<ReturnType<typeof readEntered>["confirmation"]>,
  idempotencyKey: string
) => {
  const { account, session } = visit.found
  const { payment_method_data, ...entered } = confirmation
  const path = `/checkout/${session.id}`
  const make = (payment_method_data: TokenizedPaymentMethodData | null) =>
    CheckoutSessions.confirm(
      session.id,
      { ...entered, return_url: pageOf(visit), payment_method_data },
      { language: visit.translation.language }
    )
  return submissions.submit(
    { account, path, idempotencyKey, entered: confirmation },
    payment_method_data === null ? make(null) : { data: payment_method_data, make }
  )
}

/** Answers a submission. `visit` has the session's state after the submission. */
const outcomeOf = (visit: Visit, submitted: Submitted, details: Details, token: string): Answer => {
  const { paymentIntent, session } = visit.found
  if (submitted.ok) {
    if (session.status === "complete") return completed(visit)
    const challenge = paymentIntent?.next_action?.redirect_to_url.url
    if (challenge !== undefined) return redirect(visit.wantsData, challenge)
  }
  if (!isPayable(visit.found)) return closedPage(visit)
  if (submitted.ok || submitted.code === "card_declined") {
    const failure = failureOf(visit)
    const message = failure.message ?? visit.translation.text("problem.not_completed")
    return formPage(visit, { ...failure, status: 402, message, details, token })
  }
  const field = fieldOf(submitted.param)
  const problem =
    field === undefined
      ? { message: messageOf(submitted, visit.translation) }
      : placeErrors(visit, { [field]: refusalOf(field, details, visit.translation) })
  return formPage(visit, { status: submitted.status, ...problem, details, token })
}

/** The error about an entry that the lifecycle has refused, although it seemed valid. */
const refusalOf = (field: Field, { country = "" }: Details, translation: Translation): string =>
  field === CHOICE
    ? translation.text("saved.gone")
    : (complaintsOf(field, country, translation).invalid ?? translation.text("field.refused"))

/** Errors beside their fields. If a saved card is gone and none is left to offer, the message is at the top. */
const placeErrors = (visit: Visit, errors: FieldErrors): Pick<Problem, "message" | "errors"> =>
  CHOICE in errors && visit.found.saved.length === 0 && !visit.wantsData
    ? { message: visit.translation.text("saved.gone") }
    : { message: null, errors }

/** Explains to the payer why the payment failed. */
const messageOf = ({ code }: Submitted & { readonly ok: false }, translation: Translation): string => {
  switch (code) {
    case "processor_unavailable":
      return translation.text("problem.processor_unavailable")
    case "processor_not_configured":
      return translation.text("problem.processor_missing")
    default:
      return translation.text("problem.other")
  }
}

/** Pays with a submitted form, unless it is invalid or not from this page. */
const pay = Effect.fnUntraced(function* (submissions: Submissions, visit: Visit, values: FormValues) {
  const config = yield* PaymentsConfig
  const { id } = visit.found.session
  const newToken = () => makeToken(config, id)
  const asked: FormParts = formPartsOf(visit.found.session, visit.amount, visit.found.saved, visit.found.cards)
  const { translation } = visit
  const { confirmation, details, errors } = readEntered(asked, values, translation)
  const token = values.get("token") ?? ""
  const idempotencyKey = idempotencyKeyOf(config, id, token)
  if (confirmation === null) {
    if (!isPayable(visit.found)) return closedPage(visit)
    return formPage(visit, { status: 400, ...placeErrors(visit, errors), details, token: newToken() })
  }
  if (idempotencyKey === undefined) {
    if (!isPayable(visit.found)) return closedPage(visit)
    const message = translation.text("problem.page_expired")
    return formPage(visit, { status: 400, message, details, token: newToken() })
  }
  const retry = (message: string, token: string) =>
    Effect.map(findSession(id), (found) => {
      const current = { ...visit, found: found ?? visit.found }
      if (!isPayable(current.found)) return closedPage(current)
      return formPage(current, { status: 409, message, details, token })
    })
  return yield* confirm(submissions, visit, confirmation, idempotencyKey).pipe(
    Effect.flatMap((submitted) =>
      Effect.map(findSession(id), (found) =>
        outcomeOf({ ...visit, found: found ?? visit.found }, submitted, details, newToken())
      )
    ),
    Effect.catchTag("IdempotencyKeyReuse", () => retry(translation.text("problem.changed"), newToken())),
    Effect.catchTag("IdempotencyKeyInUse", () => retry(translation.text("problem.in_progress"), token)),
    Effect.catchTag("Unavailable", (unavailable) =>
      // Nothing was tried yet; the process that owns the account will try.
      unavailable.isElsewhere
        ? Effect.fail(unavailable)
        : Effect.succeed(
            formPage(visit, { status: 503, message: translation.text("problem.unavailable"), details, token })
          )
    )
  )
})

const visitOf = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const found = yield* findSession(id)
  const query = queryOf(request)
  if (found === undefined || !mayOpen(found.session, query)) return undefined
  const { publicUrl } = yield* PaymentsConfig
  const accepted = request.headers["accept-language"]
  const translation = translationFor(accepted, found.session.locale)
  const visit: Visit = {
    found,
    translation,
    country: countryFor(accepted),
    amount: amountFieldOf(found, translation),
    wantsData: wantsData(request),
    publicUrl,
    embedder: embedderOf(found.session, query, yield* PagesConfig)
  }
  return visit
})

const get = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const visit = yield* visitOf(request, id)
  if (visit === undefined) return page(notice(notFound(translationOf(request))), { status: 404 })
  const config = yield* PaymentsConfig
  return showSession(visit, queryOf(request), makeToken(config, visit.found.session.id))
})

/** Finds a session or a PaymentIntent that a card is for. */
const findPayable = Effect.fnUntraced(function* (id: string) {
  const payment = yield* findPaymentIntent(id)
  if (payment !== undefined) return { object: payment.paymentIntent, cards: payment.cards, locale: payment.locale }
  const found = yield* findSession(id)
  return found && { object: found.session, cards: found.cards, locale: found.session.locale }
})

/**
 * The processor's page with the inputs of a card, for a shop's own page (`mountCard` in checkout.js). The client secret
 * of the session or PaymentIntent is the permission.
 */
const fields = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
  const found = yield* findPayable(id)
  const isTheirs = found !== undefined && matchesClientSecret(found.object, queryOf(request).get("client_secret") ?? "")
  const url = isTheirs && found.cards.kind === "frame" ? found.cards.url : null
  const translation = translationFor(request.headers["accept-language"], found?.locale)
  const answer = data(isTheirs ? 200 : 404, {
    url,
    title: translation.text("card.title"),
    missing: translation.text("frame.missing"),
    refused: translation.text("frame.refused")
  })
  return HttpServerResponse.setHeader(answer, "access-control-allow-origin", "*")
})

const post = (submissions: Submissions) =>
  Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, id: string) {
    if (isCrossSite(request)) return page(notice(foreignForm(translationOf(request))), { status: 403 })
    const visit = yield* visitOf(request, id)
    if (visit === undefined) return page(notice(notFound(translationOf(request))), { status: 404 })
    const values = yield* readForm(request)
    if (values === undefined) return page(notice(foreignForm(visit.translation)), { status: 400 })
    return yield* pay(submissions, visit, values)
  })

export const layer = Layer.unwrap(
  Effect.map(FormSubmission.make, (submissions) =>
    Layer.mergeAll(
      route("GET", "/checkout/:id/fields", (request, { id = "" }) => fields(request, id)),
      route("GET", "/checkout/:id", (request, { id = "" }) => get(request, id)),
      route("POST", "/checkout/:id", (request, { id = "" }) => post(submissions)(request, id))
    )
  )
)
