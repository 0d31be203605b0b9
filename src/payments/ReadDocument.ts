/** Reads documents of a kind outside of a transaction. Inside of one, `Transaction.get` and `findDocument` read. */
import { Effect } from "effect"
import { Accounts, type Unavailable } from "../engine/Accounts.ts"
import type { AccountId, Document, Identified, Kind, Tombstone } from "../engine/log/Document.ts"

/** True for a document of this kind that is not deleted. */
export const isDocumentOf = <A extends Identified, H>(
  entry: Document | Tombstone | undefined,
  kind: Kind<A, H>
): entry is Document<A, H> => entry !== undefined && !entry.deleted && entry.kind === kind.name

/** Reads a document's newest state; undefined if the id is missing, deleted or of another kind. */
export const readDocument = Effect.fnUntraced(function* <A extends Identified, H>(
  account: AccountId,
  kind: Kind<A, H>,
  id: string
): Effect.fn.Return<Document<A, H> | undefined, Unavailable, Accounts> {
  const entry = yield* Accounts.use((accounts) => accounts.read(account, id))
  return isDocumentOf(entry, kind) ? entry : undefined
})
