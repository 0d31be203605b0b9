/** Merchants and keys on a terminal: one line each, in columns. */
import type { Answer } from "../app.ts"

type Merchant = Answer["merchants"][number]
type ApiKey = Answer["keys"][number]

/** `2026-11-21T04:00:00Z` of Unix seconds. */
const timeOf = (seconds: number): string => new Date(seconds * 1000).toISOString().replace(".000", "")

const columns = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
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

export const merchantLines = (merchants: ReadonlyArray<Merchant>): string =>
  columns(merchants.map(({ api_version, created, id, name }) => [id, api_version, timeOf(created), name]))

/** Keys as anybody may see them. */
export const keyLines = (keys: ReadonlyArray<ApiKey>): string =>
  columns(
    keys.map(({ created, expires_at, id, last4, merchant_id, prefix, status }) => [
      id,
      merchant_id,
      `${prefix}…${last4}`,
      timeOf(created),
      expires_at === null || status === "expired" ? status : `${status} until ${timeOf(expires_at)}`
    ])
  )

/** New keys in full, which is their only time. */
export const newKeyLines = (keys: ReadonlyArray<ApiKey>): string => {
  const rows = keys.map(({ id, livemode, secret = "", type }) => [
    `  ${type === "secret" ? "Secret" : "Publishable"} key, ${livemode ? "live" : "test"} mode`,
    id,
    secret
  ])
  return `Shown this once; only hashes are stored:\n${columns(rows)}`
}
