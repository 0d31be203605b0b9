/**
 * What the views keep of a document beside its place in the journal: what it is found by, and what it counts as. It
 * derives from the document as it is today, so the journal does not have it.
 */
import type { Identified, Kind, Searchable } from "./Document.ts"
import type { TallyEntry } from "./Tallies.ts"
import { entriesOf } from "./Tallies.ts"

/** A kind says what derives from its documents, if anything does. */
export type Derivation<Value extends Identified = Identified> = Pick<Kind<Value>, "search" | "tallies">

export interface Derived {
  /** Null for a deleted document, and if its kind is not searched. */
  readonly search: Searchable | null
  /** What it counts as: of a kind that counts, a deleted document as nothing. Null for all others. */
  readonly tallies: ReadonlyArray<TallyEntry> | null
}

export const NOTHING_DERIVED: Derived = { search: null, tallies: null }

export const derives = ({ search, tallies }: Derivation<never>): boolean =>
  search !== undefined || tallies !== undefined

/** Throws if what a document counts as cannot be kept. */
export const derivedOf = <Value extends Identified>({ search, tallies }: Derivation<Value>, value: Value): Derived => ({
  search: search === undefined ? null : search(value),
  tallies: tallies === undefined ? null : entriesOf(tallies(value))
})

export const derivedOfDeleted = ({ tallies }: Derivation<never>): Derived =>
  tallies === undefined ? NOTHING_DERIVED : { search: null, tallies: entriesOf([]) }
