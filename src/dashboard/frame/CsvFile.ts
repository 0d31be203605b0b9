/** A list as a CSV file of any length, streamed page by page as the client reads. */
import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { Accounts, type Unavailable } from "../../engine/Accounts.ts"
import { type Child, html } from "../../html/Html.ts"
import type { Cursor } from "./Table.ts"
import { isNew, type Listed } from "./Queries.ts"
import type { Visit } from "./Visit.ts"

const FILE_PAGE = 250

export interface CsvFile<Row extends { readonly id: string }> {
  readonly name: string
  readonly columns: ReadonlyArray<readonly [name: string, cell: (row: Row) => string | null | undefined]>
  /** Reads a page of the list, newest first. */
  readonly read: (page: {
    readonly cursor: Cursor
    readonly limit: number
  }) => Effect.Effect<Listed<Row>, Unavailable, Accounts>
}

/**
 * Places where a spreadsheet could read a formula and run text that a payer or a merchant has written: an operator
 * sign, ASCII or full-width, at the start of a cell. Spreadsheets that separate columns by semicolon or tab ignore the
 * file's quotes, so a cell may also start after each of those characters and after a line break. White space, quotes
 * and invisible characters may precede the sign.
 */
const FORMULAS = /(?<=^|[;\t|\r\n])(?=(?:(?![;\t|\r\n])[\s"'\p{C}])*[=+\-@＝＋－＠])/gu

/** A cell as in RFC 4180, with an apostrophe before each possible formula (semantics dashboard.files). */
export const csvCell = (value: string | null | undefined): string =>
  `"${(value ?? "").replaceAll(FORMULAS, "'").replaceAll('"', '""')}"`

const lineOf = (cells: ReadonlyArray<string | null | undefined>): string => `${cells.map(csvCell).join(",")}\r\n`

/** Makes Excel read the file as UTF-8. */
const BYTE_ORDER_MARK = "\ufeff"

export const csvFile = Effect.fnUntraced(function* <Row extends { readonly id: string }>(
  { mode }: Visit,
  { columns, name, read }: CsvFile<Row>
) {
  const linesOf = (rows: ReadonlyArray<Row>) => rows.map((row) => lineOf(columns.map(([, cell]) => cell(row)))).join("")
  // If the first read fails, the browser gets an error page; a later failure aborts the download.
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

/** A time in Unix seconds as an ISO text in UTC. */
export const csvTime = (seconds: number): string => new Date(seconds * 1000).toISOString()

/** An object such as metadata as JSON; null if it is empty. */
export const csvJson = (value: Readonly<Record<string, string>>): string | null =>
  Object.keys(value).length === 0 ? null : JSON.stringify(value)

/** A link to the CSV file of a list, with all pages of it; null if the list has no objects yet. */
export const csvLink = (visit: Visit, path: `/${string}.csv`, rows: ReadonlyArray<unknown>): Child => {
  if (isNew(visit, rows)) return null
  const { after: _, before: __, done: ___, trail: ____, ...asked } = Object.fromEntries(visit.query)
  return html`<a class="button" href="${visit.to(path, asked)}" download="">Download CSV</a>`
}
