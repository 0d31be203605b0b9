/** Something that somebody did in the dashboard (semantics 9.62). */
import { Schema } from "effect"
import { Role } from "./Person.ts"

export const AuditEntry = Schema.Struct({
  /** `aud_…` */
  id: Schema.String,
  object: Schema.Literal("audit_entry"),
  /** What was done, such as `refund.create` or `merchant.set_version`. */
  action: Schema.String,
  /** Id of the object that it was done to or that came of it; null if there is none. */
  subject: Schema.NullOr(Schema.String),
  /** In a few words, what of it: an amount, a version, a role. Null if there is no more to say. */
  detail: Schema.NullOr(Schema.String),
  person: Schema.String,
  /** The person's address at that time. */
  email: Schema.NullOr(Schema.String),
  /** The person's role at that time. */
  role: Role,
  merchant_id: Schema.String,
  /** Id of the request, `req_…`; null for what no form has asked for. */
  request: Schema.NullOr(Schema.String),
  /** Unix seconds, whatever a test clock says. */
  created: Schema.Int
})
export type AuditEntry = typeof AuditEntry.Type
