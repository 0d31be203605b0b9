/**
 * The page of a payment link: what it sells, the quantities to choose, and a button that leads to the checkout
 * (semantics pages.payment_link). A link that takes no payments has a notice instead.
 */
import type { PaymentLink, PaymentLinkItem } from "../../domain/PaymentLink.ts"
import type { Brand } from "../../html/Brand.ts"
import { html, type Html } from "../../html/Html.ts"
import { layout } from "../../html/Layout.ts"
import type { Notice } from "../../html/Notice.ts"
import { testModePanel } from "../../html/TestModePanel.ts"
import type { Translation } from "../../html/Translation.ts"
import { type ChosenPrices, order } from "./CheckoutOrder.ts"
import { noCards } from "./CheckoutPage.ts"
import type { FoundLink } from "./FindLink.ts"
import { formatAmount } from "../../html/Money.ts"

export interface PaymentLinkPage {
  readonly found: FoundLink
  readonly translation: Translation
  /** Makes the form's submission happen once. */
  readonly token: string
  /** The quantities as entered, by the index of the line. */
  readonly entered: ReadonlyMap<number, string>
  /** The errors about quantities, by the index of the line. */
  readonly errors: ReadonlyMap<number, string>
  /** An error about the whole form; null if there is none. */
  readonly message: string | null
}

export const fieldName = (index: number): string => `quantity_${index}`

export const render = (page: PaymentLinkPage): Html => {
  const { errors, found, message, translation } = page
  const { brand, goods, lines, link, merchant, takesCards } = found
  const title = translation.text("checkout.title", { merchant })
  const total = lines.reduce((sum, { amount_total }) => sum + amount_total, 0)
  const ordered = {
    id: link.id,
    cancel_url: null,
    currency: link.currency,
    amount_subtotal: total,
    amount_total: total
  }
  const chosen = openPrices(found, total, translation)
  const hasProblem = !takesCards || message !== null || errors.size > 0
  return layout({
    title: hasProblem ? translation.text("checkout.problem_title", { title }) : title,
    kind: "checkout",
    brand,
    translation,
    content: html`${!link.livemode && testModePanel(false, translation)}
      <main>
        ${order({ session: ordered, lines, goods, merchant, brand, translation, chosen, isUnfolded: true })}
        ${takesCards ? form(page) : noCards({ merchant, back: null, translation })}
      </main>`
  })
}

/** The prices of an order whose amount the payer chooses on the next page; null if nothing is left to choose. */
const openPrices = (
  { goods, lines, link }: FoundLink,
  total: number,
  translation: Translation
): ChosenPrices | null => {
  const index = goods.findIndex(({ price }) => price?.custom_unit_amount !== undefined)
  if (index === -1 || lines[index]!.amount_total > 0) return null
  const line = translation.text("amount.open")
  const amount = formatAmount(total, link.currency, translation.moneyLocale)
  return { index, line, total: total === 0 ? line : translation.text("amount.open_total", { amount }) }
}

const form = (page: PaymentLinkPage): Html => {
  const { found, message, token, translation } = page
  const fields = found.lines.map((line, index) => line.adjustable_quantity !== null && quantity(page, line, index))
  const hasFields = fields.some((field) => field !== false)
  return html`<form method="post" novalidate>
    <input type="hidden" name="token" value="${token}" />
    <div id="message" class="message" role="alert" tabindex="-1">${message !== null && html`<p>${message}</p>`}</div>
    ${
      hasFields &&
      html`<fieldset>
        <legend>${translation.text("link.quantity")}</legend>
        ${fields}
      </fieldset>`
    }
    <button class="pay" type="submit">${translation.text("link.continue")}</button>
    <p class="fine">${translation.text("link.next")}</p>
  </form>`
}

/** A number field would accept what the server refuses, such as `1e1`, so the field is a text with a keypad. */
const quantity = (
  { entered, errors, translation }: PaymentLinkPage,
  { adjustable_quantity, description, quantity }: PaymentLinkItem,
  index: number
): Html => {
  const name = fieldName(index)
  const error = errors.get(index)
  return html`<div class="field">
    <label for="${name}"><bdi>${description}</bdi></label>
    <div class="control">
      <input
        id="${name}"
        name="${name}"
        type="text"
        inputmode="numeric"
        autocomplete="off"
        required
        value="${entered.get(index) ?? String(quantity)}"
        aria-describedby="${name}-hint ${name}-error"
        ${error !== undefined && html`aria-invalid="true"`}
        ${index === [...errors.keys()][0] && html`autofocus`}
      />
      <p class="hint" id="${name}-hint">
        ${translation.text("amount.between", boundsOf(adjustable_quantity!, translation))}
      </p>
    </div>
    <p class="error" id="${name}-error">${error}</p>
  </div>`
}

/** The bounds of a quantity, as a text has them. */
export const boundsOf = (
  { maximum, minimum }: { readonly minimum: number; readonly maximum: number },
  { moneyLocale }: Translation
): { readonly least: string; readonly most: string } => {
  const { format } = new Intl.NumberFormat(moneyLocale)
  return { least: format(minimum), most: format(maximum) }
}

/** The content of a link that takes no payments. */
interface Inactive {
  readonly link: Pick<PaymentLink, "inactive_message" | "livemode">
  readonly merchant: string
  readonly brand: Brand
  readonly translation: Translation
}

/** The notice of a link that takes no payments, in the merchant's words if there are some. */
export const inactiveNotice = ({ brand, link, merchant, translation }: Inactive): Notice => ({
  translation,
  brand,
  testMode: !link.livemode,
  tone: "bad",
  title: translation.text("inactive.title"),
  texts: [
    translation.text("failure.not_charged"),
    link.inactive_message ?? translation.text("inactive.text", { merchant })
  ]
})

/** The notice for a sender of too many forms. */
export const tooManyNotice = ({ brand, link, translation }: Omit<Inactive, "merchant">): Notice => ({
  translation,
  brand,
  testMode: !link.livemode,
  tone: "bad",
  title: translation.text("unavailable.title"),
  texts: [translation.text("failure.not_charged"), translation.text("link.too_many")]
})
