/** A backup or a restore has failed. The message is one line for a person, with the reason. */
import { Effect, Schema } from "effect"
import { describeCause } from "../postgres/embedded/EmbeddedPostgresError.ts"

export class BackupFailed extends Schema.TaggedError<BackupFailed>()("BackupFailed", { message: Schema.String }) {
  /** Returns the failure of work on files: `Cannot <doing>: <description>`. */
  static of(doing: string, cause: unknown): BackupFailed {
    if (cause instanceof BackupFailed) return cause
    return new BackupFailed({ message: `Cannot ${doing}: ${describeCause(cause).replace(/\.$/, "")}.` })
  }
}

/** Runs work on files. */
export const attempt = <A>(doing: string, run: () => A | Promise<A>): Effect.Effect<A, BackupFailed> =>
  Effect.tryPromise({
    try: async () => run(),
    catch: (cause) => BackupFailed.of(doing, cause)
  })
