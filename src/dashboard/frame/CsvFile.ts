/** A list as a CSV file of any length, streamed page by page as the client reads. */
import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { Accounts, type Unavailable } from "../../engine/Accounts.ts"
import { type Child, html } from "../../html/Html.ts"
import type { Cursor } from "./Table.ts"
import { isNew, type Listed } from "./Queries.ts"
import { words } from "./Values.ts"
import { wallText } from "./TimeZones.ts"
import type { Visit } from "./Visit.ts"

const FILE_PAGE = 250

/** A column; a name and a cell with a time depend on the reader's time zone. */
export type CsvColumn<Row> = readonly [
  name: string | ((zone: string) => string),
  cell: (row: Row, zone: string) => string | null | undefined
]

export interface CsvFile<Row extends { readonly id: string }> {
  readonly name: string
  readonly columns: ReadonlyArray<CsvColumn<Row>>
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

/**
 * Texts that a spreadsheet would turn into another number: `0042` into 42, `12e3` into 12000, and a number of more than
 * 15 digits into a rounded one. Apostrophes may precede the digits.
 */
const ALTERED_NUMBER = /^(?='*(?:0\d+|\d{16,}|\d+e\d+)$)/iu

/**
 * A cell as in RFC 4180, with an apostrophe before each possible formula, and before digits that a spreadsheet would
 * alter (semantics dashboard.files).
 */
export const csvCell = (value: string | null | undefined): string =>
  `"${(value ?? "").replaceAll(FORMULAS, "'").replace(ALTERED_NUMBER, "'").replaceAll('"', '""')}"`

const lineOf = (cells: ReadonlyArray<string | null | undefined>): string => `${cells.map(csvCell).join(",")}\r\n`

/** Makes Excel read the file as UTF-8. */
const BYTE_ORDER_MARK = "\ufeff"

export const csvFile = Effect.fnUntraced(function* <Row extends { readonly id: string }>(
  { mode, zone }: Visit,
  { columns, name, read }: CsvFile<Row>
) {
  const linesOf = (rows: ReadonlyArray<Row>) =>
    rows.map((row) => lineOf(columns.map(([, cell]) => cell(row, zone)))).join("")
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
  const begin =
    BYTE_ORDER_MARK +
    lineOf(columns.map(([name]) => (typeof name === "string" ? name : name(zone)))) +
    linesOf(first.rows)
  return HttpServerResponse.stream(Stream.encodeText(Stream.concat(Stream.succeed(begin), rest)), {
    contentType: "text/csv; charset=utf-8",
    headers: {
      "cache-control": "no-store",
      "content-disposition": `attachment; filename="${name}-${mode}.csv"`,
      "x-content-type-options": "nosniff"
    }
  })
})

/** The column of times in Unix seconds: `Created (UTC)`, or `Created (Europe/Lisbon)`, in a form that Excel reads. */
export const createdColumn = <Row>(secondsIn: (row: Row) => number): CsvColumn<Row> => [
  (zone) => `Created (${zone})`,
  (row, zone) => wallText(zone, secondsIn(row))
]

/** A status or another name of the API in words: `partly_refunded` → `Partly refunded`. */
export const csvWords = (name: string | null | undefined): string | null =>
  name == null ? null : words(name).replace(/^./u, (first) => first.toUpperCase())

/** An object such as metadata as JSON; null if it is empty. */
export const csvJson = (value: Readonly<Record<string, string>>): string | null =>
  Object.keys(value).length === 0 ? null : JSON.stringify(value)

/** A link to the CSV file of a list, with all pages of it; null if the list has no objects yet. */
export const csvLink = (visit: Visit, path: `/${string}.csv`, rows: ReadonlyArray<unknown>): Child => {
  if (isNew(visit, rows)) return null
  const { after: _, before: __, done: ___, trail: ____, ...asked } = Object.fromEntries(visit.query)
  return html`<a class="button" href="${visit.to(path, asked)}" download="">Download CSV</a>`
}
