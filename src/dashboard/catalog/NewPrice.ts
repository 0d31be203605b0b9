/** The form for a new price: a unit amount, an amount that the payer chooses, or tiers. */
import { Effect, Layer } from "effect"
import { CreatePrice, type Price, type TierParameter } from "../../domain/Price.ts"
import type { FormValues } from "../../html/Forms.ts"
import { type Child, html } from "../../html/Html.ts"
import { PRODUCT } from "../../payments/Documents.ts"
import * as Prices from "../../payments/Prices.ts"
import { requireDocument } from "../../payments/ReadDocument.ts"
import { type Fields, form } from "../frame/Form.ts"
import { PREVIEW, pricePreview } from "../frame/Prices.ts"
import { readAmount, decodeBody, readNumber, readText } from "../frame/FormDecoding.ts"
import { INTERVALS, NO_SUBSCRIPTIONS } from "./Products.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"

const group = (title: string, content: Child): Child =>
  html`<fieldset>
    <legend>${title}</legend>
    ${content}
  </fieldset>`

const amount = (fields: Fields, name: string, label: string): Child =>
  fields.text({ name, label, inputmode: "decimal" })

const priceFields = (fields: Fields): Child => [
  group("Amount", [
    amount(fields, "unit_amount", "Unit price"),
    fields.text({ name: "currency", label: "Currency", value: "usd", required: true }),
    fields.choice({ name: "recurring[interval]", label: "Charged", options: INTERVALS, hint: NO_SUBSCRIPTIONS }),
    fields.text({
      name: "recurring[interval_count]",
      label: "Number of intervals between charges",
      inputmode: "numeric",
      hint: "1 if empty."
    })
  ]),
  group("Name", [
    fields.text({ name: "nickname", label: "Name", hint: "Only visible to you." }),
    fields.text({ name: "lookup_key", label: "Lookup key", hint: "Your code can find the price by this key." })
  ]),
  group("Or let the payer choose", [
    fields.check({ name: "custom_unit_amount[enabled]", label: "The payer chooses the amount" }),
    amount(fields, "custom_unit_amount[minimum]", "Minimum"),
    amount(fields, "custom_unit_amount[maximum]", "Maximum"),
    amount(fields, "custom_unit_amount[preset]", "Suggested amount")
  ]),
  group("By quantity", [
    fields.choice({
      name: "tiers_mode",
      label: "Tiers",
      options: [
        ["", "None"],
        ["graduated", "Graduated: each unit at the price of its own tier"],
        ["volume", "Volume: all units at the price of the last unit's tier"]
      ]
    }),
    fields.area({
      name: "tiers",
      label: "Tiers, one per line",
      hint: html`Last unit of the tier or <code>inf</code>, price per unit, and optionally a flat fee.
        <code>10 5.00</code>: up to 10 units at 5.00 each. <code>inf 4.50 20.00</code>: further units at 4.50 each, plus
        20.00 once.`
    }),
    fields.text({ name: "transform_quantity[divide_by]", label: "Sold in packages of", inputmode: "numeric" }),
    fields.choice({
      name: "transform_quantity[round]",
      label: "Partial packages",
      options: [
        ["up", "Round up"],
        ["down", "Round down"]
      ]
    })
  ])
]

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }, problem) {
  const { name } = (yield* requireDocument(visit.account, PRODUCT, id)).value
  return {
    title: "New price",
    section: "Products",
    back: [`/products/${id}`, name],
    content: html`<div class="previewed">
      ${form({
        visit,
        action: `/products/${id}/prices/create`,
        submit: "Add price",
        preview: PREVIEW,
        problem,
        content: (fields) => html`<div class="groups">${priceFields(fields)}</div>`
      })}
      ${
        problem?.preview === undefined
          ? html`<p class="empty">Preview the amounts for some quantities before you add the price.</p>`
          : pricePreview(problem.preview as Price)
      }
    </div>`
  }
})

/** Parses tiers, one per line: last unit, unit amount, and an optional flat amount for the whole tier. */
const tiersIn = (values: FormValues, currency: string | null): ReadonlyArray<TierParameter> | Invalid => {
  const lines = (values.get("tiers") ?? "").split("\n").map((line) => line.trim())
  const tiers: Array<TierParameter> = []
  for (const [index, line] of lines.filter((line) => line !== "").entries()) {
    const wrong = (problem: string) => new Invalid({ tiers: `Line ${index + 1}: ${problem}` })
    const [end = "", each = "", flat = "", ...more] = line.split(/\s+/)
    if (!/^(inf|[1-9]\d{0,14})$/.test(end) || each === "" || more.length > 0) {
      return wrong("enter a number or inf, an amount, and optionally a second amount.")
    }
    const amounts = new Map([
      ["unit_amount", each],
      ["flat_amount", flat]
    ])
    const [unit_amount, flat_amount] = ["unit_amount", "flat_amount"].map((name) => readAmount(amounts, name, currency))
    for (const amount of [unit_amount, flat_amount]) {
      if (amount instanceof Invalid) return wrong(Object.values(amount.errors)[0]!)
    }
    tiers.push({
      up_to: end === "inf" ? "inf" : Number(end),
      unit_amount: unit_amount as number | null,
      flat_amount: flat_amount as number | null
    })
  }
  return tiers
}

const priceIn = (product: string, values: FormValues) => {
  const currency = readText(values, "currency")
  const amounts: Record<string, number | null> = {}
  for (const name of [
    "unit_amount",
    ...["minimum", "maximum", "preset"].map((name) => `custom_unit_amount[${name}]`)
  ]) {
    const amount = readAmount(values, name, currency)
    if (amount instanceof Invalid) return amount
    amounts[name] = amount
  }
  const tiers = tiersIn(values, currency)
  if (tiers instanceof Invalid) return tiers
  const tiers_mode = readText(values, "tiers_mode")
  const interval = readText(values, "recurring[interval]")
  const divide_by = readNumber(values, "transform_quantity[divide_by]")
  return {
    product,
    currency,
    unit_amount: amounts["unit_amount"],
    nickname: readText(values, "nickname"),
    lookup_key: readText(values, "lookup_key"),
    recurring: interval && { interval, interval_count: readNumber(values, "recurring[interval_count]") },
    ...(values.has("custom_unit_amount[enabled]") && {
      custom_unit_amount: {
        enabled: true,
        minimum: amounts["custom_unit_amount[minimum]"],
        maximum: amounts["custom_unit_amount[maximum]"],
        preset: amounts["custom_unit_amount[preset]"]
      }
    }),
    ...((tiers_mode !== null || tiers.length > 0) && {
      billing_scheme: "tiered",
      tiers_mode,
      tiers: tiers.length > 0 ? tiers : null
    }),
    transform_quantity: divide_by && { divide_by, round: readText(values, "transform_quantity[round]") }
  }
}

const create = action({
  name: "price.create",
  right: "build",
  page: "/products/:id/prices",
  path: "/products/:id/prices/create",
  show,
  notice: "Price added.",
  prepare: (_, { id = "" }, values) => {
    const entered = priceIn(id, values)
    if (entered instanceof Invalid) return Effect.succeed(entered)
    const isPreview = values.has("preview")
    return Effect.succeed({
      entered,
      subject: id,
      detail: entered.nickname ?? entered.lookup_key,
      isPreview,
      next: () => `/products/${id}` as const,
      command: Effect.flatMap(decodeBody(CreatePrice, entered), isPreview ? Prices.preview : Prices.create)
    })
  }
})

export const layer = Layer.merge(page("/products/:id/prices", "build", show), create)
