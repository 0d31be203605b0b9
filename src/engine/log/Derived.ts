/**
 * Data that the views derive from a document: its search terms and its tallies. It derives from the document in the
 * newest format, so the journal does not contain it.
 */
import type { Identified, Kind, Searchable } from "./Document.ts"
import type { TallyEntry } from "./Tallies.ts"
import { entriesOf } from "./Tallies.ts"

/** The part of a kind that defines its derived data. */
export type Derivation<Value extends Identified = Identified> = Pick<Kind<Value>, "search" | "tallies">

export interface Derived {
  /** Null for a deleted document, and for kinds without search. */
  readonly search: Searchable | null
  /** Empty for a deleted document; null for kinds without tallies. */
  readonly tallies: ReadonlyArray<TallyEntry> | null
}

export const NOTHING_DERIVED: Derived = { search: null, tallies: null }

export const derives = ({ search, tallies }: Derivation<never>): boolean =>
  search !== undefined || tallies !== undefined

/** Throws if a tally cannot be stored. */
export const derivedOf = <Value extends Identified>({ search, tallies }: Derivation<Value>, value: Value): Derived => ({
  search: search === undefined ? null : search(value),
  tallies: tallies === undefined ? null : entriesOf(tallies(value))
})

export const derivedOfDeleted = ({ tallies }: Derivation<never>): Derived =>
  tallies === undefined ? NOTHING_DERIVED : { search: null, tallies: entriesOf([]) }
