/** Tables as text. The first row is the head; all columns but the first are right-aligned. */

type Row = ReadonlyArray<string>

/** Formats for the terminal: columns padded to their widest cell. */
export const textLines = (rows: ReadonlyArray<Row>): ReadonlyArray<string> => {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((cells) => cells[column]!.length)))
  return rows.map((cells) =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
      .join("  ")
      .trimEnd()
  )
}

const markdownRow = (cells: Row): string => `| ${cells.join(" | ")} |`

export const markdown = ([head, ...rows]: ReadonlyArray<Row>): string =>
  [head!, head!.map((_, column) => (column === 0 ? "---" : "---:")), ...rows].map(markdownRow).join("\n")
