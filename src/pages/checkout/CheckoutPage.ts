/**
 * The checkout page (semantics pages.checkout): the order and the payment form. If no card can be processed, the page
 * says so and has no form (semantics keys.live_processor). A session that cannot be paid has a notice instead
 * (`ClosedSession.ts`).
 */
import { cancelUrlOf, type CheckoutSession, type PageLanguage } from "../../domain/CheckoutSession.ts"
import { COUNTRY_CODES, isCountry } from "../../domain/Address.ts"
import type { PaymentMethod } from "../../domain/PaymentMethod.ts"
import { type AddressField, formatsText, isOf, labelOf, namesIn, needOf, orderOf } from "./AddressFields.ts"
import { type AmountField, chosenIn, hintOf, pricesWith } from "./AmountField.ts"
import * as Assets from "../../html/Assets.ts"
import {
  CARD_FIELDS,
  complaintsOf,
  type CardField,
  type DetailField,
  type Details,
  type Field,
  type FieldErrors,
  type FormParts,
  formPartsOf,
  TOKEN_FIELD
} from "./CheckoutForm.ts"
import { type ChosenPrices, order, type Order } from "./CheckoutOrder.ts"
import { type Child, escape, html, Html } from "../../html/Html.ts"
import type { CardEntry } from "../../payments/processing/Processor.ts"
import { type Frame, layout } from "../../html/Layout.ts"
import { formatAmount, problemTextsOf } from "../../html/Money.ts"
import { ANOTHER, CHOICE, savedCardsHtml } from "./SavedCards.ts"
import { testModePanel } from "../../html/TestModePanel.ts"
import type { Translation } from "../../html/Translation.ts"

export interface CheckoutPage extends Omit<Order, "chosen" | "session"> {
  readonly session: CheckoutSession
  /** The field for an amount that the payer chooses; null if there is none. */
  readonly amount: AmountField | null
  /** Saved cards of the session's customer to choose from. */
  readonly saved: ReadonlyArray<PaymentMethod>
  readonly cards: CardEntry
  /** Makes the form's submission happen once. */
  readonly token: string
  readonly details: Details
  readonly errors: FieldErrors
  /** The error of the last attempt, for the payer; null if there is none. */
  readonly message: string | null
  /** As in `Layout`. */
  readonly frame: Frame | null
  /** As in `Layout`. */
  readonly depth?: number
  /** True for an example without a payer, which needs no script. */
  readonly isPreview?: boolean
}

export const render = (page: CheckoutPage): Html => {
  const { brand, merchant, session, translation } = page
  const asked = formPartsOf(session, page.amount, page.saved, page.cards)
  const isPayable = page.cards.kind !== "none" || !asked.card
  const hasProblem = !isPayable || page.message !== null || Object.keys(page.errors).length > 0
  const title = translation.text("checkout.title", { merchant })
  return layout({
    title: hasProblem ? translation.text("checkout.problem_title", { title }) : title,
    kind: "checkout",
    script: isPayable && page.isPreview !== true,
    depth: page.depth ?? 1,
    frame: page.frame,
    brand,
    translation,
    content: html`${!session.livemode && testModePanel(asked.card && page.cards.kind === "fields", translation)}
      <main>
        ${order({ ...page, chosen: chosenPrices(page) })}
        ${isPayable ? form(page, asked) : noCards({ ...page, back: cancelUrlOf(session) })}
      </main>`
  })
}

/** Prices that depend on the amount field; null if there is no such field. */
const chosenPrices = ({ amount, details }: CheckoutPage): ChosenPrices | null =>
  amount && { index: amount.line, ...pricesWith(amount, chosenIn(amount, details.amount ?? "")) }

const totalOf = (page: CheckoutPage): string =>
  chosenPrices(page)?.total ??
  formatAmount(page.session.amount_total!, page.session.currency!, page.translation.moneyLocale)

/** Shown instead of the form, before the payer enters a card in vain. */
export const noCards = ({
  back,
  merchant,
  translation
}: Pick<CheckoutPage, "merchant" | "translation"> & { readonly back: string | null }): Html =>
  html`<section class="no-cards" aria-labelledby="no-cards">
    <h2 id="no-cards">${translation.text("no_cards.title")}</h2>
    <p>${translation.text("no_cards.text", { merchant })}</p>
    ${
      back !== null &&
      html`<p>
        <a class="go" href="${back}" rel="noreferrer">${translation.text("checkout.go_back", { merchant })}</a>
      </p>`
    }
  </section>`

const LOCK = html`<svg width="16" height="16" viewBox="0 0 16 16" fill="currentColor" aria-hidden="true">
  <path d="M4 6V5a4 4 0 0 1 8 0v1h1v8H3V6zm2 0h4V5a2 2 0 0 0-4 0z" />
</svg>`

const form = (page: CheckoutPage, asked: FormParts): Html => {
  const { amount, token, translation } = page
  return html`<form id="checkout" method="post" novalidate data-texts="${JSON.stringify(scriptTexts(translation))}">
    <input type="hidden" name="token" value="${token}" />
    ${messageBox(page)} ${amount !== null && amountField(page, amount)} ${contactFields(page, asked)}
    ${asked.address && addressFields(page)} ${asked.card && cardFields(page)}
    <button class="pay" type="submit">${asked.card && LOCK}<span class="action">${actionOf(page, asked)}</span></button>
    ${asked.card && html`<p class="fine">${translation.text("checkout.not_stored")}</p>`}
  </form>`
}

/** The text of the button. */
const actionOf = (page: CheckoutPage, asked: FormParts): string => {
  const { amount, details, translation } = page
  if (amount !== null && chosenIn(amount, details.amount ?? "") === null) return translation.text("checkout.pay")
  return asked.card
    ? translation.text("checkout.pay_amount", { amount: totalOf(page) })
    : translation.text("checkout.complete")
}

/** Texts that the page's script shows, with names of values in braces. */
const scriptTexts = (translation: Translation) => ({
  busy: translation.text("checkout.processing"),
  pay: translation.text("checkout.pay"),
  payAmount: translation.text("checkout.pay_amount", { amount: "{amount}" }),
  unreachable: translation.text("problem.unreachable"),
  frameMissing: translation.text("frame.missing"),
  frameRefused: translation.text("frame.refused")
})

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
  const { currency, decimals, locale, maximum, minimum, others, translation } = amount
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
    data-problems="${JSON.stringify(problemTextsOf(translation))}"
    ${shownAgain(page, "amount")}
    ${attributes(page, "amount", "amount-hint")}
  />`
  const code = html`${currency.toUpperCase()}`
  const line = html`<bdi>${page.lines[amount.line]!.description}</bdi>`
  const label =
    page.lines.length > 1
      ? translation.html("amount.label_for", { currency: code, line })
      : translation.html("amount.label", { currency: code })
  return group(translation.text("amount.title"), [
    field(page, "amount", label, {}, [control, html`<p class="hint" id="amount-hint">${hintOf(amount)}</p>`])
  ])
}

const contactFields = (page: CheckoutPage, asked: FormParts): Html => {
  const { translation } = page
  return group(translation.text("contact.title"), [
    input(page, "email", translation.text("contact.email"), {
      type: "email",
      autocomplete: "email",
      inputmode: "email"
    }),
    input(page, "name", translation.text("contact.name"), { autocomplete: "name" }),
    asked.phone &&
      input(page, "phone", translation.text("contact.phone"), { type: "tel", autocomplete: "tel", inputmode: "tel" })
  ])
}

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
    input(page, name, labelOf(name, country, page.translation), {
      autocomplete: AUTOCOMPLETE[name],
      half: name !== "line1" && name !== "line2",
      hidden: !isOf(name, country) && (details[name] ?? "") === ""
    })
  )
  return group(page.translation.text("address.title"), [countrySelect(page), ...fields])
}

/** Fields of a new card come after the saved cards, and are visible if none of those is selected. */
const cardFields = (page: CheckoutPage): Html => {
  const { details, errors, saved, translation } = page
  const title = translation.text("card.title")
  const fields = page.cards.kind === "frame" ? framedCard(page, page.cards.url) : newCard(page)
  if (saved.length === 0) return group(title, [fields])
  const described = html`id="${CHOICE}" ${attributes(page, CHOICE)}`
  const choice = savedCardsHtml(saved, details[CHOICE] ?? ANOTHER, described, errors[CHOICE], translation)
  return group(title, [choice, html`<div class="another">${fields}</div>`])
}

/** The place of the processor's page, which the script shows in a frame. */
const framedCard = ({ errors, translation }: CheckoutPage, url: string): Html =>
  html`<div class="field">
    <input type="hidden" name="${TOKEN_FIELD}" />
    <div
      id="card"
      class="card framed"
      data-url="${url}"
      data-title="${translation.text("card.title")}"
      data-script="${`..${Assets.fieldsScript.path}`}"
    ></div>
    <noscript><p class="error">${translation.text("frame.needs_script")}</p></noscript>
    <p class="error" id="${TOKEN_FIELD}-error" role="alert">${errors[TOKEN_FIELD]}</p>
  </div>`

/** The fields of a card in one frame, with the brand's mark; their errors are below the frame. */
const newCard = (page: CheckoutPage): Html => {
  const { errors, translation } = page
  return html`<div class="field">
    <div class="card">
      ${cell(page, "card_number", translation.text("card.number"), {
        autocomplete: "cc-number",
        placeholder: "1234 1234 1234 1234",
        mark: html`<output id="brand" class="scheme" for="card_number" aria-live="polite"></output>`
      })}
      ${cell(page, "card_expiry", translation.text("card.expiry"), {
        autocomplete: "cc-exp",
        placeholder: translation.text("card.expiry_form")
      })}
      ${cell(page, "card_cvc", translation.text("card.cvc"), { autocomplete: "cc-csc", placeholder: "CVC" })}
    </div>
    ${CARD_FIELDS.map((name) => html`<p class="error" id="${name}-error">${errors[name]}</p>`)}
  </div>`
}

interface CellOptions {
  readonly autocomplete: string
  readonly placeholder: string
  readonly mark?: Html
}

/** One field within the frame. Digits run from left to right in every language. */
const cell = (page: CheckoutPage, name: CardField, label: string, options: CellOptions): Html =>
  html`<div class="cell">
    <label for="${name}">${label}</label>
    ${options.mark}
    <input
      id="${name}"
      name="${name}"
      type="text"
      dir="ltr"
      autocomplete="${options.autocomplete}"
      inputmode="numeric"
      placeholder="${options.placeholder}"
      ${attributes(page, name)}
    />
  </div>`

const group = (name: string, fields: ReadonlyArray<Child>): Html =>
  html`<fieldset>
    <legend>${name}</legend>
    ${fields}
  </fieldset>`

interface InputOptions {
  /** An address or a number, other than a text, runs from left to right in every language. */
  readonly type?: "text" | "email" | "tel"
  readonly autocomplete: string
  readonly inputmode?: "email" | "tel"
  /** Two such fields are side by side. */
  readonly half?: boolean
  /** The field is in the form, but neither shown nor sent. */
  readonly hidden?: boolean
}

const input = (page: CheckoutPage, name: Field, label: string, options: InputOptions): Html => {
  const { autocomplete, hidden, inputmode, type = "text" } = options
  return field(page, name, label, options, [
    html`<input
      id="${name}"
      name="${name}"
      type="${type}"
      ${type !== "text" && html`dir="ltr"`}
      autocomplete="${autocomplete}"
      ${inputmode !== undefined && html`inputmode="${inputmode}"`}
      ${hidden === true && "disabled"}
      ${shownAgain(page, name)}
      ${attributes(page, name)}
    />`
  ])
}

/** The payer's earlier value. `details` never contains card fields, so they stay empty. */
const shownAgain = ({ details }: CheckoutPage, name: Field): Child => {
  const value = details[name as DetailField]
  return value !== undefined && value !== "" && html`value="${value}"`
}

const countrySelect = (page: CheckoutPage): Html =>
  field(page, "country", page.translation.text("address.country"), {}, [
    html`<select
      id="country"
      name="country"
      autocomplete="billing country"
      data-formats="${formatsText()}"
      data-names="${JSON.stringify(namesIn(page.translation))}"
      data-missing-part="${page.translation.text("address.missing", { name: "{name}" })}"
      data-optional="${page.translation.text("field.optional")}"
      ${attributes(page, "country")}
    >
      <option value="">${page.translation.text("address.choose_country")}</option>
      ${countryOptions(page.details.country, page.translation)}
    </select>`
  ])

const field = (
  { details, errors, translation }: CheckoutPage,
  name: Field,
  label: Child,
  { half, hidden }: Pick<InputOptions, "half" | "hidden">,
  control: ReadonlyArray<Child>
): Html => {
  const error = errors[name]
  const optional = isOptional(name, details, translation) && html` <small>${translation.text("field.optional")}</small>`
  return html`<div class="field${half === true && " half"}" ${hidden === true && "hidden"}>
    <label for="${name}">${label}${optional}</label>
    <div class="control">${control}</div>
    <p class="error" id="${name}-error">${error}</p>
  </div>`
}

const isOptional = (name: Field, { country = "" }: Details, translation: Translation): boolean =>
  Object.hasOwn(AUTOCOMPLETE, name)
    ? needOf(name as AddressField, country) === "optional"
    : complaintsOf(name, country, translation).missing === undefined

/** Attributes shared by all controls, including the errors that the page's script shows. */
const attributes = ({ details, errors, translation }: CheckoutPage, name: Field, hint?: string): Html => {
  const { invalid, missing } = complaintsOf(name, details.country ?? "", translation)
  return html`aria-describedby="${hint !== undefined && `${hint} `}${name}-error"
  ${errors[name] !== undefined && html`aria-invalid="true"`} ${name === Object.keys(errors)[0] && html`autofocus`}
  ${missing !== undefined && html`required data-missing="${missing}"`}
  ${invalid !== undefined && html`data-invalid="${invalid}"`}`
}

interface Country {
  /** Two capital letters. */
  readonly code: string
  readonly name: string
}

/** The countries, sorted by their names in a language. */
const countriesIn = (language: string): ReadonlyArray<Country> => {
  const names = new Intl.DisplayNames([language], { type: "region" })
  const { compare } = new Intl.Collator(language)
  return COUNTRY_CODES.map((code) => ({ code, name: names.of(code) ?? code })).toSorted((a, b) =>
    compare(a.name, b.name)
  )
}

interface Options {
  readonly countries: ReadonlyArray<Country>
  /** The options of the list without a selection. */
  readonly unselected: Html
}

const known = new Map<PageLanguage, Options>()

// The options make up most of the page's size. They omit closing tags, which HTML does not require, and the list
// without a selection is rendered once.
const optionOf = ({ code, name }: Country, selected: string): string =>
  `<option value="${escape(code)}"${selected}>${escape(name)}`

const optionsIn = (language: PageLanguage): Options => {
  const found = known.get(language)
  if (found !== undefined) return found
  const countries = countriesIn(language)
  const options = { countries, unselected: new Html(countries.map((country) => optionOf(country, "")).join("\n")) }
  known.set(language, options)
  return options
}

/** Options of the country list. An unknown or undefined `code` selects none. */
const countryOptions = (code: string | undefined, { language }: Translation): Html => {
  const { countries, unselected } = optionsIn(language)
  if (code === undefined || !isCountry(code)) return unselected
  return new Html(countries.map((country) => optionOf(country, country.code === code ? " selected" : "")).join("\n"))
}
