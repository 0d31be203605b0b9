/**
 * Serves the address of a payment link (semantics pages.payment_link): `GET /pay/{token}` shows what the link sells,
 * and `POST`, sent by the button, opens a Checkout Session and redirects to its page.
 *
 * A visit writes nothing: messengers, mail filters and search engines load links before a payer follows one. Only
 * the form makes a session, once per form, and only so many forms of one address: strangers can write no more.
 */
import { Clock, Effect, Layer } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { CheckoutSession } from "../../domain/CheckoutSession.ts"
import { addressGroup } from "../../domain/Networks.ts"
import type { Submissions, Submitted } from "../../html/FormSubmission.ts"
import * as FormSubmission from "../../html/FormSubmission.ts"
import { type FormValues, idempotencyKeyOf, isCrossSite, makeToken, readForm } from "../../html/Forms.ts"
import { foreignForm, notFound, notice, type Notice } from "../../html/Notice.ts"
import { page, seeOther } from "../../html/PageResponse.ts"
import { queryOf, route, translationOf } from "../../html/Routing.ts"
import { senderOf } from "../../html/Sender.ts"
import type { Translation } from "../../html/Translation.ts"
import { FixedWindows } from "../../http/RateLimits.ts"
import { type ChosenQuantities, pathOf, quantityParam, visit } from "../../payments/lifecycles/PaymentLinks.ts"
import { PaymentsConfig } from "../../payments/shared/PaymentsConfig.ts"
import { picturesOf } from "./CheckoutOrder.ts"
import { findLink, type FoundLink } from "./FindLink.ts"
import * as PaymentLinkPage from "./PaymentLinkPage.ts"

/** Forms of an address in one window; many payers may share one address. */
export const FORMS_MAX = 60
const WINDOW_MILLIS = 15 * 60 * 1000

type Request = HttpServerRequest.HttpServerRequest
type Answer = HttpServerResponse.HttpServerResponse

interface Visit {
  readonly found: FoundLink
  readonly translation: Translation
  readonly publicUrl: string
  readonly newToken: () => string
}

const subjectOf = ({ link }: FoundLink): string => `payment link ${link.id}`

const visitOf = Effect.fnUntraced(function* (request: Request, token: string) {
  const found = yield* findLink(token)
  if (found === undefined) return undefined
  const config = yield* PaymentsConfig
  const visit: Visit = {
    found,
    translation: translationOf(request),
    publicUrl: config.publicUrl,
    newToken: () => makeToken(config, subjectOf(found))
  }
  return visit
})

/** The quantities that a payer has entered, and their errors. */
type Problem = Pick<PaymentLinkPage.PaymentLinkPage, "entered" | "errors" | "message">

const NO_PROBLEM: Problem = { entered: new Map(), errors: new Map(), message: null }

const linkPage = ({ found, newToken, translation }: Visit, problem: Problem, status: number): Answer =>
  page(PaymentLinkPage.render({ found, translation, token: newToken(), ...problem }), {
    status,
    // The checkout page that the form leads to has a form of its own, with the shop's address.
    pictures: [found.brand.icon, ...picturesOf(found.goods)]
  })

const noticePage = ({ found }: Visit, content: Notice, status: number): Answer =>
  page(notice(content), { status, pictures: [found.brand.icon] })

const inactivePage = (visit: Visit): Answer =>
  noticePage(visit, PaymentLinkPage.inactiveNotice({ ...visit.found, translation: visit.translation }), 410)

const missing = (request: Request): Answer => page(notice(notFound(translationOf(request))), { status: 404 })

const get = Effect.fnUntraced(function* (request: Request, token: string) {
  const visit = yield* visitOf(request, token)
  if (visit === undefined) return missing(request)
  if (!visit.found.isOpen) return inactivePage(visit)
  // The address stays short, whatever others have appended to it.
  if (queryOf(request).size > 0) return seeOther(visit.publicUrl + pathOf(visit.found.link.id))
  return linkPage(visit, NO_PROBLEM, 200)
})

/** Reads the quantities. A text that is no whole number counts as one out of bounds. */
const quantitiesIn = ({ lines }: FoundLink, values: FormValues) => {
  const entered = new Map<number, string>()
  const chosen = new Map<number, number>()
  for (const [index, { adjustable_quantity }] of lines.entries()) {
    const text = values.get(PaymentLinkPage.fieldName(index))
    if (adjustable_quantity === null || text === undefined) continue
    entered.set(index, text)
    chosen.set(index, /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN)
  }
  return { entered, chosen }
}

const errorsIn = ({ found, translation }: Visit, chosen: ChosenQuantities): ReadonlyMap<number, string> => {
  const errors = new Map<number, string>()
  for (const [index, quantity] of chosen) {
    const bounds = found.lines[index]!.adjustable_quantity!
    if (quantity >= bounds.minimum && quantity <= bounds.maximum) continue
    errors.set(index, translation.text("link.quantity_wrong", PaymentLinkPage.boundsOf(bounds, translation)))
  }
  return errors
}

/** Answers a form whose command has run. Refusals about what the link sells mean that it sells nothing any longer. */
const outcomeOf = (visit: Visit, submitted: Submitted, entered: Problem["entered"]): Answer => {
  if (submitted.ok) return seeOther(`${visit.publicUrl}/checkout/${(submitted.body as CheckoutSession).id}`)
  if (submitted.code === "amount_too_large") {
    return linkPage(visit, { ...NO_PROBLEM, entered, message: visit.translation.text("link.too_much") }, 400)
  }
  return inactivePage(visit)
}

const open = Effect.fnUntraced(function* (
  submissions: Submissions,
  visitor: Visit,
  { chosen, entered }: { readonly chosen: ChosenQuantities; readonly entered: Problem["entered"] },
  idempotencyKey: string
) {
  const { account, link } = visitor.found
  const again = () => {
    const message = visitor.translation.text("link.again")
    return Effect.succeed(linkPage(visitor, { ...NO_PROBLEM, entered, message }, 409))
  }
  const quantities = Object.fromEntries([...chosen].map(([index, quantity]) => [quantityParam(index), quantity]))
  const submission = { account, path: pathOf(link.id), idempotencyKey, entered: quantities }
  return yield* submissions.submit(submission, visit(link.id, chosen)).pipe(
    Effect.map((submitted) => outcomeOf(visitor, submitted, entered)),
    Effect.catchTags({ IdempotencyKeyReuse: again, IdempotencyKeyInUse: again })
  )
})

const post = (submissions: Submissions, windows: FixedWindows) =>
  Effect.fnUntraced(function* (request: Request, token: string) {
    const foreign = (status: number) => page(notice(foreignForm(translationOf(request))), { status })
    if (isCrossSite(request)) return foreign(403)
    const visitor = yield* visitOf(request, token)
    if (visitor === undefined) return missing(request)
    const values = yield* readForm(request)
    if (values === undefined) return foreign(400)
    const { found, translation } = visitor
    if (!found.isOpen) return inactivePage(visitor)
    if (!found.takesCards) return linkPage(visitor, NO_PROBLEM, 400)
    const config = yield* PaymentsConfig
    const quantities = quantitiesIn(found, values)
    const errors = errorsIn(visitor, quantities.chosen)
    if (errors.size > 0) return linkPage(visitor, { entered: quantities.entered, errors, message: null }, 400)
    const idempotencyKey = idempotencyKeyOf(config, subjectOf(found), values.get("token") ?? "")
    if (idempotencyKey === undefined) {
      const message = translation.text("link.again")
      return linkPage(visitor, { ...NO_PROBLEM, entered: quantities.entered, message }, 400)
    }
    const standing = windows.count(addressGroup(yield* senderOf(request)), yield* Clock.currentTimeMillis)
    if (standing.isExceeded) {
      const refused = noticePage(visitor, PaymentLinkPage.tooManyNotice({ ...found, translation }), 429)
      return HttpServerResponse.setHeader(refused, "retry-after", String(standing.resetSeconds))
    }
    return yield* open(submissions, visitor, quantities, idempotencyKey)
  })

export const layer = Layer.unwrap(
  Effect.map(FormSubmission.make, (submissions) => {
    const windows = new FixedWindows(FORMS_MAX, WINDOW_MILLIS)
    return Layer.mergeAll(
      route("GET", "/pay/:token", (request, { token = "" }) => get(request, token)),
      route("POST", "/pay/:token", (request, { token = "" }) => post(submissions, windows)(request, token))
    )
  })
)
