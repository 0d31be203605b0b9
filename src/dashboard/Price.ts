/** One price: of which product, and what quantities at it come to. Its actions are on its product's page. */
import { Effect } from "effect"
import { PRICE, PRODUCT } from "../payments/Documents.ts"
import { json } from "./components/Json.ts"
import { priceHtml, quantitiesSection } from "./components/Prices.ts"
import { badge, code, facts, metadataSection, section, time, words } from "./components/Values.ts"
import { objectLink } from "./Objects.ts"
import { stateBadge } from "./Products.ts"
import { find } from "./Reading.ts"
import type { Show } from "./Screens.ts"
import { screen } from "./Screens.ts"

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }) {
  const price = (yield* find(visit.account, PRICE, id)).value
  const product = (yield* find(visit.account, PRODUCT, price.product)).value
  const { active, created, lookup_key, metadata, nickname, tax_behavior, type } = price
  return {
    title: nickname ?? `Price of ${product.name}`,
    section: "Products",
    back: [`/products/${product.id}`, product.name],
    live: ["price", "product"],
    aside: [stateBadge(active), id === product.default_price && badge("default")],
    content: [
      facts([
        ["Price", priceHtml(price)],
        ["Id", code(id)],
        ["Product", objectLink(visit, product.id)],
        ["Lookup key", lookup_key && code(lookup_key)],
        ["Kind", words(type)],
        ["Tax", words(tax_behavior)],
        ["Since", time(created)]
      ]),
      metadataSection(metadata),
      quantitiesSection(price),
      section("JSON", json(visit, price, "The price as JSON"))
    ]
  }
})

export const layer = screen("/prices/:id", "see", show)
