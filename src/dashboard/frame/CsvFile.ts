/** What a list shows as a CSV file, of any length: read page by page, as fast as it is taken. */
import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { Accounts } from "../../engine/Accounts.ts"
import type { Unavailable } from "../../engine/Accounts.ts"
import type { Child } from "../../html/Html.ts"
import { html } from "../../html/Html.ts"
import type { Cursor } from "./Table.ts"
import type { Listed } from "./Queries.ts"
import { isNew } from "./Queries.ts"
import type { Visit } from "./Visit.ts"

/** Rows that are in memory at once. */
const FILE_PAGE = 250

export interface CsvFile<Row extends { readonly id: string }> {
  /** Begins the name of the file. */
  readonly name: string
  readonly columns: ReadonlyArray<readonly [name: string, cell: (row: Row) => string | null | undefined]>
  /** A page of the list, newest first. */
  readonly read: (page: {
    readonly cursor: Cursor
    readonly limit: number
  }) => Effect.Effect<Listed<Row>, Unavailable, Accounts>
}

/**
 * The places where a spreadsheet could find a formula, and run what a payer or a merchant has written: a sign, or its
 * full-width form, at which a cell begins. Where a reader's separator is a semicolon or a tab, the file's quotes do not
 * hold a cell together, so a cell may begin behind each of those and behind a line's end as well. White space, quotes
 * and characters that are not seen may stand before the sign.
 */
const FORMULAS = /(?<=^|[;\t|\r\n])(?=(?:(?![;\t|\r\n])[\s"'\p{C}])*[=+\-@＝＋－＠])/gu

/**
 * A cell as RFC 4180 has it, always in quotes, with an apostrophe where a formula could begin. Whoever takes one
 * apostrophe away from each such place has the text again (semantics 9.70).
 */
export const csvCell = (value: string | null | undefined): string =>
  `"${(value ?? "").replaceAll(FORMULAS, "'").replaceAll('"', '""')}"`

const lineOf = (cells: ReadonlyArray<string | null | undefined>): string => `${cells.map(csvCell).join(",")}\r\n`

/** Begins a file, so that Excel reads it as UTF-8. */
const BYTE_ORDER_MARK = "\ufeff"

export const csvFile = Effect.fnUntraced(function* <Row extends { readonly id: string }>(
  { mode }: Visit,
  { columns, name, read }: CsvFile<Row>
) {
  const linesOf = (rows: ReadonlyArray<Row>) => rows.map((row) => lineOf(columns.map(([, cell]) => cell(row)))).join("")
  // What fails here is answered with a page; later on, the connection is cut, and the browser says so.
  const first = yield* read({ cursor: {}, limit: FILE_PAGE })
  const accounts = yield* Accounts
  const rest = Stream.unfold(first, ({ hasMore, rows }) =>
    hasMore
      ? Effect.map(
          read({ cursor: { olderThan: rows.at(-1)!.id }, limit: FILE_PAGE }),
          (next) => [linesOf(next.rows), next] as const
        )
      : Effect.succeed(undefined)
  ).pipe(Stream.provideService(Accounts, accounts))
  const begin = BYTE_ORDER_MARK + lineOf(columns.map(([name]) => name)) + linesOf(first.rows)
  return HttpServerResponse.stream(Stream.encodeText(Stream.concat(Stream.succeed(begin), rest)), {
    contentType: "text/csv; charset=utf-8",
    headers: {
      "cache-control": "no-store",
      "content-disposition": `attachment; filename="${name}-${mode}.csv"`,
      "x-content-type-options": "nosniff"
    }
  })
})

/** A time in Unix seconds, in UTC. */
export const csvTime = (seconds: number): string => new Date(seconds * 1000).toISOString()

/** What is no text, such as metadata; nothing where it is empty. */
export const csvJson = (value: Readonly<Record<string, string>>): string | null =>
  Object.keys(value).length === 0 ? null : JSON.stringify(value)

/** Leads to the file of all that a list shows, on every page; nothing where there is nothing yet. */
export const csvLink = (visit: Visit, path: `/${string}.csv`, rows: ReadonlyArray<unknown>): Child => {
  if (isNew(visit, rows)) return null
  const { after: _, before: __, done: ___, trail: ____, ...asked } = Object.fromEntries(visit.query)
  return html`<a class="button" href="${visit.to(path, asked)}" download="">Download CSV</a>`
}
