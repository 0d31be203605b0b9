/**
 * These errors tell what is wrong with a parameter alone. They know no object, so the objects' own rules can fail with
 * them; the others (`Errors.ts`) tell of objects.
 */
import { Schema } from "effect"

/** A required parameter, or one that is required under the given circumstances, is absent. */
export class ParameterMissing extends Schema.TaggedError<ParameterMissing>()("ParameterMissing", {
  /** Path of the parameter, e.g. `payment_method_data[card][number]` (semantics T8). */
  param: Schema.String
}) {}

/** A parameter is of the wrong type, out of range, or refers to something that does not fit. */
export class ParameterInvalid extends Schema.TaggedError<ParameterInvalid>()("ParameterInvalid", {
  /** Null only if the whole body is meant. */
  param: Schema.NullOr(Schema.String),
  /** Completes "The `param` field must be …". */
  rule: Schema.String
}) {}

/** A parameter that the operation does not know. */
export class ParameterUnknown extends Schema.TaggedError<ParameterUnknown>()("ParameterUnknown", {
  param: Schema.String
}) {}

/** Two parameters that exclude each other were both sent. */
export class ParametersExclusive extends Schema.TaggedError<ParametersExclusive>()("ParametersExclusive", {
  first: Schema.String,
  /** The one that the error names. */
  second: Schema.String
}) {}
