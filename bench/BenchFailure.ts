/** The bench has no result, and says why. A bench that cannot vouch for its numbers prints none. */
import { Schema } from "effect"

export class BenchFailure extends Schema.TaggedError<BenchFailure>()("BenchFailure", { problem: Schema.String }) {
  override get message() {
    return this.problem
  }
}

/** A promise whose rejection fails the bench, with the words of `doing` before it. */
export const failureOf =
  (doing: string) =>
  (error: unknown): BenchFailure =>
    new BenchFailure({ problem: `${doing}: ${error instanceof Error ? error.message : String(error)}` })
