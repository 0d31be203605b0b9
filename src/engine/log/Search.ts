/**
 * Search: what documents are found by, and what is looked for.
 *
 * A kind says which terms a document has, and which number it is found by in ranges (`Kind.search`). The views index
 * terms as numbers of 53 bits, which take Postgres a third of the work that texts do. Two terms may share a number, and
 * texts are found by their trigrams, so what the views find is what may match; whoever searches looks into the
 * documents.
 *
 * An index of the numbers themselves would cost every create more than all terms do. So a number is two terms as well:
 * that of the bucket it falls into, of which there are 128 per doubling, and that of a row of buckets. A range is the
 * terms of its rows and of the buckets at its ends, and the number stands beside them for what is in those.
 */
import type { Between, Created } from "./Created.ts"
import type { AccountId, Searchable } from "./Document.ts"

/** What a document is found by, as the views keep it. */
export interface SearchEntry {
  /** Ascending, each once. */
  readonly terms: ReadonlyArray<number>
  readonly measure: number | null
}

/** Documents that may be meant: all conditions hold. */
export interface Filter {
  /** Only the document with this id. */
  readonly id?: string
  /** It has all of these terms. */
  readonly all: ReadonlyArray<string>
  /** Of each group it has at least one. */
  readonly any: ReadonlyArray<ReadonlyArray<string>>
  /** It has none of these. */
  readonly none: ReadonlyArray<string>
  /** Its number is in this range, the ends included. */
  readonly measure?: { readonly from: number; readonly to: number }
  readonly created?: Created
}

/** A filter as the views are asked. */
export interface SearchQuery extends Between {
  readonly kind: string
  /** How the kind's ids begin. */
  readonly prefix: string
  readonly filter: Filter
  /** Strictly older than the document with this id. */
  readonly olderThan?: string
  /** 1 or more. */
  readonly limit: number
}

const BUCKETS_PER_DOUBLING = 128

/** Ascends with the number. */
const bucketOf = (measure: number): number => {
  let doublings = 0
  let rest = measure
  for (; rest >= 2 * BUCKETS_PER_DOUBLING; doublings++) rest = Math.floor(rest / 2)
  return doublings * BUCKETS_PER_DOUBLING + rest
}

const bucketTerm = (bucket: number): string => `#${bucket}`
/** Of the row that begins with a bucket. Postgres compares all terms that it is asked for, so they should be few. */
const rowTerm = (bucket: number): string => `##${bucket}`

/** The terms of which documents with a number in the range have one. */
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

/** What the views keep of a document. */
export const entryOf = (account: AccountId, { measure, terms }: Searchable): SearchEntry => {
  const numbers = terms.map((term) => termNumber(account, term))
  if (measure !== null) {
    const bucket = bucketOf(measure)
    numbers.push(termNumber(account, bucketTerm(bucket)))
    numbers.push(termNumber(account, rowTerm(bucket - (bucket % BUCKETS_PER_DOUBLING))))
  }
  return { terms: [...new Set(numbers)].toSorted((a, b) => a - b), measure }
}

/**
 * The number of an account's term: 53 bits, of an FNV-1a hash and of a polynomial, which do not fail alike. Accounts
 * share an index, and none is to find its way through what others have under the same word.
 */
export const termNumber = (account: AccountId, term: string): number => {
  const text = `${account}\u0000${term}`
  let fnv = 0x811c9dc5
  let polynomial = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    fnv = Math.imul(fnv ^ code, 0x01000193)
    polynomial = (Math.imul(polynomial, 31) + code) | 0
  }
  return (polynomial & 0x1fffff) * 2 ** 32 + (fnv >>> 0)
}

const TRIGRAM = 3

/** All that a text has of three characters in a row. A text that contains another has all that the other has. */
export const trigramsOf = (text: string): ReadonlyArray<string> => [
  ...new Set(Array.from({ length: Math.max(0, text.length - TRIGRAM + 1) }, (_, i) => text.slice(i, i + TRIGRAM)))
]

/** Says whether an entry is among those that the views are asked for. */
export const mayMatch = (account: AccountId, { measure, terms }: SearchEntry, filter: Filter): boolean => {
  const has = (term: string) => terms.includes(termNumber(account, term))
  const { from, to } = filter.measure ?? { from: -Infinity, to: Infinity }
  return (
    filter.all.every(has) &&
    filter.any.every((group) => group.some(has)) &&
    !filter.none.some(has) &&
    (filter.measure === undefined || (measure !== null && measure >= from && measure <= to))
  )
}
