/** The list of products with their default prices, and the form for a new product. */
import { Effect, Layer } from "effect"
import { type Price, RecurringInterval } from "../../domain/Price.ts"
import { CreateProduct, type Product } from "../../domain/Product.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { FormValues } from "../../html/Forms.ts"
import { type Child, html } from "../../html/Html.ts"
import { PRODUCT } from "../../payments/shared/Documents.ts"
import * as Commands from "../../payments/lifecycles/Products.ts"
import { SEARCHED_PRODUCT } from "../../payments/shared/Search.ts"
import { dialog, type Fields, filters, searchField } from "../frame/Form.ts"
import { priceHtml } from "../frame/Prices.ts"
import { type Column, table } from "../frame/Table.ts"
import { badge, NOTHING, time } from "../frame/Values.ts"
import { readAmount, decodeBody, readText } from "../frame/FormDecoding.ts"
import { listOrSearch } from "../frame/Queries.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"

export const nameField = (fields: Fields, product?: Product): Child =>
  fields.text({ name: "name", label: "Name", value: product?.name ?? "", required: true })

export const descriptionField = (fields: Fields, product?: Product): Child =>
  fields.text({ name: "description", label: "Description", value: product?.description ?? "" })

export const INTERVALS = [
  ["", "One-time"],
  ...RecurringInterval.literals.map((interval) => [interval, `Every ${interval}`] as const)
] as const

/** Shown wherever a price recurs. */
export const NO_SUBSCRIPTIONS = "Charged once per payment. Till has no subscriptions that charge again by themselves."

export const stateBadge = (active: boolean): Child => badge(active ? "active" : "archived")

const VIEWS = [
  ["", "Active"],
  ["archived", "Archived"],
  ["all", "All"]
] as const

const labelsOf = (view: string | null): Readonly<Record<string, string>> =>
  view === "all" ? {} : { active: String(view !== "archived") }

const defaultPrices = Effect.fnUntraced(function* ({ account }: Visit, products: ReadonlyArray<Product>) {
  const accounts = yield* Accounts
  const ids = products.flatMap(({ default_price }) => (default_price === null ? [] : [default_price]))
  const found = yield* Effect.forEach(ids, (id) => accounts.read(account, id), { concurrency: 4 })
  return new Map(
    found.flatMap((entry) => (entry?.deleted === false ? [[entry.id, entry.value as Price] as const] : []))
  )
})

/** The columns of a list of products, with their default prices. */
export const productColumns = Effect.fnUntraced(function* (visit: Visit, products: ReadonlyArray<Product>) {
  const prices = yield* defaultPrices(visit, products)
  const columns: ReadonlyArray<Column<Product>> = [
    { name: "Product", long: true, cell: ({ name }) => html`<bdi>${name}</bdi>` },
    {
      name: "Price",
      cell: ({ default_price }) => {
        const price = prices.get(default_price ?? "")
        return price === undefined ? NOTHING : priceHtml(price)
      }
    },
    { name: "Status", cell: ({ active }) => stateBadge(active) },
    { name: "Created", wide: true, cell: ({ created }) => time(created) }
  ]
  return columns
})

const newProduct = (fields: Fields): Child => [
  nameField(fields),
  fields.text({ name: "default_price_data[unit_amount]", label: "Price", inputmode: "decimal" }),
  fields.text({ name: "default_price_data[currency]", label: "Currency", value: "usd" }),
  fields.more({
    title: "Description and period",
    names: ["description", "default_price_data[recurring][interval]"],
    content: [
      descriptionField(fields),
      fields.choice({
        name: "default_price_data[recurring][interval]",
        label: "Charged",
        options: INTERVALS,
        hint: NO_SUBSCRIPTIONS
      })
    ]
  })
]

const show: Show = Effect.fnUntraced(function* (visit, _, problem) {
  const { links, rows } = yield* listOrSearch(visit, PRODUCT, SEARCHED_PRODUCT, labelsOf(visit.query.get("status")))
  return {
    title: "Products",
    section: "Products",
    live: ["product", "price"],
    aside: html`<div class="buttons">
      <a class="button" href="${visit.to("/payment-links")}">Payment links</a>
      <a class="button" href="${visit.to("/checkout-sessions")}">Checkout sessions</a>
      ${
        visit.may("build") &&
        dialog("New product", {
          visit,
          action: "/products/create",
          submit: "Create",
          tone: "primary",
          problem,
          content: newProduct
        })
      }
    </div>`,
    content: [
      filters(visit, "/products", (fields) => fields.choice({ name: "status", label: "Status", options: VIEWS }), {
        search: searchField()
      }),
      table({
        caption: "Products, newest first",
        columns: yield* productColumns(visit, rows),
        rows,
        href: ({ id }) => visit.to(`/products/${id}`),
        empty:
          visit.query.size > 0
            ? "No products match these filters."
            : "No products yet. Add a product, give it a price, and you can start selling."
      }),
      links
    ]
  }
})

const enteredProduct = (values: FormValues) => {
  const currency = readText(values, "default_price_data[currency]")
  const interval = readText(values, "default_price_data[recurring][interval]")
  const unit_amount = readAmount(values, "default_price_data[unit_amount]", currency)
  if (unit_amount instanceof Invalid) return unit_amount
  return {
    name: readText(values, "name"),
    description: readText(values, "description"),
    // A currency without an amount does not make a price.
    default_price_data: readText(values, "default_price_data[unit_amount]") && {
      currency,
      unit_amount,
      recurring: interval && { interval }
    }
  }
}

const create = action({
  name: "product.create",
  right: "build",
  page: "/products",
  path: "/products/create",
  show,
  notice: "Product created.",
  prepare: (_, __, values) => {
    const entered = enteredProduct(values)
    if (entered instanceof Invalid) return Effect.succeed(entered)
    return Effect.succeed({
      entered,
      detail: entered.name,
      next: ({ id }) => `/products/${id}`,
      command: Effect.flatMap(decodeBody(CreateProduct, entered), Commands.create)
    })
  }
})

export const layer = Layer.merge(page("/products", "see", show), create)
