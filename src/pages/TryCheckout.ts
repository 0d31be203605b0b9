/**
 * Creates a checkout to try with one click on the home page (semantics pages.home), in the test mode of the merchant
 * that the first start has created. Only an installation for this machine has the button: elsewhere, strangers could
 * fill the merchant's environment.
 */
import { Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { CheckoutSession } from "../domain/CheckoutSession.ts"
import * as FormSubmission from "../html/FormSubmission.ts"
import { idempotencyKeyOf, isCrossSite, makeToken, readForm } from "../html/Forms.ts"
import { html, type Html } from "../html/Html.ts"
import { foreignForm, notice } from "../html/Notice.ts"
import { page, seeOther } from "../html/PageResponse.ts"
import { namesThisMachine, route, translationOf } from "../html/Routing.ts"
import { accountOf, INSTALLATION } from "../payments/shared/AccountIds.ts"
import * as CheckoutSessions from "../payments/lifecycles/CheckoutSessions.ts"
import { DEFAULT_MERCHANT, DEFAULT_MERCHANT_ID } from "../payments/merchants/Merchants.ts"
import { PaymentsConfig, type PaymentsConfigShape } from "../payments/shared/PaymentsConfig.ts"
import * as Products from "../payments/lifecycles/Products.ts"
import { readDocument } from "../payments/shared/ReadDocument.ts"
import { PagesConfig } from "./checkout/Embedding.ts"

const PATH = "/try"

/** The button, with a token that creates one session, however often it is sent. */
export const tryForm = (config: PaymentsConfigShape): Html =>
  html`<form method="post" action=".${PATH}">
    <input type="hidden" name="token" value="${makeToken(config, PATH)}" />
    <button type="submit">Open a checkout</button>
  </form>`

/** Creates a product and a session for two of it. */
const create = Effect.gen(function* () {
  const { currencies, publicUrl } = yield* PaymentsConfig
  const [currency = "usd"] = currencies === null || currencies.has("usd") ? [] : currencies
  const { id: product } = yield* Products.create({ name: "House Espresso", description: "Dark roast, 1 kg" })
  return yield* CheckoutSessions.create({
    mode: "payment",
    success_url: `${publicUrl}/`,
    cancel_url: `${publicUrl}/`,
    line_items: [{ price_data: { currency, unit_amount: 1200, product }, quantity: 2 }]
  })
})

const answer = (submissions: FormSubmission.Submissions) =>
  Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
    const config = yield* PaymentsConfig
    const token = (yield* readForm(request))?.get("token") ?? ""
    const idempotencyKey = idempotencyKeyOf(config, PATH, token)
    const merchant = yield* readDocument(INSTALLATION, DEFAULT_MERCHANT, DEFAULT_MERCHANT_ID)
    const isForeign = isCrossSite(request) || !namesThisMachine(request)
    if (isForeign || idempotencyKey === undefined || merchant === undefined) {
      return page(notice(foreignForm(translationOf(request))), { status: 403 })
    }
    const account = accountOf(merchant.value.merchant_id, false)
    const submitted = yield* submissions.submit({ account, path: PATH, idempotencyKey, entered: {} }, create)
    if (!submitted.ok) return yield* Effect.die(new Error(`The checkout to try was refused: ${submitted.message}`))
    return seeOther((submitted.body as CheckoutSession).url!)
  })

export const layer = Layer.unwrap(
  Effect.gen(function* () {
    const { isForThisMachine } = yield* PagesConfig
    return isForThisMachine ? route("POST", PATH, answer(yield* FormSubmission.make)) : Layer.empty
  })
)
