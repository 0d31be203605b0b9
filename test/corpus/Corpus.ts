/** Corpora: installations of released versions, on which the tests start this Till. `make.ts` makes them. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { PgClient, PgMigrator } from "@effect/sql-pg"
import { Effect, Layer, type Redacted, type Scope } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { gunzipSync } from "node:zlib"
import { migrations } from "../../src/postgres/Migrations.ts"

/** A POST under an idempotency key, and its response. */
export interface Exchange {
  readonly path: string
  readonly key: string
  readonly idempotencyKey: string
  readonly body: object
  readonly status: number
  /** The body's exact text. */
  readonly text: string
}

/** A webhook as it arrived. */
export interface ReceivedWebhook {
  /** The path of the endpoint's URL, without the slash. */
  readonly endpoint: string
  /** `evt_…` */
  readonly event: string
  /** Its exact text. */
  readonly body: string
}

export interface Corpus {
  /** When it was completed, in milliseconds. Repeated requests get their responses for a day from then on. */
  readonly at: number
  /** The content of the file `secret`. */
  readonly secret: string
  readonly publicUrl: string
  readonly keys: Readonly<Record<"secretTest" | "publishableTest" | "secretLive" | "publishableLive", string>>
  readonly exchanges: ReadonlyArray<Exchange>
  readonly received: ReadonlyArray<ReceivedWebhook>
  /** The rows of each table as `row_to_json` returns them; `effect_sql_migrations` has the tables' migrations. */
  readonly tables: Readonly<Record<string, ReadonlyArray<string>>>
}

/** The versions that have a corpus, oldest first. */
export const versions: ReadonlyArray<string> = fs
  .readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith(".json.gz"))
  .map((file) => file.slice(0, -".json.gz".length))
  .toSorted(new Intl.Collator("en", { numeric: true }).compare)

export const fileOf = (version: string): string => Path.join(import.meta.dirname, `${version}.json.gz`)

export const load = (version: string): Corpus => JSON.parse(gunzipSync(fs.readFileSync(fileOf(version))).toString())

/** Fills an empty database with the tables of a corpus, migrated to its version. */
export const restore = Effect.fnUntraced(function* (
  { tables: { effect_sql_migrations: done = [], ...tables } }: Corpus,
  url: Redacted.Redacted
): Effect.fn.Return<void, never, Scope.Scope> {
  const newest = Math.max(...done.map((row) => Number(JSON.parse(row).migration_id)))
  const earlier = Object.entries(migrations).filter(([name]) => Number.parseInt(name, 10) <= newest)
  const migrated = PgMigrator.layer({ loader: PgMigrator.fromRecord(Object.fromEntries(earlier)) })
  const client = PgClient.layer({ url, maxConnections: 1 })
  const insert = PgClient.PgClient.use((sql) =>
    Effect.forEach(Object.entries(tables), ([table, rows]) =>
      sql.unsafe(`INSERT INTO ${table} SELECT * FROM json_populate_recordset(NULL::${table}, $1::json)`, [
        `[${rows.join(",")}]`
      ])
    )
  )
  yield* Effect.orDie(
    insert.pipe(Effect.provide(migrated.pipe(Layer.provide(NodeServices.layer), Layer.provideMerge(client))))
  )
})
