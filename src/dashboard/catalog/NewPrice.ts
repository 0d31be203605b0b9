/**
 * The form for a new price. It begins with the amount and its currency; headings open the rest: an interval, an amount
 * that the payer chooses, tiers by quantity, packages.
 */
import { Effect, Layer } from "effect"
import { CreatePrice, type Price, type TierParameter, TIERS_MAX } from "../../domain/Price.ts"
import type { FormValues } from "../../html/Forms.ts"
import { type Child, html } from "../../html/Html.ts"
import { PRODUCT } from "../../payments/shared/Documents.ts"
import * as Prices from "../../payments/lifecycles/Prices.ts"
import { requireDocument } from "../../payments/shared/ReadDocument.ts"
import { type Fields, form } from "../frame/Form.ts"
import { PREVIEW, pricePreview } from "../frame/Prices.ts"
import { readAmount, decodeBody, readNumber, readText } from "../frame/FormDecoding.ts"
import { INTERVALS, NO_SUBSCRIPTIONS } from "./Products.ts"
import { action, Invalid, page, type Show, Unfinished } from "../frame/Page.ts"

const CUSTOM_AMOUNTS = ["minimum", "maximum", "preset"].map((name) => `custom_unit_amount[${name}]`)

const amount = (fields: Fields, name: string, label: string): Child =>
  fields.text({ name, label, inputmode: "decimal" })

/** Name of the button that adds a row to the table of tiers, whose value is the new number of rows. */
const ADD_TIER = "add_tier"
const TIER_ROWS_MIN = 3

const tierField = (row: number, column: string): string => `tiers[${row}][${column}]`

/** The number of rows in the submitted table, or the number that its button asks for. */
const tierRowsIn = (values: FormValues | undefined): number => {
  const asked = Number(values?.get(ADD_TIER) ?? 0)
  let sent = 0
  while (sent < TIERS_MAX && values?.has(tierField(sent, "up_to")) === true) sent++
  return Math.min(Math.max(TIER_ROWS_MIN, sent, Number.isInteger(asked) ? asked : 0), TIERS_MAX)
}

const tierFields = (fields: Fields, action: string, values: FormValues | undefined): Child => {
  const count = tierRowsIn(values)
  return [
    fields.choice({
      name: "tiers_mode",
      label: "How tiers apply",
      options: [
        ["", "No tiers"],
        ["graduated", "Graduated: each unit at its own tier's price"],
        ["volume", "Volume: all units at the price of the tier reached"]
      ]
    }),
    fields.rows({
      name: "tiers",
      caption: "Tiers",
      row: "Tier",
      columns: [
        { name: "up_to", label: "Up to unit", inputmode: "numeric", placeholder: "No limit" },
        { name: "unit_amount", label: "Price per unit", inputmode: "decimal" },
        { name: "flat_amount", label: "Flat fee", inputmode: "decimal" }
      ],
      count,
      focused: values?.has(ADD_TIER) === true ? count - 1 : undefined
    }),
    count < TIERS_MAX &&
      html`<p>
        <button type="submit" name="${ADD_TIER}" value="${count + 1}" formaction="${action}" formnovalidate="">
          Add a row
        </button>
      </p>`,
    html`<p class="hint">Leave “Up to unit” empty in the last tier. Empty rows do not count.</p>`
  ]
}

const priceFields = (fields: Fields, action: string, values: FormValues | undefined): Child => [
  html`<div class="pair">
    ${amount(fields, "unit_amount", "Price")}
    ${fields.text({ name: "currency", label: "Currency", value: "usd", required: true })}
  </div>`,
  fields.more({
    title: "Name and lookup key",
    names: ["nickname", "lookup_key"],
    content: [
      fields.text({ name: "nickname", label: "Name", hint: "Only your team sees it." }),
      fields.text({ name: "lookup_key", label: "Lookup key", hint: "Your code can find the price by this key." })
    ]
  }),
  fields.more({
    title: "For a period, such as a month",
    names: ["recurring[interval]", "recurring[interval_count]"],
    content: [
      fields.choice({ name: "recurring[interval]", label: "Charged", options: INTERVALS, hint: NO_SUBSCRIPTIONS }),
      fields.text({
        name: "recurring[interval_count]",
        label: "Number of intervals between charges",
        inputmode: "numeric",
        hint: "1 if empty."
      })
    ]
  }),
  fields.more({
    title: "Payer chooses the amount",
    names: ["custom_unit_amount[enabled]", ...CUSTOM_AMOUNTS],
    content: [
      html`<p class="hint">Leave the price above empty.</p>`,
      fields.check({ name: "custom_unit_amount[enabled]", label: "The payer chooses the amount" }),
      amount(fields, "custom_unit_amount[minimum]", "Minimum"),
      amount(fields, "custom_unit_amount[maximum]", "Maximum"),
      amount(fields, "custom_unit_amount[preset]", "Suggested amount")
    ]
  }),
  fields.more({
    title: "Price that depends on the quantity",
    names: ["tiers_mode", ADD_TIER, tierField(0, "up_to"), tierField(0, "unit_amount")],
    content: [html`<p class="hint">Leave the price above empty.</p>`, tierFields(fields, action, values)]
  }),
  fields.more({
    title: "Packages of several units",
    names: ["transform_quantity[divide_by]"],
    content: [
      fields.text({ name: "transform_quantity[divide_by]", label: "Units in a package", inputmode: "numeric" }),
      fields.choice({
        name: "transform_quantity[round]",
        label: "Partial packages",
        options: [
          ["up", "Round up"],
          ["down", "Round down"]
        ]
      })
    ]
  })
]

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }, problem) {
  const { name } = (yield* requireDocument(visit.account, PRODUCT, id)).value
  const action = `/products/${id}/prices/create` as const
  return {
    title: "New price",
    section: "Products",
    back: [`/products/${id}`, name],
    content: html`<div class="previewed">
      ${form({
        visit,
        action,
        submit: "Add price",
        preview: PREVIEW,
        problem,
        hasButtons: true,
        content: (fields) => priceFields(fields, visit.to(action), problem?.values)
      })}
      ${
        problem?.preview === undefined
          ? html`<p class="empty">Press Preview to see what some quantities will cost.</p>`
          : pricePreview(problem.preview as Price)
      }
    </div>`
  }
})

/** The error about the end of a tier; `before` is the end of the tier above it. */
const complaintAbout = (end: number | string | null, before: TierParameter["up_to"]) => {
  if (before === "inf") return { rowsAbove: 1, message: "Only the last tier can be without a limit." }
  if (typeof end === "string") return { rowsAbove: 0, message: "Enter a whole number, or leave this empty." }
  const isAbove = end === null || end > (before ?? 0)
  return isAbove ? undefined : { rowsAbove: 0, message: `Enter a number above ${before ?? 0}.` }
}

const TIER_COLUMNS = ["up_to", "unit_amount", "flat_amount"] as const

/** Reads the rows of the table. Rows that are empty do not count, and only the last may lack the last unit. */
const tiersIn = (values: FormValues, currency: string | null): ReadonlyArray<TierParameter> | Invalid => {
  const tiers: Array<TierParameter> = []
  for (let row = 0; row < tierRowsIn(values); row++) {
    const name = (column: string) => tierField(row, column)
    if (TIER_COLUMNS.every((column) => readText(values, name(column)) === null)) continue
    if (row > tiers.length) {
      return new Invalid({ [tierField(tiers.length, "up_to")]: "Fill in this row, or move the rows below it up." })
    }
    const up_to = readNumber(values, name("up_to"))
    const wrong = complaintAbout(up_to, tiers.at(-1)?.up_to)
    if (wrong !== undefined) return new Invalid({ [tierField(row - wrong.rowsAbove, "up_to")]: wrong.message })
    const unit_amount = readAmount(values, name("unit_amount"), currency)
    if (unit_amount instanceof Invalid) return unit_amount
    const flat_amount = readAmount(values, name("flat_amount"), currency)
    if (flat_amount instanceof Invalid) return flat_amount
    tiers.push({ up_to: up_to === null ? "inf" : Number(up_to), unit_amount, flat_amount })
  }
  return tiers.length === 0 || tiers.at(-1)!.up_to === "inf"
    ? tiers
    : new Invalid({ [tierField(tiers.length - 1, "up_to")]: "The last tier has no limit: leave this empty." })
}

const priceIn = (product: string, values: FormValues) => {
  const currency = readText(values, "currency")
  const amounts: Record<string, number | null> = {}
  for (const name of ["unit_amount", ...CUSTOM_AMOUNTS]) {
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
    if (values.has(ADD_TIER)) return Effect.succeed(new Unfinished())
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
