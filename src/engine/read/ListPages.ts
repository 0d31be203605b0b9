/**
 * Pages of lists in memory, as rows: which documents are on a page, and in which version. Their texts lie in their
 * account's own memory, or in the journal.
 *
 * A page is true as long as no document of its kind has changed since the version that it shows, durable or not. Each
 * actor knows that of the changes that went through it, so a page is as new as what it reads by id. It ends with its
 * actor: a database that has lost commits gives the next one their versions again.
 */
import type { Actor } from "../actor/Actor.ts"
import type { AccountId } from "../log/Document.ts"
import { LIST_ROWS_MAX } from "../process/Memory.ts"
import type { DocumentRow } from "../views/Projection.ts"
import type { ListQuery } from "../views/Views.ts"

export interface RowsPage {
  /** Newest first. */
  readonly page: ReadonlyArray<DocumentRow>
  readonly hasMore: boolean
}

interface Kept extends RowsPage {
  /** Of the actor that it was read through. */
  readonly incarnation: symbol
  readonly kind: string
  /** The account's version that it shows. */
  readonly version: number
}

/** Knows what has changed. */
type Knowing = Pick<Actor, "account" | "incarnation" | "isUnchanged">

/** Bounds are no part of the key: a list with bounds has no page here. */
type PageQuery = Omit<ListQuery, "behind" | "before">

/** What is left out is not the same as an empty text. */
const keyOf = (account: AccountId, { kind, labels, limit, newerThan, olderThan, prefix }: PageQuery): string => {
  let text = ""
  for (const _ in labels) {
    text = JSON.stringify(labels)
    break
  }
  return `${account}\n${kind}\n${prefix}\n${newerThan}\n${olderThan}\n${limit}\n${text}`
}

/** What a page without rows takes up counts as well. */
const weightOf = ({ page }: RowsPage): number => 1 + page.length

export class ListPages {
  /** What was used last comes last. */
  readonly #pages = new Map<string, Kept>()
  readonly #rowsMax: number
  #rows = 0

  constructor(rowsMax: number = LIST_ROWS_MAX) {
    this.#rowsMax = rowsMax
  }

  /** Rows of all pages, with one more for each. */
  get rows(): number {
    return this.#rows
  }

  /** The page, if it is here and true. */
  get(actor: Knowing, query: PageQuery): RowsPage | undefined {
    const key = keyOf(actor.account, query)
    const kept = this.#pages.get(key)
    if (kept === undefined) return undefined
    this.#remove(key, kept)
    if (kept.incarnation !== actor.incarnation || !actor.isUnchanged(kept.kind, kept.version)) return undefined
    this.#add(key, kept)
    return kept
  }

  /** Keeps a page that was read when the views showed this version of the account, or a newer one. */
  set(actor: Knowing, query: PageQuery, version: number, { hasMore, page }: RowsPage): void {
    if (!actor.isUnchanged(query.kind, version)) return
    const key = keyOf(actor.account, query)
    const before = this.#pages.get(key)
    if (before !== undefined) this.#remove(key, before)
    this.#add(key, { page, hasMore, incarnation: actor.incarnation, kind: query.kind, version })
    for (const [key, kept] of this.#pages) {
      if (this.#rows <= this.#rowsMax) return
      this.#remove(key, kept)
    }
  }

  #add(key: string, kept: Kept): void {
    this.#pages.set(key, kept)
    this.#rows += weightOf(kept)
  }

  #remove(key: string, kept: Kept): void {
    this.#pages.delete(key)
    this.#rows -= weightOf(kept)
  }
}
