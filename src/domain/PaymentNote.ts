/** A note of a merchant's person on a payment (semantics dashboard.notes). The API does not show it. */
import { Schema } from "effect"

export const PaymentNote = Schema.Struct({
  /** `note_…` */
  id: Schema.String,
  object: Schema.Literal("payment_note"),
  payment_intent: Schema.String,
  /** Without card numbers. */
  text: Schema.String,
  /** The author. */
  person: Schema.String,
  /** The author's email at that time; null for none. */
  email: Schema.NullOr(Schema.String),
  /** Unix seconds of the wall clock. */
  created: Schema.Int
})
export type PaymentNote = typeof PaymentNote.Type

export const NOTE_LENGTH_MAX = 2000
/** Notes of one payment. */
export const NOTES_MAX = 50
