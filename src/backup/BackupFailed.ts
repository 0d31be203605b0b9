/** A backup or a restore has failed. The message is one line for a person, with the reason. */
import { Effect, Schema } from "effect"
import { describeCause } from "../postgres/embedded/EmbeddedPostgresError.ts"

export class BackupFailed extends Schema.TaggedError<BackupFailed>()("BackupFailed", { message: Schema.String }) {}

/** Runs work on files; a failure becomes `Cannot <doing>: <description>`. */
export const attempt = <A>(doing: string, run: () => A | Promise<A>): Effect.Effect<A, BackupFailed> =>
  Effect.tryPromise({
    try: async () => run(),
    catch: (cause) =>
      cause instanceof BackupFailed
        ? cause
        : new BackupFailed({ message: `Cannot ${doing}: ${describeCause(cause).replace(/\.$/, "")}.` })
  })
