/** Turns form values into the parameters of commands. Mistakes are reported in the API's words. */
import { Effect, type Exit, Schema } from "effect"
import type { ParameterInvalid, ParameterMissing, ParameterUnknown } from "../../domain/Errors.ts"
import { Currency } from "../../domain/Money.ts"
import { makePayloadDecoder } from "../../http/Payload.ts"
import type { FormValues } from "../../html/Forms.ts"
import { moneyOf, problemText } from "../../html/Money.ts"
import * as Amounts from "../../html/assets/amount.js"
import { seenField } from "./Form.ts"
import { Invalid } from "./Page.ts"

type ParameterError = ParameterUnknown | ParameterMissing | ParameterInvalid

/** Decodes a request body by its schema. Errors appear beside the fields whose names are the parameters'. */
export const decodeBody = <A extends object>(
  schema: Schema.Decoder<A>,
  value: Partial<Record<keyof A, unknown>>
): Effect.Effect<A, ParameterError> =>
  // `makePayloadDecoder` returns values of this schema, but its type does not say so.
  Effect.suspend(() => makePayloadDecoder(schema)({ escapes: false, value }) as Exit.Exit<A, ParameterError>)

/** Returns the command that decodes the parameters of an object, and updates the object. */
export const updateWith =
  <A extends object, B, E, R>(
    schema: Schema.Decoder<A>,
    update: (id: string, parameters: A) => Effect.Effect<B, E, R>
  ) =>
  (id: string, entered: Partial<Record<keyof A, unknown>>) =>
    Effect.flatMap(decodeBody(schema, entered), (parameters) => update(id, parameters))

export const readText = (values: FormValues, name: string): string | null => values.get(name) || null

/** Returns only the edited fields: concurrent changes of others are kept (semantics dashboard.editing). */
export const pickChanged = <A extends object>(values: FormValues, entered: A): Partial<A> =>
  Object.fromEntries(
    Object.entries(entered).filter(([name]) => values.get(name) !== values.get(seenField(name)))
  ) as Partial<A>

/** Returns a whole number; null for an empty field; any other text unchanged, for the decoder to reject. */
export const readNumber = (values: FormValues, name: string): number | string | null => {
  const text = readText(values, name)
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : text
}

/** Returns minor units, or the error about them; null for an empty field or an unknown currency. */
export const readAmount = (values: FormValues, name: string, currency: string | null): number | null | Invalid => {
  const text = readText(values, name)
  if (text === null || !Schema.is(Currency)(currency)) return null
  const read = Amounts.readAmount(text, moneyOf(currency.toLowerCase(), "en"))
  return read.problem === undefined ? read.minor : new Invalid({ [name]: problemText(read) })
}
