/**
 * Flags that several commands share. A key is read from the environment or from standard input, never from the command
 * line: every user of the machine can read that while the command runs, and shells write it to a file.
 */
import { Flag } from "effect/cli"

export const connectionFlags = {
  apiKey: Flag.Redacted("api-key").pipe(
    Flag.optional,
    Flag.withMetavar("-"),
    Flag.withDescription("- reads the secret key from standard input; TILL_API_KEY by default")
  ),
  url: Flag.String("url").pipe(
    Flag.optional,
    Flag.withDescription("Till's address; by default from TILL_PUBLIC_URL or PORT, or http://localhost:4242")
  )
}

export const json = (description: string = "Print JSON, for programs") =>
  Flag.Boolean("json").pipe(Flag.withDefault(false), Flag.withDescription(description))
