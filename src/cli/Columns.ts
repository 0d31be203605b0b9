/** Tables on a terminal. */

/** Renders rows as text, with cells padded to the widest of their column. */
export const columns = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]!.length))) ?? []
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join("  ")
        .trimEnd()
    )
    .join("\n")
}

/** Formats Unix seconds as `2026-11-21T04:00:00Z`. */
export const timeOf = (seconds: number): string => new Date(seconds * 1000).toISOString().replace(/\.\d+/u, "")
