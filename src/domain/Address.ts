/** Postal addresses and billing details. */
import { Schema } from "effect"
import { Email } from "./Email.ts"
import { clearable, text } from "./Text.ts"

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

export const AddressParameter = Schema.Struct({
  city: Schema.optionalKey(clearable(text())),
  country: Schema.optionalKey(clearable(text())),
  line1: Schema.optionalKey(clearable(text())),
  line2: Schema.optionalKey(clearable(text())),
  postal_code: Schema.optionalKey(clearable(text())),
  state: Schema.optionalKey(clearable(text()))
})
export type AddressParameter = typeof AddressParameter.Type

export const BillingDetailsParameter = Schema.Struct({
  email: Schema.optionalKey(clearable(Email)),
  name: Schema.optionalKey(clearable(text(256))),
  phone: Schema.optionalKey(clearable(text(64))),
  address: Schema.optionalKey(Schema.NullOr(AddressParameter))
})
export type BillingDetailsParameter = typeof BillingDetailsParameter.Type

/** The address as it is stored: every field is there, null where nothing was sent. */
export const addressOf = (sent: AddressParameter): Address => ({
  city: sent.city || null,
  country: sent.country || null,
  line1: sent.line1 || null,
  line2: sent.line2 || null,
  postal_code: sent.postal_code || null,
  state: sent.state || null
})

/** The billing details as they are stored. */
export const billingDetailsOf = (sent: BillingDetailsParameter): BillingDetails => ({
  email: sent.email || null,
  name: sent.name || null,
  phone: sent.phone || null,
  address: sent.address == null ? null : addressOf(sent.address)
})
