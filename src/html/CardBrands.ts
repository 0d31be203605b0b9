import { html, type Html } from "./Html.ts"

const NAMES: Readonly<Record<string, string>> = {
  visa: "Visa",
  mastercard: "Mastercard",
  amex: "American Express",
  discover: "Discover",
  diners: "Diners Club",
  jcb: "JCB",
  unionpay: "UnionPay"
}

/** The names of all brands. */
export const BRAND_NAMES: ReadonlyArray<string> = Object.values(NAMES)

/** Returns a brand's name, or another text for an unknown brand. */
export const brandName = (brand: string, unknown = "Card"): string => NAMES[brand] ?? unknown

/** A brand's mark, drawn by the style sheet, beside the brand's name. */
export const markHtml = (brand: string): Html => html`<span class="scheme" data-scheme="${brand}"></span>`
