/** Tables with a link per row, and links from page to page. */
import { type Child, html, type Html } from "../../html/Html.ts"
import type { Visit } from "./Visit.ts"

export interface Column<Row> {
  readonly name: string
  readonly cell: (row: Row) => Child
  /** Alignment; `end` is for numbers. */
  readonly align?: "end"
  /** True for a text of any length: it takes the remaining width, on one line. */
  readonly long?: boolean
  /** True for a column that narrow screens leave out. */
  readonly wide?: boolean
}

export interface Table<Row> {
  /** Describes the table for screen readers, and visibly with `isCaptionSeen`. */
  readonly caption: string
  readonly isCaptionSeen?: boolean
  /** The first column carries the row's link. */
  readonly columns: ReadonlyArray<Column<Row>>
  readonly rows: ReadonlyArray<Row>
  readonly href?: (row: Row) => string
  /** A checkbox that selects the row, before the row's link. */
  readonly box?: (row: Row) => Html
  /** Shown instead of the table if it has no rows. */
  readonly empty: Child
}

const classOf = ({ align, long, wide }: Pick<Column<never>, "align" | "long" | "wide">): string =>
  [align === "end" ? "end" : "", long === true ? "long" : "", wide === true ? "wide" : ""].filter(Boolean).join(" ")

/**
 * On phones a row is shown as a block, which browsers do not treat as a table, so roles are explicit. Column headers
 * are hidden there: from the third cell on, the style sheet writes each column's name before the value.
 */
export const table = <Row>({ box, caption, columns, empty, href, isCaptionSeen, rows }: Table<Row>): Html => {
  const firstOf = (row: Row): First => ({ box: box?.(row), href: href?.(row) })
  return rows.length === 0
    ? html`<div class="empty">${empty}</div>`
    : html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}">
        <table role="table">
          <caption class="${isCaptionSeen === true ? "" : "unseen"}">
            ${caption}
          </caption>
          <thead role="rowgroup">
            <tr role="row">
              ${columns.map(
                (column) => html`<th scope="col" role="columnheader" class="${classOf(column)}">${column.name}</th>`
              )}
            </tr>
          </thead>
          <tbody role="rowgroup">
            ${rows.map(
              (row) =>
                html`<tr role="row">
                  ${columns.map((column, i) => cellOf(column, row, i === 0 ? firstOf(row) : {}))}
                </tr>`
            )}
          </tbody>
        </table>
      </div>`
}

/** Parts that only the first cell has. */
interface First {
  readonly box?: Html | undefined
  readonly href?: string | undefined
}

const cellOf = <Row>(column: Column<Row>, row: Row, { box, href }: First): Html => {
  const content = column.cell(row)
  return html`<td role="cell" class="${classOf(column)}" data-name="${column.name}">
    ${box}${href === undefined ? content : html`<a href="${href}">${content}</a>`}
  </td>`
}

/** A position in a list, newest first, from the query. */
export interface Cursor {
  readonly olderThan?: string
  readonly newerThan?: string
}

/** The format of cursors, which are ids. */
const ID = /^[0-9A-Za-z_]{1,64}$/

/** The requested position. An invalid cursor means the newest page. */
export const cursorIn = (query: URLSearchParams): Cursor => {
  const [after, before] = [query.get("after") ?? "", query.get("before") ?? ""]
  if (ID.test(after)) return { olderThan: after }
  return ID.test(before) ? { newerThan: before } : {}
}

/** Links to the newer and the older page; null if there is only one page. */
export const pageLinks = (
  { here, query }: Pick<Visit, "here" | "query">,
  rows: ReadonlyArray<{ readonly id: string }>,
  hasMore: boolean
): Child => {
  const { newerThan, olderThan } = cursorIn(query)
  const isOlder = newerThan !== undefined || hasMore
  const isNewer = olderThan !== undefined || (newerThan !== undefined && hasMore)
  if (rows.length === 0 || (!isOlder && !isNewer)) return null
  return links(
    isNewer && here({ before: rows[0]!.id, after: null }),
    isOlder && here({ after: rows.at(-1)!.id, before: null })
  )
}

const links = (newer: string | false, older: string | false): Child =>
  html`<nav class="pages" aria-label="Pages">
    ${newer === false ? html`<span>Newer</span>` : html`<a rel="prev" href="${newer}">Newer</a>`}
    ${older === false ? html`<span>Older</span>` : html`<a rel="next" href="${older}">Older</a>`}
  </nav>`

/** Number of previous pages that the address remembers. */
const TRAIL_MAX = 40

/** Links for search results. A search only continues to older ones, so the address keeps the trail before. */
export const searchPageLinks = (
  { here, query }: Pick<Visit, "here" | "query">,
  rows: ReadonlyArray<{ readonly id: string }>,
  hasMore: boolean
): Child => {
  const { olderThan } = cursorIn(query)
  const trail = (query.get("trail") ?? "").split(".").filter((id) => ID.test(id))
  if (olderThan === undefined && !hasMore) return null
  const textOf = (ids: ReadonlyArray<string>) => ids.slice(-TRAIL_MAX).join(".") || null
  return links(
    olderThan !== undefined && here({ after: trail.at(-1) ?? null, before: null, trail: textOf(trail.slice(0, -1)) }),
    hasMore &&
      here({
        after: rows.at(-1)!.id,
        before: null,
        trail: olderThan === undefined ? null : textOf([...trail, olderThan])
      })
  )
}
