/**
 * The audit log (semantics dashboard.audit): which person did what in the dashboard. The command that acts also writes
 * the entry, in the same record and account, so neither exists without the other. The one exception is a wipe, whose
 * entry is written before it, in the installation's account.
 */
import { Effect, Schema } from "effect"
import { AuditEntry } from "../../domain/AuditEntry.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { Role } from "../../domain/Person.ts"
import { secondsOf } from "../../domain/Time.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import type { Kept } from "../shared/Documents.ts"

export const AUDIT_ENTRY: Kept<AuditEntry> = {
  name: "audit_entry",
  shape: { value: AuditEntry },
  prefix: PREFIXES.audit_entry,
  // The installation's account holds the entries of all merchants.
  labels: ({ action, merchant_id, person }) => ({ action, merchant_id, person })
}

/** The content of an entry, beside its person and time. */
export interface Audited {
  readonly action: string
  readonly subject?: string | null
  readonly detail?: string | null
}

/** The part of a person that an entry keeps. */
export const AuditedPerson = Schema.Struct({
  id: Schema.String,
  email: Schema.NullOr(Schema.String),
  role: Role,
  merchant_id: Schema.String
})
export type AuditedPerson = typeof AuditedPerson.Type

/** Writes an entry. Must run inside the command that the entry describes. */
export const record = Effect.fnUntraced(function* (
  person: AuditedPerson,
  { action, detail = null, subject = null }: Audited
): Effect.fn.Return<AuditEntry, never, Transaction> {
  const transaction = yield* Transaction
  const entry: AuditEntry = {
    id: transaction.newId(PREFIXES.audit_entry),
    object: "audit_entry",
    action,
    subject,
    detail,
    person: person.id,
    email: person.email,
    role: person.role,
    merchant_id: person.merchant_id,
    request: transaction.request?.id ?? null,
    created: secondsOf(transaction.startedAt)
  }
  transaction.put(AUDIT_ENTRY, entry)
  return entry
})
