/** A backup cannot be made, or cannot be restored. The message says why, in one line that is made for a person. */
import { Effect, Schema } from "effect"
import { describeCause } from "../postgres/embedded/EmbeddedPostgresError.ts"

export class BackupFailed extends Schema.TaggedError<BackupFailed>()("BackupFailed", { message: Schema.String }) {}

/** Work on files; a failure becomes `Cannot <doing>: <what went wrong>`. */
export const attempt = <A>(doing: string, run: () => A | Promise<A>): Effect.Effect<A, BackupFailed> =>
  Effect.tryPromise({
    try: async () => run(),
    catch: (cause) =>
      cause instanceof BackupFailed
        ? cause
        : new BackupFailed({ message: `Cannot ${doing}: ${describeCause(cause).replace(/\.$/, "")}.` })
  })
