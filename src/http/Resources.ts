/** Objects by their id in the path (semantics T16). */
import { Effect } from "effect"
import type { ResourceKind } from "../domain/Errors.ts"
import { ResourceMissing } from "../domain/Errors.ts"
import { Accounts } from "../engine/Accounts.ts"
import type { AccountId, Document, Identified, Kind, Tombstone } from "../engine/Document.ts"

/** The newest state of an object, or what is left of it. An id of another kind does not exist. */
export const readEntry = Effect.fnUntraced(function* <A extends Identified, H>(
  account: AccountId,
  kind: Kind<A, H>,
  kindName: ResourceKind,
  id: string
) {
  const entry = yield* Accounts.use((accounts) => accounts.read(account, id))
  if (entry?.kind !== kind.name) return yield* new ResourceMissing({ kind: kindName, id, param: "id" })
  return entry as Document<A, H> | Tombstone
})

/** The newest state of an object that is not deleted. */
export const readDocument = Effect.fnUntraced(function* <A extends Identified, H>(
  account: AccountId,
  kind: Kind<A, H>,
  kindName: ResourceKind,
  id: string
) {
  const entry = yield* readEntry(account, kind, kindName, id)
  if (entry.deleted) return yield* new ResourceMissing({ kind: kindName, id, param: "id" })
  return entry
})
