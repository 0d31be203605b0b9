/**
 * Caches pages of lists as rows: the ids and versions of a page's documents. Their texts are in their account's cache
 * or in the journal.
 *
 * A page is valid as long as no document of its kind has changed since the version that it shows, durably or not. An
 * actor knows all changes that went through it, so a page is as new as a read by id. A page ends with its actor: after
 * a database has lost commits, the next actor may use their versions again.
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
  /** Incarnation of the actor that it was read through. */
  readonly incarnation: symbol
  readonly kind: string
  readonly version: number
}

/** The part of an actor that knows its changes. */
type ChangeTracker = Pick<Actor, "account" | "incarnation" | "isUnchanged">

/** Lists with bounds are not cached, so bounds are not part of the key. */
type PageQuery = Omit<ListQuery, "behind" | "before">

/** An absent field and an empty text have different keys. */
const keyOf = (account: AccountId, { kind, labels, limit, newerThan, olderThan, prefix }: PageQuery): string => {
  let text = ""
  for (const _ in labels) {
    text = JSON.stringify(labels)
    break
  }
  return `${account}\n${kind}\n${prefix}\n${newerThan}\n${olderThan}\n${limit}\n${text}`
}

/** Weighs a page in rows, plus one for the page itself. */
const weightOf = ({ page }: RowsPage): number => 1 + page.length

export class ListPages {
  /** Least recently used first. */
  readonly #pages = new Map<string, Kept>()
  readonly #rowsMax: number
  #rows = 0

  constructor(rowsMax: number = LIST_ROWS_MAX) {
    this.#rowsMax = rowsMax
  }

  get rows(): number {
    return this.#rows
  }

  get(actor: ChangeTracker, query: PageQuery): RowsPage | undefined {
    const key = keyOf(actor.account, query)
    const kept = this.#pages.get(key)
    if (kept === undefined) return undefined
    this.#remove(key, kept)
    if (kept.incarnation !== actor.incarnation || !actor.isUnchanged(kept.kind, kept.version)) return undefined
    this.#add(key, kept)
    return kept
  }

  /** Caches a page that was read when the views had this version of the account, or a newer one. */
  set(actor: ChangeTracker, query: PageQuery, version: number, { hasMore, page }: RowsPage): void {
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
