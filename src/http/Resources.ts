/** Objects by their id in the path (semantics T16). */
import { Effect } from "effect"
import { ResourceMissing } from "../domain/Errors.ts"
import { Accounts } from "../engine/Accounts.ts"
import type { AccountId, Document, Identified, Tombstone } from "../engine/Document.ts"
import type { Resource } from "../payments/Documents.ts"

/** The newest state of an object, or what is left of it. An id of another kind does not exist. */
export const readEntry = Effect.fnUntraced(function* <A extends Identified, H>(
  account: AccountId,
  kind: Resource<A, H>,
  id: string
) {
  const entry = yield* Accounts.use((accounts) => accounts.read(account, id))
  if (entry?.kind !== kind.name) return yield* new ResourceMissing({ kind: kind.resourceKind, id, param: "id" })
  return entry as Document<A, H> | Tombstone
})

/** The newest state of an object that is not deleted. */
export const readDocument = Effect.fnUntraced(function* <A extends Identified, H>(
  account: AccountId,
  kind: Resource<A, H>,
  id: string
) {
  const entry = yield* readEntry(account, kind, id)
  if (entry.deleted) return yield* new ResourceMissing({ kind: kind.resourceKind, id, param: "id" })
  return entry
})
