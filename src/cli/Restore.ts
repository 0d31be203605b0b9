/**
 * `till restore` creates an installation from a backup, complete or up to an earlier time (semantics backups.restore).
 */
import { Console, Effect } from "effect"
import * as app from "../app.ts"
import * as Interruption from "./Interruption.ts"
import * as ProgressLine from "./ProgressLine.ts"

const grouped = new Intl.NumberFormat("en-US")

/** Restores the records of a backup up to a time, in Unix milliseconds, and prints what was restored. */
export const restore = Effect.fnUntraced(function* (
  folder: string,
  {
    erasures,
    into,
    json,
    until
  }: {
    readonly erasures: string | undefined
    readonly into: string | undefined
    readonly until: number | undefined
    readonly json: boolean
  }
) {
  const url = into === undefined ? undefined : yield* app.databaseUrlOf("--into", into)
  const work = app.restore(folder, { until, into: url, erasures })
  const { accounts, at, erased, records, secretFile } = yield* Interruption.failing(
    ProgressLine.withProgress(work, process.stderr)
  )
  const restoredUntil = new Date(at).toISOString()
  if (json) {
    return yield* Console.log(
      JSON.stringify({ folder, records, accounts, erased, until: restoredUntil, secret_file: secretFile })
    )
  }
  yield* Console.log(`Restored ${grouped.format(records)} records from ${accounts} accounts, up to ${restoredUntil}.`)
  yield* Console.log(
    secretFile === null
      ? "The backup is complete. Its origin was not checked, because the only secret was the backup's own."
      : `The backup is complete, and was made with the secret in ${secretFile}.`
  )
  if (erased > 0) {
    const people = erased === 1 ? "1 person" : `${grouped.format(erased)} people`
    yield* Console.log(
      `The data of ${people} is erased again. \`till purge\` removes its remains from the files of the database.`
    )
  }
})
