/** Reads documents of a kind outside of a transaction. Inside of one, `Transaction.get` and `findDocument` read. */
import { Effect } from "effect"
import { ResourceMissing } from "../../domain/Errors.ts"
import { Accounts, type Unavailable } from "../../engine/Accounts.ts"
import type { AccountId, Document, Identified, Kind, Tombstone } from "../../engine/log/Document.ts"
import type { Resource } from "./Documents.ts"

/** True for a document of this kind that is not deleted. */
export const isDocumentOf = <A extends Identified, H>(
  entry: Document | Tombstone | undefined,
  kind: Kind<A, H>
): entry is Document<A, H> => entry !== undefined && !entry.deleted && entry.kind === kind.name

/** Reads a document's newest state, or its tombstone; undefined if the id is missing or of another kind. */
export const readEntry = <A extends Identified, H>(account: AccountId, kind: Kind<A, H>, id: string) =>
  Effect.map(
    Accounts.use((accounts) => accounts.read(account, id)),
    (entry) => (entry?.kind === kind.name ? (entry as Document<A, H> | Tombstone) : undefined)
  )

/** Reads a document's newest state; undefined if the id is missing, deleted or of another kind. */
export const readDocument = <A extends Identified, H>(account: AccountId, kind: Kind<A, H>, id: string) =>
  Effect.map(
    Accounts.use((accounts) => accounts.read(account, id)),
    (entry) => (isDocumentOf(entry, kind) ? entry : undefined)
  )

/** Reads the object of the path, or its tombstone; fails with `ResourceMissing` (semantics requests.paths). */
export const requireEntry = Effect.fnUntraced(function* <A extends Identified, H>(
  account: AccountId,
  kind: Resource<A, H>,
  id: string
) {
  const entry = yield* readEntry(account, kind, id)
  return entry ?? (yield* new ResourceMissing({ kind: kind.resourceKind, id, param: "id" }))
})

/** Reads the document that a parameter refers to; `id` for the object of the path. */
export const requireDocument = <A extends Identified, H>(
  account: AccountId,
  kind: Resource<A, H>,
  id: string,
  param: string = "id"
): Effect.Effect<Document<A, H>, ResourceMissing | Unavailable, Accounts> =>
  Effect.flatMap(
    Accounts.use((accounts) => accounts.read(account, id)),
    (entry) =>
      isDocumentOf(entry, kind)
        ? Effect.succeed(entry)
        : Effect.fail(new ResourceMissing({ kind: kind.resourceKind, id, param }))
  )
