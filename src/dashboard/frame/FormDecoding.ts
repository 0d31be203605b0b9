/** What people enter, as the commands take it. What is wrong with it is told in the words of the API. */
import { Effect, Schema } from "effect"
import type { Exit } from "effect"
import type { ParameterInvalid, ParameterMissing, ParameterUnknown } from "../../domain/Errors.ts"
import { Currency } from "../../domain/Money.ts"
import { makePayloadDecoder } from "../../http/Payload.ts"
import type { FormValues } from "../../html/Forms.ts"
import { moneyOf } from "../../html/Money.ts"
import * as Amounts from "../../html/assets/amount.js"
import { seenField } from "./Form.ts"
import { Invalid } from "./Page.ts"

type ParameterError = ParameterUnknown | ParameterMissing | ParameterInvalid

/** The body of a request, by its contract. Fields of a form that are named as its parameters show what is wrong. */
export const decodeBody = <A extends object>(
  schema: Schema.Decoder<A>,
  value: Partial<Record<keyof A, unknown>>
): Effect.Effect<A, ParameterError> =>
  // The decoder is made of this schema, and so is what it answers with.
  Effect.suspend(() => makePayloadDecoder(schema)({ escapes: false, value }) as Exit.Exit<A, ParameterError>)

/** A text; null for none. */
export const readText = (values: FormValues, name: string): string | null => values.get(name) || null

/**
 * Of what was entered, the fields that somebody has changed since the form was opened: what others have changed
 * meanwhile stays (semantics 9.84).
 */
export const pickChanged = <A extends object>(values: FormValues, entered: A): Partial<A> =>
  Object.fromEntries(
    Object.entries(entered).filter(([name]) => values.get(name) !== values.get(seenField(name)))
  ) as Partial<A>

/** A whole number; null for none, and the text itself for what is none, of which decoding says what is wrong. */
export const readNumber = (values: FormValues, name: string): number | string | null => {
  const text = readText(values, name)
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : text
}

/**
 * An amount in minor units, null for none; or what is wrong with it. Of what is no currency nobody knows what it means:
 * decoding says what is wrong with that.
 */
export const readAmount = (values: FormValues, name: string, currency: string | null): number | null | Invalid => {
  const text = readText(values, name)
  if (text === null || !Schema.is(Currency)(currency)) return null
  const read = Amounts.readAmount(text, moneyOf(currency.toLowerCase(), "en"))
  return "minor" in read ? read.minor! : new Invalid({ [name]: read.problem })
}
