/** The page of a product, with its prices and the forms for links to pay them. */
import { Effect, Layer } from "effect"
import { CreateCheckoutSession } from "../../domain/CheckoutSession.ts"
import type { Price } from "../../domain/Price.ts"
import { type Product, UpdateProduct } from "../../domain/Product.ts"
import type { FormValues } from "../../html/Forms.ts"
import { type Child, html } from "../../html/Html.ts"
import * as CheckoutSessions from "../../payments/lifecycles/CheckoutSessions.ts"
import { PRICE, PRODUCT } from "../../payments/shared/Documents.ts"
import * as Prices from "../../payments/lifecycles/Prices.ts"
import * as Commands from "../../payments/lifecycles/Products.ts"
import { requireDocument } from "../../payments/shared/ReadDocument.ts"
import { dialog, type Fields, form, type Problem } from "../frame/Form.ts"
import { forDevelopers, json } from "../frame/Json.ts"
import { priceHtml, quantitiesSection } from "../frame/Prices.ts"
import { type Column, table } from "../frame/Table.ts"
import { badge, code, facts, NOTHING, section, time } from "../frame/Values.ts"
import { pickChanged, decodeBody, readNumber, readText, updateWith } from "../frame/FormDecoding.ts"
import { descriptionField, nameField, stateBadge } from "./Products.ts"
import { historySection } from "../history/History.ts"
import { metadataEditor, metadataAction } from "../frame/Metadata.ts"
import { listObjects } from "../frame/Queries.ts"
import { action, page, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"

const PRICES_MAX = 100

const editFields =
  (product: Product) =>
  (fields: Fields): Child => [
    nameField(fields, product),
    descriptionField(fields, product),
    fields.text({ name: "url", label: "Web page", type: "url", value: product.url ?? "" }),
    fields.area({
      name: "images",
      label: "Images",
      value: product.images.join("\n"),
      hint: "One web address per line."
    }),
    fields.text({ name: "unit_label", label: "Unit label", value: product.unit_label ?? "" }),
    fields.text({
      name: "statement_descriptor",
      label: "Text on card statements",
      value: product.statement_descriptor ?? ""
    })
  ]

const productIn = (values: FormValues) => ({
  name: readText(values, "name"),
  description: readText(values, "description"),
  url: readText(values, "url"),
  images: (values.get("images") ?? "").split(/\s+/).filter((line) => line !== ""),
  unit_label: readText(values, "unit_label"),
  statement_descriptor: readText(values, "statement_descriptor")
})

const buttons = (visit: Visit, product: Product, problem: Problem | null): Child =>
  visit.may("build") &&
  html`<div class="buttons">
    ${dialog("Edit", {
      visit,
      action: `/products/${product.id}/edit`,
      submit: "Save",
      problem,
      isEdit: true,
      content: editFields(product)
    })}
    ${
      product.active
        ? form({ visit, action: `/products/${product.id}/archive`, submit: "Archive", tone: "danger", problem })
        : form({ visit, action: `/products/${product.id}/activate`, submit: "Activate", tone: "quiet", problem })
    }
  </div>`

const priceColumns = (visit: Visit, product: Product, problem: Problem | null): ReadonlyArray<Column<Price>> => [
  { name: "Price", cell: priceHtml },
  { name: "Name", long: true, wide: true, cell: ({ lookup_key, nickname }) => nickname ?? lookup_key ?? NOTHING },
  {
    name: "Status",
    cell: ({ active, id }) => [stateBadge(active), id === product.default_price && [" ", badge("default")]]
  },
  { name: "ID", wide: true, cell: ({ id }) => html`<a href="${visit.to(`/prices/${id}`)}">${code(id)}</a>` },
  ...(visit.may("build")
    ? [{ name: "Actions", cell: (price: Price) => priceButtons(visit, product, price, problem) }]
    : [])
]

/** Fields of a one-time link, which is a checkout session. With an amount that the payer chooses, the quantity is 1. */
const linkFields =
  ({ custom_unit_amount: custom }: Price) =>
  (fields: Fields): Child => [
    custom === undefined &&
      fields.text({ name: "line_items[0][quantity]", label: "Quantity", inputmode: "numeric", value: "1" }),
    fields.text({
      name: "success_url",
      label: "Page after payment",
      type: "url",
      hint: "A page on your website. Leave empty for Till's confirmation page. The link works for one payment, within 24 hours."
    })
  ]

const priceButtons = (visit: Visit, product: Product, price: Price, problem: Problem | null): Child => {
  const at = (what: string) => `/products/${product.id}/prices/${price.id}/${what}` as const
  const quiet = (what: string, submit: string) => form({ visit, action: at(what), submit, tone: "quiet", problem })
  return html`<div class="buttons">
    ${
      product.active &&
      price.active &&
      dialog("One-time link", {
        visit,
        action: at("link"),
        submit: "Create link",
        problem,
        content: linkFields(price)
      })
    }
    ${price.active && price.id !== product.default_price && quiet("default", "Make default")}
    ${price.active ? quiet("archive", "Archive") : quiet("activate", "Activate")}
  </div>`
}

/** Leads to a payment link for the default price, or else for the newest; false if none is on sale. */
const linkButton = (visit: Visit, product: Product, prices: ReadonlyArray<Price>): Child => {
  const onSale = product.active ? prices.filter(({ active }) => active) : []
  const price = onSale.find(({ id }) => id === product.default_price) ?? onSale[0]
  return price !== undefined && newLink(visit, price.id)
}

/** The button to a payment link for a price. */
export const newLink = (visit: Visit, price: string): Child =>
  html`<a class="button" href="${visit.to("/payment-links/new", { price })}">New payment link</a>`

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }, problem) {
  const product = (yield* requireDocument(visit.account, PRODUCT, id)).value
  const { rows: prices } = yield* listObjects(visit.account, PRICE, { labels: { product: id }, limit: PRICES_MAX })
  return {
    title: product.name,
    section: "Products",
    back: ["/products", "Products"],
    live: ["product", "price", "event", "delivery"],
    aside: [stateBadge(product.active), buttons(visit, product, problem)],
    content: [
      facts([
        ["ID", code(id)],
        ["Description", product.description],
        ["Web page", product.url && code(product.url)],
        ["Images", product.images.length > 0 ? product.images.map((image) => html`<div>${code(image)}</div>`) : null],
        ["Unit label", product.unit_label],
        ["Text on card statements", product.statement_descriptor],
        ["Created", time(product.created)],
        ["Updated", product.updated > product.created ? time(product.updated) : null]
      ]),
      metadataEditor(visit, `/products/${id}`, product.metadata, problem),
      section(
        "Prices",
        table({
          caption: "Prices of this product, newest first",
          columns: priceColumns(visit, product, problem),
          rows: prices,
          empty: "No prices yet. Add one to sell this product."
        }),
        visit.may("build") &&
          html`<div class="buttons">
            ${linkButton(visit, product, prices)}
            <a class="button" href="${visit.to(`/products/${id}/prices`)}">Add a price</a>
          </div>`
      ),
      prices.map(quantitiesSection),
      yield* historySection(visit, { ids: [id, ...prices.map((price) => price.id)] }),
      forDevelopers(json(visit, product, "The product as JSON"))
    ]
  }
})

const update = updateWith(UpdateProduct, Commands.update)

const onPage = { right: "build", page: "/products/:id", show } as const

const edit = action({
  ...onPage,
  name: "product.update",
  path: "/products/:id/edit",
  notice: "Product updated.",
  prepare: (_, { id = "" }, values) => {
    const entered = pickChanged(values, productIn(values))
    return Effect.succeed({ entered, command: update(id, entered) })
  }
})

const setActive = (name: "archive" | "activate", notice: string) =>
  action({
    ...onPage,
    name: `product.${name}`,
    path: `/products/:id/${name}`,
    notice,
    prepare: (_, { id = "" }) => {
      const entered = { active: name === "activate" }
      return Effect.succeed({ entered, command: Commands.update(id, entered) })
    }
  })

const setPriceActive = (name: "archive" | "activate", notice: string) =>
  action({
    ...onPage,
    name: `price.${name}`,
    path: `/products/:id/prices/:price/${name}`,
    notice,
    prepare: (_, { price = "" }) => {
      const entered = { active: name === "activate" }
      return Effect.succeed({ entered, subject: price, command: Prices.update(price, entered) })
    }
  })

const makeDefault = action({
  ...onPage,
  name: "product.set_default_price",
  path: "/products/:id/prices/:price/default",
  notice: "Default price changed.",
  prepare: (_, { id = "", price = "" }) => {
    const entered = { default_price: price }
    return Effect.succeed({ entered, detail: price, command: Commands.update(id, entered) })
  }
})

const makeLink = action({
  ...onPage,
  name: "checkout_session.create",
  path: "/products/:id/prices/:price/link",
  notice: "One-time link created.",
  prepare: ({ publicUrl }, { price = "" }, values) => {
    const entered = {
      mode: "payment",
      line_items: [{ price, quantity: readNumber(values, "line_items[0][quantity]") ?? 1 }],
      success_url: readText(values, "success_url") ?? `${publicUrl}/checkout/{CHECKOUT_SESSION_ID}`
    }
    return Effect.succeed({
      entered,
      subject: price,
      next: ({ id }) => `/checkout-sessions/${id}`,
      command: Effect.flatMap(decodeBody(CreateCheckoutSession, entered), CheckoutSessions.create)
    })
  }
})

const updateMetadata = metadataAction({
  ...onPage,
  name: "product",
  kind: PRODUCT,
  update
})

export const layer = Layer.mergeAll(
  page("/products/:id", "see", show),
  edit,
  updateMetadata,
  setActive("archive", "Product archived. It can no longer be sold."),
  setActive("activate", "Product activated."),
  setPriceActive("archive", "Price archived."),
  setPriceActive("activate", "Price activated."),
  makeDefault,
  makeLink
)
