/** Tables whose rows lead somewhere, and the way from page to page. */
import type { Child, Html } from "../../html/Html.ts"
import { html } from "../../html/Html.ts"
import type { Visit } from "./Visit.ts"

export interface Column<Row> {
  readonly name: string
  readonly cell: (row: Row) => Child
  /** Where it stands in its column; `end` is for numbers. */
  readonly align?: "end"
  /** True for a text of any length: it takes the room that the others leave, on one line. */
  readonly long?: boolean
  /** True for what is left out where there is little room. */
  readonly wide?: boolean
}

export interface Table<Row> {
  /** Says what is in it, for those who hear the page, or for everybody. */
  readonly caption: string
  readonly isCaptionSeen?: boolean
  /** The first column has the link of each row. */
  readonly columns: ReadonlyArray<Column<Row>>
  readonly rows: ReadonlyArray<Row>
  readonly href?: (row: Row) => string
  /** Stands before a row's link, and is no part of it: a box to choose the row by. */
  readonly box?: (row: Row) => Html
  /** Stands in its place if there are no rows. */
  readonly empty: Child
}

const classOf = ({ align, long, wide }: Pick<Column<never>, "align" | "long" | "wide">): string =>
  [align === "end" ? "end" : "", long === true ? "long" : "", wide === true ? "wide" : ""].filter(Boolean).join(" ")

/**
 * On a phone each row is a block of lines, and no table to the browser any more, so the roles are written down. The
 * names of the columns are not seen there: from the third cell on, the style sheet writes them before the values.
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

/** What only the first cell of a row has. */
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

/** A page of a list, newest first, as the address names it. */
export interface Cursor {
  readonly olderThan?: string
  readonly newerThan?: string
}

/** Ids are all that a cursor can be. */
const ID = /^[0-9A-Za-z_]{1,64}$/

/** The page that the query asks for. A cursor that is none begins at the newest. */
export const cursorIn = (query: URLSearchParams): Cursor => {
  const [after, before] = [query.get("after") ?? "", query.get("before") ?? ""]
  if (ID.test(after)) return { olderThan: after }
  return ID.test(before) ? { newerThan: before } : {}
}

/** Links to the pages before and behind the one of `rows`. Nothing where there is one page only. */
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

/** An address names so many of the pages on the way to this one. */
const TRAIL_MAX = 40

/** The same of what a search finds, which goes from newer to older only: the address has the way to this page in it. */
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
