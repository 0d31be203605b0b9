/**
 * What can be wrong with a parameter alone. These errors know no object, so the objects' own rules can fail with them; the
 * others (`Errors.ts`) tell of objects.
 */
import { Data } from "effect"

/** A required parameter, or one that is required under the given circumstances, is absent. */
export class ParameterMissing extends Data.TaggedError("ParameterMissing")<{
  /** Path of the parameter, e.g. `payment_method_data[card][number]` (semantics T8). */
  readonly param: string
}> {}

/** A parameter is of the wrong type, out of range, or refers to something that does not fit. */
export class ParameterInvalid extends Data.TaggedError("ParameterInvalid")<{
  /** Null only if the whole body is meant. */
  readonly param: string | null
  /** Completes "The `param` field must be …". */
  readonly rule: string
}> {}

/** A parameter that the operation does not know. */
export class ParameterUnknown extends Data.TaggedError("ParameterUnknown")<{ readonly param: string }> {}

/** Two parameters that exclude each other were both sent. */
export class ParametersExclusive extends Data.TaggedError("ParametersExclusive")<{
  readonly first: string
  /** The one that the error names. */
  readonly second: string
}> {}
