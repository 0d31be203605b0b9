/**
 * `till backup` copies the journal and the secret into a folder, beside the running service (semantics
 * backups.contents).
 */
import { Console, Effect } from "effect"
import * as app from "../app.ts"
import * as Interruption from "./Interruption.ts"
import * as ProgressLine from "./ProgressLine.ts"

const grouped = new Intl.NumberFormat("en-US")

/** Formats Unix milliseconds as `2026-11-21T04:00:00.123Z`. */
const timeOf = (millis: number): string => new Date(millis).toISOString()

/** Backs the installation up into a folder, and prints what it contains. */
export const backup = Effect.fnUntraced(function* (folder: string, mode: app.BackupMode, json: boolean) {
  const work = ProgressLine.withProgress(app.backup(folder, mode), process.stderr)
  const { accounts, added, at, bytes, records } = yield* Interruption.failing(work)
  if (json) return yield* Console.log(JSON.stringify({ folder, added, records, accounts, bytes, until: timeOf(at) }))
  yield* Console.log(
    `Backed up ${grouped.format(added)} new records (${grouped.format(records)} in total, from ${accounts} accounts, ` +
      `${grouped.format(Math.ceil(bytes / 1000))} kB) to ${folder}, up to ${timeOf(at)}, with the installation's secret.`
  )
})
