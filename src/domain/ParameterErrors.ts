/** The errors of a parameter by itself, apart from `Errors.ts` so that the rules of objects can fail with them. */
import { Schema } from "effect"

/** A required parameter, or one that is required under the given circumstances, is absent. */
export class ParameterMissing extends Schema.TaggedError<ParameterMissing>()("ParameterMissing", {
  /** Path of the parameter, e.g. `payment_method_data[card][number]` (semantics parameters.paths). */
  param: Schema.String
}) {}

/** A parameter has the wrong type, is out of range, or refers to an unsuitable object. */
export class ParameterInvalid extends Schema.TaggedError<ParameterInvalid>()("ParameterInvalid", {
  /** Null only for the whole body. */
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
  second: Schema.String
}) {}
