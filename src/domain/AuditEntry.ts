/** An entry of the audit log: an action of a person in the dashboard (semantics dashboard.audit). */
import { Schema } from "effect"
import { Role } from "./Person.ts"

export const AuditEntry = Schema.Struct({
  /** `aud_…` */
  id: Schema.String,
  object: Schema.Literal("audit_entry"),
  /** The name of the action, such as `refund.create` or `merchant.set_version`. */
  action: Schema.String,
  /** Id of the object that the action changed or created; null if there is none. */
  subject: Schema.NullOr(Schema.String),
  /** Further information, such as an amount, a version or a role; null if there is none. */
  detail: Schema.NullOr(Schema.String),
  person: Schema.String,
  email: Schema.NullOr(Schema.String),
  role: Role,
  merchant_id: Schema.String,
  /** Id of the request, `req_…`; null for an action without one. */
  request: Schema.NullOr(Schema.String),
  /** Unix seconds of the wall clock, not of a test clock. */
  created: Schema.Int
})
export type AuditEntry = typeof AuditEntry.Type
