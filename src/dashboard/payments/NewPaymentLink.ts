/** The form for a new payment link. */
import { Effect, Layer } from "effect"
import { ADJUSTABLE_QUANTITY_DEFAULT_MAX, CreatePaymentLink } from "../../domain/PaymentLink.ts"
import type { Price } from "../../domain/Price.ts"
import type { FormValues } from "../../html/Forms.ts"
import { type Child, html } from "../../html/Html.ts"
import { PRICE, PRODUCT } from "../../payments/shared/Documents.ts"
import * as Commands from "../../payments/lifecycles/PaymentLinks.ts"
import { readDocument } from "../../payments/shared/ReadDocument.ts"
import { decodeBody, readNumber, readText } from "../frame/FormDecoding.ts"
import { type Fields, form } from "../frame/Form.ts"
import { action, page, type Show } from "../frame/Page.ts"
import { findObjects, listObjects } from "../frame/Queries.ts"
import { amountText } from "../frame/Values.ts"
import type { Visit } from "../frame/Visit.ts"

/** Prices to choose from, newest first. */
const PRICES_MAX = 100

/** The price to sell, in an address, and in the form of a page at such an address. */
const NAMED = "price"
const LINE = "line_items[0]"
const ADJUSTABLE = `${LINE}[adjustable_quantity]`
export const LIMIT = "restrictions[completed_sessions][limit]"
export const REDIRECT = "after_completion[redirect][url]"

/** The price that the address names, or else the active prices, with the names of their products. */
const findPrices = Effect.fnUntraced(function* ({ account }: Visit, named: string | null) {
  const price = named === null ? undefined : yield* readDocument(account, PRICE, named)
  const listed = { labels: { active: "true" }, limit: PRICES_MAX }
  const prices = price === undefined ? (yield* listObjects(account, PRICE, listed)).rows : [price.value]
  const products = yield* findObjects(
    account,
    PRODUCT,
    prices.map(({ product }) => product)
  )
  return prices.map((price) => [price.id, textOf(price, products.get(price.product)?.name ?? price.product)] as const)
})

/** `House Espresso, 12.00 USD` */
const textOf = ({ currency, id, nickname, unit_amount }: Price, product: string): string =>
  `${product}, ${nickname ?? (unit_amount === null ? id : amountText(unit_amount, currency))}`

/** Fields that a link can still change. */
export const changeableFields = (
  fields: Fields,
  { limit = "", message = "", redirect = "" }: { limit?: string; message?: string; redirect?: string } = {}
): Child => [
  fields.text({
    name: LIMIT,
    label: "Limit of payments",
    inputmode: "numeric",
    value: limit,
    hint: "The link stops after this many payments. Leave empty for no limit."
  }),
  fields.text({
    name: REDIRECT,
    label: "Page after payment",
    type: "url",
    value: redirect,
    hint: "A page on your website. Leave empty for Till's confirmation page."
  }),
  fields.area({
    name: "inactive_message",
    label: "Text while inactive",
    value: message,
    rows: 2,
    hint: "Shown to visitors when the link no longer takes payments."
  })
]

const show: Show = Effect.fnUntraced(function* (visit, _, problem) {
  const named = problem?.values.get(NAMED) ?? visit.query.get(NAMED)
  const prices = yield* findPrices(visit, named)
  return {
    title: "New payment link",
    section: "Products",
    back: ["/payment-links", "Payment links"],
    content:
      prices.length === 0
        ? html`<p class="empty">
            A payment link needs something to sell. <a href="${visit.to("/products")}">Add a product with a price</a>
            first.
          </p>`
        : form({
            visit,
            action: "/payment-links/create",
            submit: "Create link",
            problem,
            content: (fields) => [
              named !== null && prices[0]?.[0] === named
                ? html`<input type="hidden" name="${NAMED}" value="${named}" />
                    <p class="field"><bdi>${prices[0][1]}</bdi></p>`
                : fields.choice({ name: `${LINE}[price]`, label: "Price", options: prices }),
              fields.text({ name: `${LINE}[quantity]`, label: "Quantity", inputmode: "numeric", value: "1" }),
              fields.check({ name: `${ADJUSTABLE}[enabled]`, label: "Payers choose the quantity" }),
              fields.text({
                name: `${ADJUSTABLE}[maximum]`,
                label: "Largest quantity",
                inputmode: "numeric",
                hint: `The most that a payer can choose. ${ADJUSTABLE_QUANTITY_DEFAULT_MAX} if empty.`
              }),
              changeableFields(fields)
            ]
          })
  }
})

/** The parameters of the changeable fields; an empty field is null. */
export const changeableIn = (values: FormValues) => {
  const limit = readNumber(values, LIMIT)
  const url = readText(values, REDIRECT)
  return {
    restrictions: limit === null ? null : { completed_sessions: { limit } },
    after_completion: url === null ? { type: "hosted_confirmation" } : { type: "redirect", redirect: { url } },
    inactive_message: readText(values, "inactive_message")
  }
}

const create = action({
  name: "payment_link.create",
  right: "build",
  page: "/payment-links/new",
  path: "/payment-links/create",
  show,
  notice: "Payment link created.",
  prepare: (_, __, values) => {
    const maximum = readNumber(values, `${ADJUSTABLE}[maximum]`)
    const isAdjustable = values.has(`${ADJUSTABLE}[enabled]`)
    const line = {
      price: readText(values, NAMED) ?? readText(values, `${LINE}[price]`),
      quantity: readNumber(values, `${LINE}[quantity]`) ?? 1,
      ...(isAdjustable && { adjustable_quantity: { enabled: true, maximum } })
    }
    const entered = { line_items: [line], ...changeableIn(values) }
    return Effect.succeed({
      entered,
      next: ({ id }) => `/payment-links/${id}`,
      command: Effect.flatMap(decodeBody(CreatePaymentLink, entered), Commands.create)
    })
  }
})

export const layer = Layer.merge(page("/payment-links/new", "build", show), create)
