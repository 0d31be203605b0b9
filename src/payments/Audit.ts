/**
 * The audit log (semantics 9.62): who did what in the dashboard. An entry is written by the command that does it, so it
 * is in the same record: there is no action without its entry, and no entry without its action. It lies in the account
 * that the action changes. A wipe is the one exception: its entry is written before, in the installation's account.
 */
import { Effect } from "effect"
import { AuditEntry } from "../domain/AuditEntry.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import type { Person } from "../domain/Person.ts"
import { secondsOf } from "../domain/Time.ts"
import { Transaction } from "../engine/actor/Transaction.ts"
import type { Kept } from "./Documents.ts"

export const AUDIT_ENTRY: Kept<AuditEntry> = {
  name: "audit_entry",
  shape: { value: AuditEntry },
  prefix: PREFIXES.audit_entry,
  // In the installation's account lie those of all merchants.
  labels: ({ action, merchant_id, person }) => ({ action, merchant_id, person })
}

/** What an entry says beside who did it and when. */
export interface Audited {
  readonly action: string
  readonly subject?: string | null
  readonly detail?: string | null
}

/** Writes an entry. To be called within the command that it is about. */
export const record = Effect.fnUntraced(function* (
  person: Pick<Person, "id" | "email" | "role" | "merchant_id">,
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
