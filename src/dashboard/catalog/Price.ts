/** The page of a price. Actions such as archiving are on the product's page. */
import { Effect, Layer } from "effect"
import { type Price, UpdatePrice } from "../../domain/Price.ts"
import type { FormValues } from "../../html/Forms.ts"
import { PRICE, PRODUCT } from "../../payments/shared/Documents.ts"
import { html } from "../../html/Html.ts"
import * as Commands from "../../payments/lifecycles/Prices.ts"
import { requireDocument } from "../../payments/shared/ReadDocument.ts"
import { dialog, type Problem } from "../frame/Form.ts"
import { forDevelopers, json } from "../frame/Json.ts"
import { priceHtml, quantitiesSection } from "../frame/Prices.ts"
import { badge, code, facts, time, words } from "../frame/Values.ts"
import { pickChanged, readText, updateWith } from "../frame/FormDecoding.ts"
import { historySection } from "../history/History.ts"
import { metadataEditor, metadataAction } from "../frame/Metadata.ts"
import { objectLink } from "../frame/ObjectLinks.ts"
import { newLink } from "./Product.ts"
import { NO_SUBSCRIPTIONS, stateBadge } from "./Products.ts"
import { action, page, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"

const buttons = (visit: Visit, { active, id, lookup_key, nickname }: Price, problem: Problem | null) =>
  visit.may("build") &&
  html`<div class="buttons">
    ${active && newLink(visit, id)}
    ${dialog("Edit", {
      visit,
      action: `/prices/${id}/edit`,
      submit: "Save",
      problem,
      isEdit: true,
      content: (fields) => [
        fields.text({ name: "nickname", label: "Name", value: nickname ?? "", hint: "Only your team sees it." }),
        fields.text({
          name: "lookup_key",
          label: "Lookup key",
          value: lookup_key ?? "",
          hint: "Your code can find the price by this key."
        }),
        html`<p class="field">The amount of a price cannot be changed. Add a new price and archive this one.</p>`
      ]
    })}
  </div>`

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }, problem) {
  const price = (yield* requireDocument(visit.account, PRICE, id)).value
  const product = (yield* requireDocument(visit.account, PRODUCT, price.product)).value
  const { active, created, lookup_key, metadata, nickname, tax_behavior, type } = price
  return {
    title: nickname ?? `Price of ${product.name}`,
    section: "Products",
    back: [`/products/${product.id}`, product.name],
    live: ["price", "product", "event", "delivery"],
    aside: [stateBadge(active), id === product.default_price && badge("default"), buttons(visit, price, problem)],
    content: [
      facts([
        ["Price", priceHtml(price)],
        ["ID", code(id)],
        ["Product", objectLink(visit, product.id)],
        ["Lookup key", lookup_key && code(lookup_key)],
        ["Type", type === "recurring" ? [words(type), html`<p class="hint">${NO_SUBSCRIPTIONS}</p>`] : words(type)],
        ["Tax", tax_behavior === "unspecified" ? null : words(tax_behavior)],
        ["Created", time(created)]
      ]),
      metadataEditor(visit, `/prices/${id}`, metadata, problem),
      quantitiesSection(price),
      yield* historySection(visit, { ids: [id] }),
      forDevelopers(json(visit, price, "The price as JSON"))
    ]
  }
})

const namesIn = (values: FormValues) => ({
  nickname: readText(values, "nickname"),
  lookup_key: readText(values, "lookup_key")
})

const update = updateWith(UpdatePrice, Commands.update)

const onPage = { right: "build", page: "/prices/:id", show } as const

const edit = action({
  ...onPage,
  name: "price.update",
  path: "/prices/:id/edit",
  notice: "Price updated.",
  prepare: (_, { id = "" }, values) => {
    const entered = pickChanged(values, namesIn(values))
    return Effect.succeed({ entered, command: update(id, entered) })
  }
})

const updateMetadata = metadataAction({
  ...onPage,
  name: "price",
  kind: PRICE,
  update
})

export const layer = Layer.mergeAll(page("/prices/:id", "see", show), edit, updateMetadata)
