/** Email addresses (semantics T22). */
import { Schema } from "effect"
import { text } from "./Text.ts"

const EMAIL_LENGTH_MAX = 320

export const Email = text(EMAIL_LENGTH_MAX)
  .check(Schema.isPattern(/^[^\s@]+@[^\s@]+\.[^\s@]+$/u))
  .annotate({ rule: `a valid email address of at most ${EMAIL_LENGTH_MAX} characters`, format: "email" })
