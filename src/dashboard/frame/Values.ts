/** Values for display: amounts, times, ids and statuses. */
import { type Child, html, type Html } from "../../html/Html.ts"
import { moneyOf } from "../../html/Money.ts"
import * as Amounts from "../../html/assets/amount.js"

/** An amount in minor units without its currency, for input fields and files: `432100`, `usd` → `4321.00`. */
export const plainAmount = (minor: number, currency: string): string =>
  Amounts.decimalAmount(minor, moneyOf(currency, "en"))

/** Groups the digits of an amount: `4321.00` → `4,321.00`. Amounts have fewer than 19 digits. */
export const grouped = (amount: string): string => {
  const [whole = "", ...decimals] = amount.split(".")
  return [whole.replaceAll(/\B(?=(?:\d{3}){1,6}$)/g, ","), ...decimals].join(".")
}

/** An amount in minor units, with its currency: `4,321.00 USD`. */
export const amountText = (minor: number, currency: string): string =>
  `${grouped(plainAmount(minor, currency))} ${currency.toUpperCase()}`

/** A decimal amount with grouped digits and its currency. The `data` element carries the plain number. */
export const moneyOfDigits = (plain: string, currency: string): Html =>
  html`<data class="money" value="${plain}">${grouped(plain)} <abbr>${currency.toUpperCase()}</abbr></data>`

export const money = (minor: number, currency: string): Html => moneyOfDigits(plainAmount(minor, currency), currency)

/** A time in Unix seconds, in UTC. `inZone` shows it in the person's time zone, the script in the browser's. */
export const time = (seconds: number): Html => {
  const iso = new Date(seconds * 1000).toISOString()
  return html`<time datetime="${iso}" title="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 19)}</time>`
}

/** An id or another value to copy. The script adds a copy button. */
export const code = (value: string): Html => html`<code class="copy">${value}</code>`

export type Tone = "good" | "bad" | "wait" | "plain"

const TONES: Readonly<Record<string, Tone>> = {
  succeeded: "good",
  paid: "good",
  complete: "good",
  sent: "good",
  active: "good",
  enabled: "good",
  failed: "bad",
  requires_payment_method: "wait",
  requires_confirmation: "wait",
  requires_action: "wait",
  requires_capture: "wait",
  processing: "wait",
  pending: "wait",
  rolling: "wait",
  open: "wait",
  disabled: "bad",
  revoked: "bad",
  expired: "plain",
  canceled: "plain"
}

/** Names of the API whose words alone would not tell a shop's owner what they mean. */
const PLAIN: Readonly<Record<string, string>> = {
  requires_payment_method: "waiting for a card",
  requires_confirmation: "not confirmed yet",
  requires_action: "waiting for the payer",
  requires_capture: "authorized",
  generic_decline: "no reason given",
  do_not_honor: "refused by the bank",
  incorrect_cvc: "wrong security code"
}

/** A name of the API in words: `insufficient_funds` → `insufficient funds`, `requires_capture` → `authorized`. */
export const words = (text: string): string => PLAIN[text] ?? text.replaceAll("_", " ")

/** A status in words, in its colour. */
export const badge = (status: string, tone: Tone = TONES[status] ?? "plain"): Html =>
  html`<span class="badge ${tone}">${words(status)}</span>`

/** Shown in place of a missing value. */
export const NOTHING: Child = html`<span class="nothing">–</span>`

/** Names and values in a list. Entries with null are left out. */
export const facts = (entries: ReadonlyArray<readonly [name: string, value: Child]>): Html =>
  html`<dl class="facts">
    ${entries.map(([name, value]) =>
      value == null
        ? null
        : html`<div>
            <dt>${name}</dt>
            <dd>${value}</dd>
          </div>`
    )}
  </dl>`

/** An object's metadata; false if it has none. */
export const metadataSection = (metadata: Readonly<Record<string, string>>): Child =>
  Object.keys(metadata).length > 0 && section("Metadata", facts(Object.entries(metadata)))

/** A part of a page with its own heading; actions are beside the heading. */
export const section = (title: string, content: Child, actions: Child = null): Html =>
  html`<section>
    <header>
      <h2>${title}</h2>
      ${actions}
    </header>
    ${content}
  </section>`
