/** Postal addresses and billing details (semantics parameters.people). An unknown field is null, never empty. */
import { Schema } from "effect"
import { Email, text } from "./Text.ts"

/** The officially assigned codes of ISO 3166-1 alpha-2. */
const CODES =
  "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC " +
  "CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD " +
  "GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH " +
  "KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW " +
  "MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC " +
  "SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY " +
  "UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW"

/** Country codes in capitals, in alphabetical order. */
export const COUNTRY_CODES: ReadonlyArray<string> = CODES.split(" ")

const codes: ReadonlySet<string> = new Set(COUNTRY_CODES)

export const isCountry = (code: string): boolean => codes.has(code)

/** A country code in a request, in either case (semantics parameters.people). */
export const Country = Schema.String.check(
  Schema.isPattern(/^[A-Za-z]{2}$/u),
  Schema.makeFilter((code: string) => isCountry(normalizeCountry(code)))
).annotate({ rule: "a two-letter country code of ISO 3166-1" })

/** Returns a country code as it is stored, in capitals. */
export const normalizeCountry = (code: string): string => code.toUpperCase()

export const Address = Schema.Struct({
  city: Schema.NullOr(Schema.String),
  country: Schema.NullOr(Schema.String),
  line1: Schema.NullOr(Schema.String),
  line2: Schema.NullOr(Schema.String),
  postal_code: Schema.NullOr(Schema.String),
  state: Schema.NullOr(Schema.String)
}).annotate({ identifier: "Address" })
export type Address = typeof Address.Type

export const BillingDetails = Schema.Struct({
  email: Schema.NullOr(Schema.String),
  name: Schema.NullOr(Schema.String),
  phone: Schema.NullOr(Schema.String),
  address: Schema.NullOr(Address)
}).annotate({ identifier: "BillingDetails" })
export type BillingDetails = typeof BillingDetails.Type

export const AddressText = text()
/** The names and phone numbers of payers (semantics parameters.people). */
export const PERSON_NAME_LENGTH_MAX = 256
export const PersonName = text(PERSON_NAME_LENGTH_MAX)
export const PERSON_PHONE_LENGTH_MAX = 64
export const PersonPhone = text(PERSON_PHONE_LENGTH_MAX)

export const AddressParameter = Schema.Struct({
  city: Schema.optionalKey(Schema.NullOr(AddressText)),
  country: Schema.optionalKey(Schema.NullOr(Country)),
  line1: Schema.optionalKey(Schema.NullOr(AddressText)),
  line2: Schema.optionalKey(Schema.NullOr(AddressText)),
  postal_code: Schema.optionalKey(Schema.NullOr(AddressText)),
  state: Schema.optionalKey(Schema.NullOr(AddressText))
})
export type AddressParameter = typeof AddressParameter.Type

export const BillingDetailsParameter = Schema.Struct({
  email: Schema.optionalKey(Schema.NullOr(Email)),
  name: Schema.optionalKey(Schema.NullOr(PersonName)),
  phone: Schema.optionalKey(Schema.NullOr(PersonPhone)),
  address: Schema.optionalKey(Schema.NullOr(AddressParameter))
})
export type BillingDetailsParameter = typeof BillingDetailsParameter.Type

/** Returns an address as it is stored: with all fields, null for those not sent; null if all fields are. */
export const addressOf = (sent: AddressParameter | null | undefined): Address | null => {
  const address: Address = {
    city: sent?.city || null,
    country: sent?.country ? normalizeCountry(sent.country) : null,
    line1: sent?.line1 || null,
    line2: sent?.line2 || null,
    postal_code: sent?.postal_code || null,
    state: sent?.state || null
  }
  return Object.values(address).every((part) => part === null) ? null : address
}

export const billingDetailsOf = (sent: BillingDetailsParameter): BillingDetails => ({
  email: sent.email || null,
  name: sent.name || null,
  phone: sent.phone || null,
  address: addressOf(sent.address)
})
