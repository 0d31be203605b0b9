/** Array parameters with their element type said: the driver cannot infer one from an empty or all-null array. */
import { PgTypes } from "@effect/sql-pg"
import { Result } from "effect"

/** `text[]` */
export const texts = (values: ReadonlyArray<string | null>): PgTypes.Parameter =>
  Result.getOrThrow(PgTypes.array(values, PgTypes.OID.text))

/** `bytea[]` */
export const byteStrings = (values: ReadonlyArray<Uint8Array>): PgTypes.Parameter =>
  Result.getOrThrow(PgTypes.array(values, PgTypes.OID.bytea))

/** `int[]` */
export const ints = (values: ReadonlyArray<number | null>): PgTypes.Parameter =>
  Result.getOrThrow(PgTypes.array(values, PgTypes.OID.int4))

/** `bigint[]` of safe integers. */
export const bigints = (values: ReadonlyArray<number | null>): PgTypes.Parameter =>
  Result.getOrThrow(
    PgTypes.array(
      values.map((value) => (value === null ? null : BigInt(value))),
      PgTypes.OID.int8
    )
  )
