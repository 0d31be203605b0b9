/** CSV cells: spreadsheets find no formula, and the text can be restored (semantics dashboard.files). */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { csvCell } from "../../src/dashboard/frame/CsvFile.ts"
import { cellsIn, textOf } from "./Csv.ts"

const PIECES = [
  ..."=+-@＝＋－＠;,\t|\r\n\"' x",
  "\u00a0",
  "\u200b",
  "\0",
  "=HYPERLINK(CONCAT(CHAR(104),A1))",
  "=cmd|' /C calc'!A0",
  ..."0123456789e",
  "0042",
  "1234567890123456",
  "12e3",
  "Müßig"
]
const text = Schema.Array(Schema.Union([Schema.Literals(PIECES), Schema.String])).check(Schema.isMaxLength(12))
const file = Schema.NonEmptyArray(Schema.NonEmptyArray(text).check(Schema.isMaxLength(4))).check(Schema.isMaxLength(4))

/** A cell without characters that a spreadsheet may skip before a sign. */
const trimmed = (cell: string): string => cell.replace(/^[\s"\p{C}]+/u, "")

describe("a CSV file", () => {
  it.prop(
    "has no cell that starts like a formula, with any separator",
    { file },
    ({ file }) => {
      const rows = file.map((row) => row.map((pieces) => pieces.join("")))
      const written = rows.map((row) => `${row.map(csvCell).join(",")}\r\n`).join("")
      for (const separator of [",", ";", "\t"]) {
        for (const cell of cellsIn(written, separator).flat()) {
          assert.notMatch(trimmed(cell), /^[=+\-@＝＋－＠]/u, JSON.stringify([separator, written]))
        }
      }
      assert.deepStrictEqual(
        cellsIn(written).map((row) => row.map(textOf)),
        rows
      )
    },
    { arbitrary: { runs: 500 } }
  )

  it.each(["0042", "007", "00", "1234567890123456", "12e3", "1E5", "'0042", "''1e5"])(
    "keeps the digits of %s, which a spreadsheet would alter",
    (text) => {
      assert.strictEqual(csvCell(text), `"'${text}"`)
      assert.strictEqual(textOf(`'${text}`), text)
    }
  )

  it.each(["0", "42", "0.50", "1.10", "123456789012345", "2026-11-27 04:53:47", "12.e", "e5", "0042 ", "x0042"])(
    "has %s as it is",
    (text) => assert.strictEqual(csvCell(text), `"${text}"`)
  )

  it.each([
    ["", '""'],
    ["Müßig", '"Müßig"'],
    ['a "b", c', '"a ""b"", c"'],
    ["=1+1", `"'=1+1"`],
    [" =1", `"' =1"`],
    ["\t=1", `"\t'=1"`],
    ["\n-1", `"\n'-1"`],
    ["＝1", `"'＝1"`],
    ["'=1", `"''=1"`],
    ["Ann;=HYPERLINK(A1);x", `"Ann;'=HYPERLINK(A1);x"`],
    ['x;"=1', `"x;'""=1"`],
    ["2026-03-09, +1", '"2026-03-09, +1"']
  ])("has a cell for %j", (text, cell) => {
    assert.strictEqual(csvCell(text), cell)
  })

  it.each(["\t", ";", "'", " ", '"', "=", "\n", "\u200b", "; "])("encodes a megabyte of %j quickly", (piece) => {
    const text = piece.repeat(500_000 / piece.length)
    assert.strictEqual(textOf(cellsIn(csvCell(text))[0]?.[0] ?? ""), text)
  })
})
