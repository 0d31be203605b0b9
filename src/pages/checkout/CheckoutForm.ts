/**
 * Reads the checkout form and reports mistakes (semantics pages.checkout).
 *
 * Card data is read into `payment_method_data` only, so a page that is shown again never contains it.
 */
import { Schema } from "effect"
import {
  AddressText,
  type BillingDetailsParameter,
  isCountry,
  PERSON_NAME_LENGTH_MAX,
  PERSON_PHONE_LENGTH_MAX,
  PersonName,
  PersonPhone
} from "../../domain/Address.ts"
import { cvcLengthOf, isCardNumber } from "../../domain/Cards.ts"
import type { CheckoutSession } from "../../domain/CheckoutSession.ts"
import { Email, TEXT_LENGTH_MAX } from "../../domain/Text.ts"
import { type PaymentMethod, PaymentMethodData } from "../../domain/PaymentMethod.ts"
import { type AddressField, missingTextOf, orderOf } from "./AddressFields.ts"
import type { AmountField } from "./AmountField.ts"
import { readCode, readExpiry, readNumber } from "../../html/assets/card.js"
import * as Amount from "./AmountField.ts"
import type { CardEntry } from "../../payments/processing/Processor.ts"
import type { FormValues } from "../../html/Forms.ts"
import type { Translation } from "../../html/Translation.ts"
import { ANOTHER, CHOICE, isSaved } from "./SavedCards.ts"

/** Fields whose values are shown again. */
export const DETAIL_FIELDS = [
  "amount",
  "email",
  "name",
  "phone",
  "line1",
  "line2",
  "city",
  "state",
  "postal_code",
  "country",
  CHOICE
] as const
export type DetailField = (typeof DETAIL_FIELDS)[number]

/** Fields whose values are never shown again. */
export const CARD_FIELDS = ["card_number", "card_expiry", "card_cvc"] as const
export type CardField = (typeof CARD_FIELDS)[number]

/** Field of the token that the processor's page gives for a card, instead of the card's fields. */
export const TOKEN_FIELD = "card_token"

export type Field = DetailField | CardField | typeof TOKEN_FIELD

export type Details = Readonly<Partial<Record<DetailField, string>>>

/** Errors by field, for the payer. */
export type FieldErrors = Readonly<Partial<Record<Field, string>>>

/** Errors for an empty required field and for an invalid value. */
export interface Complaints {
  readonly missing?: string
  readonly invalid?: string
}

/** Errors by field, except address fields, whose names and requirements depend on the country. */
const COMPLAINTS: Readonly<Record<Exclude<Field, AddressField>, (translation: Translation) => Complaints>> = {
  // Further errors depend on the bounds and the entered value.
  amount: (translation) => ({ missing: translation.text("amount.missing") }),
  payment_method: () => ({}),
  email: (translation) => ({
    missing: translation.text("contact.email_missing"),
    invalid: translation.text("contact.email_invalid")
  }),
  name: (translation) => ({
    invalid: translation.text("contact.name_invalid", { count: PERSON_NAME_LENGTH_MAX })
  }),
  phone: (translation) => ({
    missing: translation.text("contact.phone_missing"),
    invalid: translation.text("contact.phone_invalid", { count: PERSON_PHONE_LENGTH_MAX })
  }),
  country: (translation) => ({
    missing: translation.text("address.country_missing"),
    invalid: translation.text("address.country_invalid")
  }),
  card_number: (translation) => ({
    missing: translation.text("card.number_missing"),
    invalid: translation.text("card.number_invalid")
  }),
  card_expiry: (translation) => ({
    missing: translation.text("card.expiry_missing"),
    invalid: translation.text("card.expiry_invalid")
  }),
  card_cvc: (translation) => ({
    missing: translation.text("card.cvc_missing"),
    invalid: translation.text("card.cvc_invalid")
  }),
  // Only a form that no script has sent has none.
  card_token: (translation) => ({
    missing: translation.text("frame.needs_script"),
    invalid: translation.text("frame.refused")
  })
}

const isOfCard = (field: Field): boolean =>
  field === TOKEN_FIELD || (CARD_FIELDS as ReadonlyArray<Field>).includes(field)

const isAddressField = (field: Field): field is AddressField => ADDRESS_FIELDS.includes(field)

/** Errors of a field; `country` is empty if none is chosen. */
export const complaintsOf = (field: Field, country: string, translation: Translation): Complaints => {
  if (!isAddressField(field)) return COMPLAINTS[field](translation)
  const missing = missingTextOf(field, country, translation)
  const invalid = translation.text("field.too_long", { count: TEXT_LENGTH_MAX })
  return { ...(missing !== undefined && { missing }), invalid }
}

/** The parts of a session's form. */
export interface FormParts {
  /** Null if the payer does not choose an amount. */
  readonly amount: AmountField | null
  readonly card: boolean
  /** True if the card comes as a token of the processor's page. */
  readonly isFramed?: boolean
  /** Saved cards to choose from. */
  readonly saved: ReadonlyArray<PaymentMethod>
  readonly address: boolean
  readonly phone: boolean
}

export const formPartsOf = (
  { billing_address_collection, payment_intent, phone_number_collection }: CheckoutSession,
  amount: AmountField | null,
  saved: ReadonlyArray<PaymentMethod>,
  cards: CardEntry
): FormParts => ({
  amount,
  saved,
  isFramed: cards.kind === "frame",
  // An amount that is still to be chosen has no payment yet, and is not zero.
  card: payment_intent !== null || amount !== null,
  address: billing_address_collection === "required",
  phone: phone_number_collection?.enabled === true
})

const ADDRESS_FIELDS: ReadonlyArray<Field> = ["line1", "line2", "city", "state", "postal_code"]

/** Fields of a session's form in the order of the page. */
export const fieldsOf = (
  { address, amount, card, isFramed = false, phone, saved }: FormParts,
  country: string
): ReadonlyArray<Field> => [
  ...(amount === null ? [] : (["amount"] as const)),
  "email",
  "name",
  ...(phone ? (["phone"] as const) : []),
  ...(address ? (["country", ...orderOf(country)] as const) : []),
  ...(saved.length === 0 ? [] : ([CHOICE] as const)),
  ...(card ? (isFramed ? ([TOKEN_FIELD] as const) : CARD_FIELDS) : [])
]

/** The entered values: details to show again, errors, and without errors the parameters of the confirmation. */
export interface Entered {
  readonly details: Details
  readonly errors: FieldErrors
  readonly confirmation: {
    readonly customer_details: BillingDetailsParameter
    readonly payment_method_data: PaymentMethodData | null
    /** The selected saved card; undefined for a new card. */
    readonly payment_method?: string
    /** The chosen amount in minor units; undefined if the payer does not choose one. */
    readonly custom_unit_amount?: number
  } | null
}

/** Reads a session's form. */
export const readEntered = (asked: FormParts, values: FormValues, translation: Translation): Entered => {
  const country = values.get("country") ?? ""
  const choice = asked.card ? (values.get(CHOICE) ?? ANOTHER) : ANOTHER
  // With a saved card, the fields of a new card are ignored.
  const fields = fieldsOf(asked, country).filter((field) => choice === ANOTHER || !isOfCard(field))
  const details: Details = Object.fromEntries(
    DETAIL_FIELDS.filter((field) => fields.includes(field)).map((field) => [field, values.get(field) ?? ""])
  )
  const errors: Partial<Record<Field, string>> = Object.fromEntries(
    fields.flatMap((field) => {
      const complaint =
        field === "amount"
          ? Amount.complaintAbout(asked.amount!, values.get(field) ?? "")
          : complaintAbout(field, country, values, translation)
      return complaint === undefined ? [] : [[field, complaint]]
    })
  )
  if (choice !== ANOTHER && !isSaved(asked.saved, choice)) errors[CHOICE] = translation.text("saved.gone")
  if (Object.keys(errors).length > 0) return { details, errors, confirmation: null }
  const customer_details = customerDetailsOf(details, asked)
  const payment_method_data =
    asked.card && choice === ANOTHER ? paymentMethodDataOf(asked, values, customer_details) : null
  const chosen = asked.amount && Amount.chosenIn(asked.amount, details.amount!)
  const custom_unit_amount = chosen !== null && { custom_unit_amount: chosen }
  const payment_method = choice !== ANOTHER && { payment_method: choice }
  return {
    details,
    errors,
    confirmation: { customer_details, payment_method_data, ...payment_method, ...custom_unit_amount }
  }
}

const complaintAbout = (
  field: Exclude<Field, "amount">,
  country: string,
  values: FormValues,
  translation: Translation
): string | undefined => {
  const { invalid, missing } = complaintsOf(field, country, translation)
  const value = values.get(field) ?? ""
  if (value === "") return missing
  return RULES[field](value, values) ? undefined : invalid
}

const isAddressText = Schema.is(AddressText)
const isPaymentMethodData = Schema.is(PaymentMethodData)

/** Rules by field; true means valid. Some rules read other fields too. */
const RULES: Readonly<Record<Exclude<Field, "amount">, (value: string, values: FormValues) => boolean>> = {
  email: Schema.is(Email),
  name: Schema.is(PersonName),
  phone: Schema.is(PersonPhone),
  line1: isAddressText,
  line2: isAddressText,
  city: isAddressText,
  state: isAddressText,
  postal_code: isAddressText,
  country: isCountry,
  // Checked against the saved cards instead.
  payment_method: () => true,
  card_number: (value) => isCardNumber(readNumber(value) ?? ""),
  // A past date is not an error of the form: the card is declined (semantics payment_methods.create).
  card_expiry: (value) => readExpiry(value) !== undefined,
  card_cvc: (value, values) => isSecurityCode(readCode(value) ?? "", readNumber(values.get("card_number") ?? "") ?? ""),
  card_token: (token) => isPaymentMethodData({ type: "card", token })
}

/**
 * The code must have the length of the card's brand (semantics payment_methods.create); without a valid number, 3 or 4
 * digits are accepted.
 */
const isSecurityCode = (code: string, cardNumber: string): boolean =>
  /^[0-9]{3,4}$/.test(code) && (!isCardNumber(cardNumber) || code.length === cvcLengthOf(cardNumber))

const customerDetailsOf = (details: Details, { address }: FormParts): BillingDetailsParameter => ({
  email: details.email || null,
  name: details.name || null,
  phone: details.phone || null,
  address: address
    ? {
        line1: details.line1 || null,
        line2: details.line2 || null,
        city: details.city || null,
        state: details.state || null,
        postal_code: details.postal_code || null,
        country: details.country || null
      }
    : null
})

/** The entered card, after its fields were validated. */
const paymentMethodDataOf = (
  { isFramed = false }: FormParts,
  values: FormValues,
  billing_details: BillingDetailsParameter
): PaymentMethodData => {
  if (isFramed) return { type: "card", token: values.get(TOKEN_FIELD)!, billing_details }
  const [number, expiry, code] = CARD_FIELDS.map((field) => values.get(field) ?? "") as [string, string, string]
  const { month, year } = readExpiry(expiry)!
  return {
    type: "card",
    card: { number: readNumber(number)!, exp_month: month, exp_year: year, cvc: readCode(code)! },
    billing_details
  }
}

/**
 * First values of the form: the payer's earlier input, or the merchant's data about the payer (semantics
 * checkout.customer_details).
 */
export const detailsOf = (
  known: CheckoutSession["customer_details"] | null,
  amount: AmountField | null,
  saved: ReadonlyArray<PaymentMethod>
): Details => ({
  ...(amount !== null && { amount: Amount.offeredIn(amount) }),
  ...(saved.length > 0 && { [CHOICE]: saved[0]!.id }),
  email: known?.email ?? "",
  name: known?.name ?? "",
  phone: known?.phone ?? "",
  line1: known?.address?.line1 ?? "",
  line2: known?.address?.line2 ?? "",
  city: known?.address?.city ?? "",
  state: known?.address?.state ?? "",
  postal_code: known?.address?.postal_code ?? "",
  country: known?.address?.country ?? ""
})

/** The field that a parameter of the confirmation was read from. */
export const fieldOf = (param: string | null): Field | undefined => PARAMS[param ?? ""]

const PARAMS: Readonly<Record<string, Field>> = {
  custom_unit_amount: "amount",
  payment_method: CHOICE,
  "payment_method_data[token]": TOKEN_FIELD,
  "customer_details[email]": "email",
  "customer_details[name]": "name",
  "customer_details[phone]": "phone",
  "customer_details[address][line1]": "line1",
  "customer_details[address][city]": "city",
  "customer_details[address][state]": "state",
  "customer_details[address][postal_code]": "postal_code",
  "customer_details[address][country]": "country",
  "payment_method_data[card][number]": "card_number",
  "payment_method_data[card][exp_month]": "card_expiry",
  "payment_method_data[card][exp_year]": "card_expiry",
  "payment_method_data[card][cvc]": "card_cvc"
}
