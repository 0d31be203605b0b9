/** Postal addresses and billing details (semantics 9.6). What is unknown of either is null, never empty. */
import { Schema } from "effect"
import { Country, normalizeCountry } from "./Countries.ts"
import { Email } from "./Email.ts"
import { text } from "./Text.ts"

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
/** What payers may be called, and reached at (semantics 9.6). */
export const PersonName = text(256)
export const PersonPhone = text(64)

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

/** The address as it is stored: with all fields, null where nothing was sent; null itself if all of them are. */
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

/** The billing details as they are stored. */
export const billingDetailsOf = (sent: BillingDetailsParameter): BillingDetails => ({
  email: sent.email || null,
  name: sent.name || null,
  phone: sent.phone || null,
  address: addressOf(sent.address)
})
