/** Anchors in Postgres, and their mark in the data folder. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { type Anchor, AnchorStore, type Mark } from "../engine/verify/Anchors.ts"
import { StorageFailure } from "../engine/log/Journal.ts"
import { writeAtomically } from "./embedded/DataFolder.ts"
import { readIfThere } from "./embedded/OwnFiles.ts"
import { bigint, execute } from "./Rows.ts"

interface Row {
  readonly sequence: bigint
  readonly at: bigint
  readonly heads: string
  readonly signature: string
}

const toAnchor = ({ at, sequence, ...row }: Row): Anchor => ({ ...row, sequence: Number(sequence), at: Number(at) })

const inFolder = <A>(work: () => A) => Effect.try({ try: work, catch: (cause) => new StorageFailure({ cause }) })

const toMark = (text: string): Mark => {
  const [sequence = "", signature = ""] = text.trim().split(" ")
  return { sequence: Number(sequence), signature }
}

const fileIn = (dataFolder: string): string => Path.join(dataFolder, "anchor")

/** Removes the mark, for a database that was reset to an earlier state on purpose. */
export const forget = (dataFolder: string) => inFolder(() => fs.rmSync(fileIn(dataFolder), { force: true }))

export const layer = (dataFolder: string): Layer.Layer<AnchorStore, never, PgClient.PgClient> =>
  Layer.effect(
    AnchorStore,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const file = fileIn(dataFolder)
      return AnchorStore.of({
        read: (after, limit) =>
          execute(
            sql<Row>`SELECT sequence, at, heads, signature FROM anchors
              WHERE sequence > ${bigint(after)} ORDER BY sequence LIMIT ${limit}`,
            (rows) => rows.map(toAnchor)
          ),
        append: ({ at, heads, sequence, signature }) =>
          execute(
            sql`INSERT INTO anchors (sequence, at, heads, signature)
              VALUES (${bigint(sequence)}, ${bigint(at)}, ${heads}, ${signature})
              ON CONFLICT DO NOTHING RETURNING 1`,
            (rows) => rows.length > 0
          ),
        // Skips from account to account along the primary key, as `JournalPostgres` does for the list of accounts.
        heads: execute(
          sql<{ account: string; version: bigint; hash: string }>`WITH RECURSIVE walk AS (
              (SELECT account FROM journal ORDER BY account LIMIT 1)
              UNION ALL
              SELECT (SELECT j.account FROM journal j WHERE j.account > walk.account ORDER BY j.account LIMIT 1)
              FROM walk WHERE walk.account IS NOT NULL
            ) SELECT walk.account, version, encode(hash, 'hex') AS hash FROM walk, LATERAL (
              SELECT version, hash FROM journal j WHERE j.account = walk.account ORDER BY version DESC LIMIT 1
            ) AS newest`,
          (rows) => rows.map(({ account, hash, version }) => ({ account, version: Number(version), hash }))
        ),
        mark: inFolder(() => {
          const text = readIfThere(file)
          return text === undefined ? undefined : toMark(text)
        }),
        setMark: ({ sequence, signature }) =>
          inFolder(() => {
            // Another process with the same folder may have written the mark of a later anchor.
            const text = readIfThere(file)
            if (text !== undefined && toMark(text).sequence > sequence) return
            writeAtomically(file, `${sequence} ${signature}\n`)
          })
      })
    })
  )
