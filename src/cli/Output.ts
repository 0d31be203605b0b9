/** The command's standard output. */
import { Effect } from "effect"

/** Ends when the reader of standard output closes it, as `head` does. */
export const outputClosed = Effect.callback<void>((resume) => {
  process.stdout.once("error", () => resume(Effect.void))
})
