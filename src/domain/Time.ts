/** Timestamps of the API: whole seconds since the Unix epoch. */
import { Schema } from "effect"

export const Timestamp = Schema.Int.annotate({ rule: "a Unix timestamp in seconds" })

/** Rounds a time in milliseconds down to seconds. */
export const secondsOf = (millis: number): number => Math.floor(millis / 1000)
