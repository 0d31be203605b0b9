/** Strings of bounded length. Lengths count Unicode code points (semantics T11). */
import { Schema } from "effect"
import { ruleOf } from "./Rule.ts"

/** What holds where no other limit is stated (semantics T11). */
export const TEXT_LENGTH_MAX = 5000

/** A string of at most `max` code points. */
export const text = (max: number = TEXT_LENGTH_MAX) =>
  Schema.String.check(
    Schema.makeFilter(
      (value: string) => hasLengthAtMost(value, max),
      { rule: `a string of at most ${max} characters`, toJsonSchema: () => ({ maxLength: max }) },
      // No pattern is tried on what is too long: some take the square of the length.
      true
    )
  )

/**
 * A parameter of an update that both null and the empty string unset, though `schema` alone would refuse the latter: a
 * text with a format, or metadata (semantics C4, M2, 9.2). Free text takes the empty string anyway, and everything else
 * only null.
 */
export const unsettable = <S extends Schema.Constraint>(schema: S) =>
  Schema.Union([schema, Schema.Null, Schema.Literal("")]).annotate({ rule: ruleOf(schema) })

/** Whether a string has at most `max` code points; code units are only an upper bound. */
export const hasLengthAtMost = (value: string, max: number): boolean => {
  if (value.length <= max) return true
  if (value.length > 2 * max) return false
  let length = 0
  for (const _ of value) length++
  return length <= max
}
