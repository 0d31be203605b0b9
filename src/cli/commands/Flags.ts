/**
 * Flags that several commands share. A key is read from the environment or from standard input, never from the command
 * line: every user of the machine can read that while the command runs, and shells write it to a file.
 */
import { Flag } from "effect/cli"

/** A text that may be omitted. */
export const optional = (name: string, description: string) =>
  Flag.String(name).pipe(Flag.optional, Flag.withDescription(description))

export const toggle = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDefault(false), Flag.withDescription(description))

/** A whole number within bounds. */
export const within = (
  name: string,
  [from, to]: readonly [from: number, to: number],
  byDefault: number,
  description: string
) =>
  Flag.Int(name).pipe(
    Flag.filter(
      (value) => value >= from && value <= to,
      () => `must be from ${from} to ${to}`
    ),
    Flag.withDefault(byDefault),
    Flag.withDescription(description)
  )

export const connectionFlags = {
  apiKey: Flag.Redacted("api-key").pipe(
    Flag.optional,
    Flag.withMetavar("-"),
    Flag.withDescription("- reads the secret key from standard input; TILL_API_KEY by default")
  ),
  url: optional("url", "Till's address; by default from TILL_PUBLIC_URL or PORT, or http://localhost:4242")
}

export const json = (description: string = "Print JSON, for programs") => toggle("json", description)
