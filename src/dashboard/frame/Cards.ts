/** Cards on pages: brand, last digits, expiry date and billing details. */
import type { Address, BillingDetails } from "../../domain/Address.ts"
import type { Card } from "../../domain/PaymentMethod.ts"
import { brandName } from "../../html/CardBrands.ts"
import { type Child, html } from "../../html/Html.ts"

type Shown = Pick<Card, "brand" | "country" | "exp_month" | "exp_year" | "funding" | "last4">

/** `Visa ···· 4242`, `Amex ···· 0005`: tables have no room for the whole name. */
export const cardName = ({ brand, last4 }: Pick<Card, "brand" | "last4">): string =>
  `${brand === "amex" ? "Amex" : brandName(brand)} ···· ${last4}`

/** `04/2031` */
export const cardExpiry = ({ exp_month, exp_year }: Pick<Card, "exp_month" | "exp_year">): string =>
  `${String(exp_month).padStart(2, "0")}/${exp_year}`

export const cardFacts = (card: Shown): ReadonlyArray<readonly [name: string, value: Child]> => [
  ["Card", html`<span class="whole">${cardName(card)}</span>`],
  ["Expires", cardExpiry(card)],
  ["Type", `${card.funding}, issued in ${card.country}`]
]

export const billingHtml = ({ address, email, name, phone }: Partial<BillingDetails>): Child => {
  const { city, country, line1, line2, postal_code, state }: Partial<Address> = address ?? {}
  const town = [postal_code, city, state].filter((part) => part).join(" ")
  const lines = [name, email, phone, line1, line2, town, country].filter((line) => line)
  return lines.length === 0 ? null : lines.map((line) => html`<div><bdi>${line}</bdi></div>`)
}
