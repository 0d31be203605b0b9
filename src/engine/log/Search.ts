/**
 * Search terms of documents, and filters over them.
 *
 * A kind defines the terms of a document, and the measure by which ranges find it (`Kind.search`). The views index
 * terms as hashes of 53 bits, which cost Postgres a third of the work of texts. Two terms may share a hash, and texts
 * are found by their trigrams, so the views return candidates and the caller checks each document.
 *
 * An index of the measures would cost every create more than all terms do. So a measure is also two terms: its bucket,
 * of which there are 128 per doubling, and its row of buckets. A range is the terms of its whole rows and of the
 * buckets at its ends; the stored measure decides within those buckets.
 */
import type { Between, Created } from "./Created.ts"
import type { AccountId, Searchable } from "./Document.ts"

/** The stored search data of a document. */
export interface SearchEntry {
  /** Hashes, ascending, without duplicates. */
  readonly terms: ReadonlyArray<number>
  readonly measure: number | null
}

/** Conditions, all of which must hold. Terms are those of the searched kind. */
export interface Filter {
  /** Only the document with this id. */
  readonly id?: string
  /** The document contains all of these terms. */
  readonly all: ReadonlyArray<string>
  /** The document contains at least one term of every group. */
  readonly any: ReadonlyArray<ReadonlyArray<string>>
  /** The document contains none of these terms. */
  readonly none: ReadonlyArray<string>
  /** The document's measure is in this range, inclusive. */
  readonly measure?: { readonly from: number; readonly to: number }
  readonly created?: Created
}

export interface SearchQuery extends Between {
  readonly kind: string
  readonly prefix: string
  readonly filter: Filter
  /** Strictly older than the document with this id. */
  readonly olderThan?: string
  /** 1 or more. */
  readonly limit: number
}

const BUCKETS_PER_DOUBLING = 128

/** Returns the bucket of a measure; buckets ascend with measures. */
const bucketOf = (measure: number): number => {
  let doublings = 0
  let rest = measure
  for (; rest >= 2 * BUCKETS_PER_DOUBLING; doublings++) rest = Math.floor(rest / 2)
  return doublings * BUCKETS_PER_DOUBLING + rest
}

const bucketTerm = (bucket: number): string => `#${bucket}`
/** The term of the row that begins with a bucket. Rows keep the terms of a range few: Postgres compares all of them. */
const rowTerm = (bucket: number): string => `##${bucket}`

/** Returns terms such that every document with a measure in the range has one of them. */
export const bucketTerms = ({ from, to }: NonNullable<Filter["measure"]>): ReadonlyArray<string> => {
  const [first, last] = [bucketOf(Math.max(from, 0)), bucketOf(Math.min(to, Number.MAX_SAFE_INTEGER))]
  const terms: Array<string> = []
  for (let bucket = first; bucket <= last;) {
    const isRow = bucket % BUCKETS_PER_DOUBLING === 0 && bucket + BUCKETS_PER_DOUBLING - 1 <= last
    terms.push(isRow ? rowTerm(bucket) : bucketTerm(bucket))
    bucket += isRow ? BUCKETS_PER_DOUBLING : 1
  }
  return terms
}

export const entryOf = (account: AccountId, kind: string, { measure, terms }: Searchable): SearchEntry => {
  const numberOf = termNumbers(account, kind)
  const count = terms.length
  // Typed arrays hold numbers without boxes, and sort without a comparison in JavaScript.
  const numbers = new Float64Array(measure === null ? count : count + 2)
  for (let i = 0; i < count; i++) numbers[i] = numberOf(terms[i]!)
  if (measure !== null) {
    const bucket = bucketOf(measure)
    numbers[count] = numberOf(bucketTerm(bucket))
    numbers[count + 1] = numberOf(rowTerm(bucket - (bucket % BUCKETS_PER_DOUBLING)))
  }
  numbers.sort()
  const distinct: Array<number> = []
  for (let i = 0; i < numbers.length; i++) if (i === 0 || numbers[i] !== numbers[i - 1]) distinct.push(numbers[i]!)
  return { terms: distinct, measure }
}

const FNV_BASIS = 0x811c9dc5
const FNV_PRIME = 0x01000193

const fnvOf = (text: string, from: number): number => {
  let fnv = from
  for (let i = 0; i < text.length; i++) fnv = Math.imul(fnv ^ text.charCodeAt(i), FNV_PRIME)
  return fnv
}

const polynomialOf = (text: string, from: number): number => {
  let polynomial = from
  for (let i = 0; i < text.length; i++) polynomial = (Math.imul(polynomial, 31) + text.charCodeAt(i)) | 0
  return polynomial
}

/**
 * Returns the hash of an account's terms of a kind to 53 bits, by FNV-1a and a polynomial, whose collisions are
 * unrelated. Account and kind are part of the hash because they share an index: no search reads others' entries of the
 * same term.
 */
export const termNumbers = (account: AccountId, kind: string): ((term: string) => number) => {
  const prefix = `${account}\u0000${kind}\u0000`
  const [fnv, polynomial] = [fnvOf(prefix, FNV_BASIS), polynomialOf(prefix, 0)]
  return (term) => (polynomialOf(term, polynomial) & 0x1fffff) * 2 ** 32 + (fnvOf(term, fnv) >>> 0)
}

const TRIGRAM = 3

/** Returns a text's trigrams. A text that contains another has all of its trigrams. */
export const trigramsOf = (text: string): ReadonlyArray<string> => [
  ...new Set(Array.from({ length: Math.max(0, text.length - TRIGRAM + 1) }, (_, i) => text.slice(i, i + TRIGRAM)))
]
