/**
 * Parameters with their type said: the driver infers none from an empty or all-null array, and `int` from small
 * numbers.
 */
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

/** `bigint`, of a safe integer. */
export const bigint = (value: number): PgTypes.Parameter => PgTypes.int8(BigInt(value))
