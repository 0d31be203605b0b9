/**
 * The hosted checkout page (semantics S14): what is bought, what it costs, and the form to pay with; or, where nobody could
 * take a card, that and no form (semantics 9.9).
 */
import type { CheckoutSession, LineItem } from "../domain/CheckoutSession.ts"
import type { Asked, Details, DetailField, Field, FieldErrors } from "./CheckoutForm.ts"
import { askedBy, COMPLAINTS, isRequired } from "./CheckoutForm.ts"
import { countryOptions } from "./Countries.ts"
import type { Child, Html } from "./Html.ts"
import { html } from "./Html.ts"
import type { Frame } from "./Layout.ts"
import { layout } from "./Layout.ts"
import { formatAmount } from "./Money.ts"
import { testModePanel } from "./TestCardsPanel.ts"

export interface CheckoutPage {
  readonly session: CheckoutSession
  readonly lines: ReadonlyArray<LineItem>
  readonly merchant: string
  /** Whether there is a processor to pay with a card at. */
  readonly takesCards: boolean
  /** Language of the amounts. */
  readonly locale: string
  /** Makes the form's submission happen once. */
  readonly token: string
  readonly details: Details
  readonly errors: FieldErrors
  /** Why the payment has not gone through, in words for the payer. */
  readonly message: string | null
  /** As in the layout. */
  readonly frame: Frame | null
}

export const render = (page: CheckoutPage): Html => {
  const { merchant, session } = page
  const asked = askedBy(session)
  const isPayable = page.takesCards || !asked.card
  const hasProblem = !isPayable || page.message !== null || Object.keys(page.errors).length > 0
  return layout({
    title: `${hasProblem ? "Problem: " : ""}Pay ${merchant}`,
    kind: "checkout",
    script: isPayable,
    frame: page.frame,
    content: html`${!session.livemode && testModePanel(asked.card)}
      <main>${summary(page)} ${isPayable ? form(page, asked) : noCards(page)}</main>`
  })
}

/** Amounts of more characters are written smaller, to have room on a phone's line. */
const LARGE_CHARACTERS_MAX = 12

const summary = ({ lines, locale, merchant, session }: CheckoutPage): Html => {
  const amount = (minor: number) => formatAmount(minor, session.currency!, locale)
  const total = amount(session.amount_total!)
  return html`<section class="summary" aria-labelledby="merchant">
    ${
      session.cancel_url !== null &&
      html`<a class="back" href="${session.cancel_url}" rel="noreferrer"
        ><span aria-hidden="true">←</span> Back to <bdi>${merchant}</bdi></a
      >`
    }
    <h1 id="merchant"><bdi>${merchant}</bdi></h1>
    <p class="total">
      <span class="label">Total due</span>
      <strong ${total.length > LARGE_CHARACTERS_MAX && html`class="long"`}>${total}</strong>
    </p>
    <ul class="lines">
      ${lines.map((line) => lineItem(line, amount))}
    </ul>
    <p class="sum"><span>Total</span> <span>${total}</span></p>
  </section>`
}

const lineItem = ({ amount_total, description, quantity }: LineItem, amount: (minor: number) => string): Html =>
  html`<li>
    <span class="what"><bdi>${description}</bdi>${quantity > 1 && html` <small>Quantity ${quantity}</small>`}</span>
    <span class="price">${amount(amount_total)}</span>
  </li>`

/** Said before anybody enters a card: it would be of no use. */
const noCards = ({ merchant, session }: CheckoutPage): Html =>
  html`<section class="no-cards" aria-labelledby="no-cards">
    <h2 id="no-cards">This shop cannot take cards yet</h2>
    <p>
      <bdi>${merchant}</bdi> has not set up card payments. You have not been charged. Get in touch with the shop to pay
      in another way.
    </p>
    ${
      session.cancel_url !== null &&
      html`<p><a class="go" href="${session.cancel_url}" rel="noreferrer">Go back to ${merchant}</a></p>`
    }
  </section>`

const LOCK = html`<svg width="16" height="16" viewBox="0 0 16 16" fill="currentColor" aria-hidden="true">
  <path d="M4 6V5a4 4 0 0 1 8 0v1h1v8H3V6zm2 0h4V5a2 2 0 0 0-4 0z" />
</svg>`

const form = (page: CheckoutPage, asked: Asked): Html => {
  const { locale, message, session, token } = page
  const total = formatAmount(session.amount_total!, session.currency!, locale)
  const action = asked.card ? `Pay ${total}` : "Complete order"
  return html`<form id="checkout" method="post" novalidate>
    <input type="hidden" name="token" value="${token}" />
    ${messageBox(message)} ${contactFields(page)} ${asked.address && addressFields(page)}
    ${asked.card && cardFields(page)}
    <button class="pay" type="submit" data-busy="Processing…">
      ${asked.card && LOCK}<span class="action">${action}</span>
    </button>
    ${asked.card && html`<p class="fine">Your card's number and security code are not stored.</p>`}
  </form>`
}

/** There from the beginning, because screen readers announce what is put into it. */
const messageBox = (message: string | null): Html =>
  message === null
    ? html`<div id="message" class="message" role="alert" tabindex="-1"></div>`
    : html`<div id="message" class="message" role="alert" tabindex="-1" autofocus><p>${message}</p></div>`

const contactFields = (page: CheckoutPage): Html =>
  group("Contact", [
    input(page, "email", "Email", { type: "email", autocomplete: "email", inputmode: "email" }),
    input(page, "name", "Full name", { autocomplete: "name" }),
    input(page, "phone", "Phone", { type: "tel", autocomplete: "tel", inputmode: "tel" })
  ])

const addressFields = (page: CheckoutPage): Html =>
  group("Billing address", [
    countrySelect(page),
    input(page, "line1", "Address", { autocomplete: "billing address-line1" }),
    input(page, "line2", "Apartment, suite, etc.", { autocomplete: "billing address-line2" }),
    input(page, "postal_code", "Postal code", { autocomplete: "billing postal-code", half: true }),
    input(page, "city", "City", { autocomplete: "billing address-level2", half: true }),
    input(page, "state", "State or region", { autocomplete: "billing address-level1" })
  ])

const cardFields = (page: CheckoutPage): Html =>
  group("Card", [
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
  ])

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
  /** Two such fields stand side by side. */
  readonly half?: boolean
  readonly after?: Html
}

const input = (page: CheckoutPage, name: Field, label: string, options: InputOptions): Html => {
  const { after, autocomplete, half, inputmode, placeholder, type = "text" } = options
  return field(page, name, label, half === true, [
    html`<input
      id="${name}"
      name="${name}"
      type="${type}"
      autocomplete="${autocomplete}"
      ${inputmode !== undefined && html`inputmode="${inputmode}"`}
      ${placeholder !== undefined && html`placeholder="${placeholder}"`}
      ${shownAgain(page, name)}
      ${attributes(page, name)}
    />`,
    after
  ])
}

/** The value of a field that may be shown again. */
const shownAgain = ({ details }: CheckoutPage, name: Field): Child => {
  const value = details[name as DetailField]
  return value !== undefined && value !== "" && html`value="${value}"`
}

const countrySelect = (page: CheckoutPage): Html =>
  field(page, "country", "Country", false, [
    html`<select id="country" name="country" autocomplete="billing country" ${attributes(page, "country")}>
      <option value="">Choose a country</option>
      ${countryOptions(page.details.country)}
    </select>`
  ])

const field = (
  { errors }: CheckoutPage,
  name: Field,
  label: string,
  half: boolean,
  control: ReadonlyArray<Child>
): Html => {
  const error = errors[name]
  return html`<div class="field${half && " half"}">
    <label for="${name}">${label}${!isRequired(name) && html` <small>optional</small>`}</label>
    <div class="control">${control}</div>
    <p class="error" id="${name}-error">${error}</p>
  </div>`
}

/** What is the same for every control: its duties, and what it says when it has not done them. */
const attributes = ({ errors }: CheckoutPage, name: Field): Html => {
  const { invalid, missing } = COMPLAINTS[name]
  return html`aria-describedby="${name}-error" ${errors[name] !== undefined && html`aria-invalid="true"`}
  ${name === Object.keys(errors)[0] && html`autofocus`}
  ${missing !== undefined && html`required data-missing="${missing}"`}
  ${invalid !== undefined && html`data-invalid="${invalid}"`}`
}
