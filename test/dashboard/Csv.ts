/**
 * Parses CSV like a spreadsheet: quotes group a cell that starts with one, and text after the closing quote belongs to
 * the cell.
 */
export const cellsIn = (text: string, separator = ","): ReadonlyArray<ReadonlyArray<string>> => {
  const rows: Array<Array<string>> = []
  let row: Array<string> = []
  let at = 0
  while (at < text.length) {
    let cell = ""
    if (text[at] === '"') {
      for (at++; at < text.length && (text[at] !== '"' || text[at + 1] === '"'); at++) {
        cell += text[at]
        if (text[at] === '"') at++
      }
      at++
    }
    while (at < text.length && text[at] !== separator && text[at] !== "\n" && text[at] !== "\r") cell += text[at++]
    row.push(cell)
    if (text[at] === separator) {
      at++
      continue
    }
    at += text.startsWith("\r\n", at) ? 2 : 1
    rows.push(row)
    row = []
  }
  return rows
}

/**
 * Restores the text of a cell (semantics dashboard.files) by removing one apostrophe at each possible formula, and
 * before digits that a spreadsheet would alter.
 */
export const textOf = (cell: string): string => {
  if (/^'+(?:0\d+|\d{16,}|\d+e\d+)$/iu.test(cell)) return cell.slice(1)
  let text = ""
  let isBegin = true
  for (let at = 0; at < cell.length; at++) {
    if (!(isBegin && cell[at] === "'" && isBeforeSign(cell, at + 1))) text += cell[at]
    isBegin = SEPARATORS.has(cell[at]!)
  }
  return text
}

const SEPARATORS: ReadonlySet<string> = new Set([";", "|", "\t", "\r", "\n"])

/** True if a sign follows, possibly after invisible characters and quotes. */
const isBeforeSign = (cell: string, from: number): boolean => {
  for (const character of cell.slice(from)) {
    if (/[=+\-@＝＋－＠]/u.test(character)) return true
    if (SEPARATORS.has(character) || !/[\s"'\p{C}]/u.test(character)) return false
  }
  return false
}
