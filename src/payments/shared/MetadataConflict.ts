/** Edits of metadata in a form must not overwrite later changes (semantics dashboard.editing). */
import { Effect } from "effect"
import { ParameterInvalid, type ResourceMissing } from "../../domain/Errors.ts"
import type { Metadata } from "../../domain/Metadata.ts"
import type { Identified } from "../../engine/log/Document.ts"
import type { Transaction } from "../../engine/actor/Transaction.ts"
import { findDocument, type Resource } from "./Documents.ts"

export type WithMetadata = Identified & { readonly metadata: Metadata }

/** Returns the value of a key; undefined if the metadata has no such key of its own. */
export const valueOf = (metadata: Metadata, key: string): string | undefined =>
  Object.hasOwn(metadata, key) ? metadata[key] : undefined

/** Fails with `ParameterInvalid` for a key whose value, as `seenAs` renders it, differs from the form's. */
export const requireUnchanged = Effect.fnUntraced(function* <A extends WithMetadata, H>(
  kind: Resource<A, H>,
  id: string,
  seen: ReadonlyMap<string, string>,
  seenAs: (value: string | undefined) => string
): Effect.fn.Return<void, ResourceMissing | ParameterInvalid, Transaction> {
  const { metadata } = (yield* findDocument(kind, id)).value
  for (const [key, value] of seen) {
    if (seenAs(valueOf(metadata, key)) === value) continue
    return yield* new ParameterInvalid({ param: `metadata[${key}]`, rule: "unchanged since this form was opened" })
  }
})
