/**
 * The checkout page (semantics pages.checkout): the order and the payment form. If no card can be processed, the page
 * says so and has no form (semantics keys.live_processor). A session that cannot be paid has a notice instead, which
 * says whether the payer was charged.
 */
import { cancelUrlOf, type CheckoutSession, successUrlOf } from "../../domain/CheckoutSession.ts"
import { COUNTRY_CODES, isCountry } from "../../domain/Address.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import type { PaymentMethod } from "../../domain/PaymentMethod.ts"
import { type AddressField, formatsText, isOf, labelOf, needOf, orderOf } from "./AddressFields.ts"
import { type AmountField, chosenIn, hintOf, pricesWith } from "./AmountField.ts"
import * as Assets from "../../html/Assets.ts"
import type { Brand } from "../../html/Brand.ts"
import {
  complaintsOf,
  type DetailField,
  type Details,
  type Field,
  type FieldErrors,
  type FormParts,
  formPartsOf
} from "./CheckoutForm.ts"
import { type ChosenPrices, order, type Order } from "./CheckoutOrder.ts"
import { type Child, escape, html, Html } from "../../html/Html.ts"
import { type Frame, layout } from "../../html/Layout.ts"
import { formatAmount } from "../../html/Money.ts"
import type { Notice } from "../../html/Notice.ts"
import { ANOTHER, CHOICE, savedCardsHtml } from "./SavedCards.ts"
import { testModePanel } from "../../html/TestModePanel.ts"

export interface CheckoutPage extends Omit<Order, "chosen"> {
  /** The field for an amount that the payer chooses; null if there is none. */
  readonly amount: AmountField | null
  /** Saved cards of the session's customer to choose from. */
  readonly saved: ReadonlyArray<PaymentMethod>
  /** False if the installation has no card processor. */
  readonly takesCards: boolean
  /** Makes the form's submission happen once. */
  readonly token: string
  readonly details: Details
  readonly errors: FieldErrors
  /** The error of the last attempt, for the payer; null if there is none. */
  readonly message: string | null
  /** As in `Layout`. */
  readonly frame: Frame | null
}

export const render = (page: CheckoutPage): Html => {
  const { brand, merchant, session } = page
  const asked = formPartsOf(session, page.amount, page.saved)
  const isPayable = page.takesCards || !asked.card
  const hasProblem = !isPayable || page.message !== null || Object.keys(page.errors).length > 0
  return layout({
    title: `${hasProblem ? "Problem: " : ""}Pay ${merchant}`,
    kind: "checkout",
    script: isPayable,
    frame: page.frame,
    brand,
    content: html`${!session.livemode && testModePanel(asked.card)}
      <main>${order({ ...page, chosen: chosenPrices(page) })} ${isPayable ? form(page, asked) : noCards(page)}</main>`
  })
}

/** Prices that depend on the amount field; null if there is no such field. */
const chosenPrices = ({ amount, details }: CheckoutPage): ChosenPrices | null =>
  amount && { index: amount.line, ...pricesWith(amount, chosenIn(amount, details.amount ?? "")) }

const totalOf = (page: CheckoutPage): string =>
  chosenPrices(page)?.total ?? formatAmount(page.session.amount_total!, page.session.currency!, page.locale)

/** Shown instead of the form, before the payer enters a card in vain. */
const noCards = ({ merchant, session }: CheckoutPage): Html => {
  const back = cancelUrlOf(session)
  return html`<section class="no-cards" aria-labelledby="no-cards">
    <h2 id="no-cards">This shop cannot take cards yet</h2>
    <p>
      <bdi>${merchant}</bdi> has not set up card payments. You have not been charged. Get in touch with the shop to pay
      in another way.
    </p>
    ${back !== null && html`<p><a class="go" href="${back}" rel="noreferrer">Go back to ${merchant}</a></p>`}
  </section>`
}

const LOCK = html`<svg width="16" height="16" viewBox="0 0 16 16" fill="currentColor" aria-hidden="true">
  <path d="M4 6V5a4 4 0 0 1 8 0v1h1v8H3V6zm2 0h4V5a2 2 0 0 0-4 0z" />
</svg>`

const form = (page: CheckoutPage, asked: FormParts): Html => {
  const { amount, details, token } = page
  const isOpen = amount !== null && chosenIn(amount, details.amount ?? "") === null
  const action = isOpen ? "Pay" : asked.card ? `Pay ${totalOf(page)}` : "Complete order"
  return html`<form id="checkout" method="post" novalidate>
    <input type="hidden" name="token" value="${token}" />
    ${messageBox(page)} ${amount !== null && amountField(page, amount)} ${contactFields(page)}
    ${asked.address && addressFields(page)} ${asked.card && cardFields(page)}
    <button class="pay" type="submit" data-busy="Processing…">
      ${asked.card && LOCK}<span class="action">${action}</span>
    </button>
    ${asked.card && html`<p class="fine">Your card's number and security code are not stored.</p>`}
  </form>`
}

/** Always rendered, because screen readers only announce text that is inserted later. */
const messageBox = ({ errors, message }: CheckoutPage): Html => {
  if (message === null) return html`<div id="message" class="message" role="alert" tabindex="-1"></div>`
  // A field with an error gets the focus instead.
  const isFirst = Object.keys(errors).length === 0
  return html`<div id="message" class="message" role="alert" tabindex="-1" ${isFirst && "autofocus"}>
    <p>${message}</p>
  </div>`
}

/** The script reads the field like the server, and needs the same parameters. */
const amountField = (page: CheckoutPage, amount: AmountField): Html => {
  const { currency, decimals, locale, maximum, minimum, others } = amount
  const open = pricesWith(amount, null)
  const control = html`<input
    id="amount"
    name="amount"
    type="text"
    autocomplete="off"
    inputmode="${decimals === 0 ? "numeric" : "decimal"}"
    data-script="${`..${Assets.amountScript.path}`}"
    data-money="${JSON.stringify({ currency, decimals, locale, maximum, minimum, others })}"
    data-open="${JSON.stringify(open)}"
    ${shownAgain(page, "amount")}
    ${attributes(page, "amount", "amount-hint")}
  />`
  const named = page.lines.length > 1 && html` for <bdi>${page.lines[amount.line]!.description}</bdi>`
  return group("Your amount", [
    field(page, "amount", html`Amount in ${currency.toUpperCase()}${named}`, {}, [
      control,
      html`<p class="hint" id="amount-hint">${hintOf(amount)}</p>`
    ])
  ])
}

const contactFields = (page: CheckoutPage): Html =>
  group("Contact", [
    input(page, "email", "Email", { type: "email", autocomplete: "email", inputmode: "email" }),
    input(page, "name", "Full name", { autocomplete: "name" }),
    input(page, "phone", "Phone", { type: "tel", autocomplete: "tel", inputmode: "tel" })
  ])

/** Names for autofill, which do not depend on the country. */
const AUTOCOMPLETE: Readonly<Record<AddressField, string>> = {
  line1: "billing address-line1",
  line2: "billing address-line2",
  city: "billing address-level2",
  state: "billing address-level1",
  postal_code: "billing postal-code"
}

/**
 * Address fields in the country's order. A field that the country does not use is hidden, unless it has a value; the
 * script shows it for other countries.
 */
const addressFields = (page: CheckoutPage): Html => {
  const { country = "", ...details } = page.details
  const fields = orderOf(country).map((name) =>
    input(page, name, labelOf(name, country), {
      autocomplete: AUTOCOMPLETE[name],
      half: name !== "line1" && name !== "line2",
      hidden: !isOf(name, country) && (details[name] ?? "") === ""
    })
  )
  return group("Billing address", [countrySelect(page), ...fields])
}

/** Fields of a new card come after the saved cards, and are visible if none of those is selected. */
const cardFields = (page: CheckoutPage): Html => {
  const { details, errors, saved } = page
  const fields = newCardFields(page)
  if (saved.length === 0) return group("Card", fields)
  const described = html`id="${CHOICE}" ${attributes(page, CHOICE)}`
  const choice = savedCardsHtml(saved, details[CHOICE] ?? ANOTHER, described, errors[CHOICE])
  return group("Card", [choice, html`<div class="another">${fields}</div>`])
}

const newCardFields = (page: CheckoutPage): ReadonlyArray<Html> => [
  input(page, "card_number", "Card number", {
    autocomplete: "cc-number",
    inputmode: "numeric",
    placeholder: "1234 1234 1234 1234",
    after: html`<output id="brand" class="brand" for="card_number" aria-live="polite"></output>`
  }),
  input(page, "card_expiry", "Expiry date", {
    autocomplete: "cc-exp",
    inputmode: "numeric",
    placeholder: "MM / YY",
    half: true
  }),
  input(page, "card_cvc", "Security code", {
    autocomplete: "cc-csc",
    inputmode: "numeric",
    placeholder: "CVC",
    half: true
  })
]

const group = (name: string, fields: ReadonlyArray<Html>): Html =>
  html`<fieldset>
    <legend>${name}</legend>
    ${fields}
  </fieldset>`

interface InputOptions {
  readonly type?: "text" | "email" | "tel"
  readonly autocomplete: string
  readonly inputmode?: "email" | "tel" | "numeric"
  readonly placeholder?: string
  /** Two such fields are side by side. */
  readonly half?: boolean
  /** The field is in the form, but neither shown nor sent. */
  readonly hidden?: boolean
  readonly after?: Html
}

const input = (page: CheckoutPage, name: Field, label: string, options: InputOptions): Html => {
  const { after, autocomplete, hidden, inputmode, placeholder, type = "text" } = options
  return field(page, name, label, options, [
    html`<input
      id="${name}"
      name="${name}"
      type="${type}"
      autocomplete="${autocomplete}"
      ${inputmode !== undefined && html`inputmode="${inputmode}"`}
      ${placeholder !== undefined && html`placeholder="${placeholder}"`}
      ${hidden === true && "disabled"}
      ${shownAgain(page, name)}
      ${attributes(page, name)}
    />`,
    after
  ])
}

/** The payer's earlier value. `details` never contains card fields, so they stay empty. */
const shownAgain = ({ details }: CheckoutPage, name: Field): Child => {
  const value = details[name as DetailField]
  return value !== undefined && value !== "" && html`value="${value}"`
}

const countrySelect = (page: CheckoutPage): Html =>
  field(page, "country", "Country", {}, [
    html`<select
      id="country"
      name="country"
      autocomplete="billing country"
      data-formats="${formatsText()}"
      ${attributes(page, "country")}
    >
      <option value="">Choose a country</option>
      ${countryOptions(page.details.country)}
    </select>`
  ])

const field = (
  { details, errors }: CheckoutPage,
  name: Field,
  label: Child,
  { half, hidden }: Pick<InputOptions, "half" | "hidden">,
  control: ReadonlyArray<Child>
): Html => {
  const error = errors[name]
  return html`<div class="field${half === true && " half"}" ${hidden === true && "hidden"}>
    <label for="${name}">${label}${isOptional(name, details) && html` <small>optional</small>`}</label>
    <div class="control">${control}</div>
    <p class="error" id="${name}-error">${error}</p>
  </div>`
}

const isOptional = (name: Field, { country = "" }: Details): boolean =>
  Object.hasOwn(AUTOCOMPLETE, name)
    ? needOf(name as AddressField, country) === "optional"
    : complaintsOf(name, country).missing === undefined

/** Attributes shared by all controls, including the errors that the page's script shows. */
const attributes = ({ details, errors }: CheckoutPage, name: Field, hint?: string): Html => {
  const { invalid, missing } = complaintsOf(name, details.country ?? "")
  return html`aria-describedby="${hint !== undefined && `${hint} `}${name}-error"
  ${errors[name] !== undefined && html`aria-invalid="true"`} ${name === Object.keys(errors)[0] && html`autofocus`}
  ${missing !== undefined && html`required data-missing="${missing}"`}
  ${invalid !== undefined && html`data-invalid="${invalid}"`}`
}

const names = new Intl.DisplayNames(["en"], { type: "region" })

interface Country {
  /** Two capital letters. */
  readonly code: string
  readonly name: string
}

/** Sorted by name. */
const COUNTRIES: ReadonlyArray<Country> = COUNTRY_CODES.map((code) => ({
  code,
  name: names.of(code) ?? code
})).toSorted((a, b) => a.name.localeCompare(b.name, "en"))

// The options make up most of the page's size. They omit closing tags, which HTML does not require, and the list
// without a selection is rendered once.
const optionOf = ({ code, name }: Country, selected: string): string =>
  `<option value="${escape(code)}"${selected}>${escape(name)}`

const unselected = new Html(COUNTRIES.map((country) => optionOf(country, "")).join("\n"))

/** Options of the country list. An unknown or undefined `code` selects none. */
const countryOptions = (code: string | undefined): Html => {
  if (code === undefined || !isCountry(code)) return unselected
  return new Html(COUNTRIES.map((country) => optionOf(country, country.code === code ? " selected" : "")).join("\n"))
}

export interface ClosedSession {
  readonly session: CheckoutSession
  readonly brand: Brand
  /** Null if there was nothing to pay. */
  readonly paymentIntent: PaymentIntent | null
  readonly merchant: string
  /** Language of the amounts. */
  readonly locale: string
}

/** The notice for a complete or expired session. */
export const noticeOf = (closed: ClosedSession): Notice => {
  const { brand, merchant, session } = closed
  const outcome = session.status === "expired" ? expired(closed) : completed(closed)
  // The shop thanks the payer at `success_url`, so a payer whose payment failed is not sent there.
  const href = outcome.tone === "bad" ? cancelUrlOf(session) : successUrlOf(session)
  // A session without a page of the shop has this page as its `success_url`.
  const isHere = href?.endsWith(`/checkout/${session.id}`) === true
  const link = href === null || isHere ? null : { href, text: `Go back to ${merchant}` }
  return { ...outcome, link, brand, testMode: !session.livemode }
}

/**
 * The notice for a session that is closed until a time after too many failed attempts (semantics checkout.attempts).
 */
export const pauseOf = ({ brand, merchant, session }: ClosedSession, closedUntil: number): Notice => {
  // Rounded up to the next minute.
  const time = new Date(closedUntil + 59_999).toISOString().slice(11, 16)
  const isLast = session.expires_at * 1000 <= closedUntil
  const back = cancelUrlOf(session)
  return {
    tone: "bad",
    title: "Too many failed payments",
    texts: [
      "You have not been charged.",
      isLast
        ? "This checkout no longer accepts payments. To buy, go back to the shop and start again."
        : `You can try again on this page at ${time} UTC, within an hour at most.`
    ],
    link: back === null ? null : { href: back, text: `Go back to ${merchant}` },
    brand,
    testMode: !session.livemode
  }
}

const expired = ({ merchant }: ClosedSession): Notice => ({
  tone: "bad",
  title: "This checkout has expired",
  texts: [`You have not been charged. To buy from ${merchant}, go back to the shop and start again.`]
})

const completed = ({ locale, merchant, paymentIntent, session }: ClosedSession): Notice => {
  if (paymentIntent === null) {
    return { tone: "good", title: "Your order is complete", texts: ["There was nothing to pay."] }
  }
  const amount = (minor: number) => formatAmount(minor, paymentIntent.currency, locale)
  const refunded = paymentIntent.charges.data.reduce((sum, charge) => sum + charge.amount_refunded, 0)
  const total = amount(session.amount_total!)
  switch (paymentIntent.status) {
    case "succeeded":
      return {
        tone: "good",
        title: refunded === paymentIntent.amount_received ? "This order was refunded" : "This order is paid",
        texts: [
          `You paid ${amount(paymentIntent.amount_received)} to ${merchant}. You will not be charged again.`,
          ...(refunded > 0 ? [`${merchant} has refunded ${amount(refunded)}.`] : [])
        ]
      }
    case "requires_capture":
      return {
        tone: "good",
        title: "Your payment is authorized",
        texts: [`${merchant} has reserved ${total} on your card. You will be charged when your order is confirmed.`]
      }
    case "processing":
      return {
        tone: "waiting",
        title: "Your payment is being processed",
        texts: [
          `Your bank has not yet confirmed the payment of ${total} to ${merchant}.`,
          "You don't need to do anything. Please do not pay again. This page shows the result as soon as it is known."
        ],
        awaitsResult: true
      }
    case "canceled":
      return {
        tone: "bad",
        title: "Your payment was canceled",
        texts: [`${merchant} has not charged you. Any amount reserved on your card is being released.`]
      }
    default:
      return {
        tone: "bad",
        title: "Your payment did not go through",
        texts: [`You have not been charged. Get in touch with ${merchant} to pay in another way.`]
      }
  }
}
