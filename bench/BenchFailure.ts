/** A bench without a result, with the reason: a bench prints no figures that it cannot vouch for. */
import { Schema } from "effect"

export class BenchFailure extends Schema.TaggedError<BenchFailure>()("BenchFailure", { problem: Schema.String }) {
  override get message() {
    return this.problem
  }
}

/** Turns a promise's rejection into a failure of the bench; the message begins with `doing`. */
export const failureOf =
  (doing: string) =>
  (error: unknown): BenchFailure =>
    new BenchFailure({ problem: `${doing}: ${error instanceof Error ? error.message : String(error)}` })
