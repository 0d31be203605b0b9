/** Array parameters with their element type said: the driver cannot infer one from an empty or all-null array. */
import { PgTypes } from "@effect/sql-pg"
import { Result } from "effect"

/** `text[]` */
export const texts = (values: ReadonlyArray<string | null>): PgTypes.Parameter =>
  Result.getOrThrow(PgTypes.array(values, PgTypes.OID.text))

/** `bigint[]` of safe integers. */
export const bigints = (values: ReadonlyArray<number | null>): PgTypes.Parameter =>
  Result.getOrThrow(
    PgTypes.array(
      values.map((value) => (value === null ? null : BigInt(value))),
      PgTypes.OID.int8
    )
  )
