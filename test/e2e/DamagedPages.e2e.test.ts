/**
 * Pages of the database's files are overwritten while it is stopped, as a failing disk does. `till verify` names the
 * record or table that cannot be read, with Postgres' own reason.
 */
import { PgConnection } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as Path from "node:path"
import { reach } from "../../src/postgres/embedded/EmbeddedPostgres.ts"
import { startTill, till, type TillProcess } from "../support/TillProcess.ts"

const PAGE_BYTES = 8192
const CUSTOMERS = 120
/** Too large for its row's page, also when compressed. */
const LARGE = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`key_${i}`, randomBytes(240).toString("hex")]))

/** A page of a file in Postgres' data folder, and the line that `till verify` must print. */
interface Damage {
  readonly what: string
  readonly file: string
  readonly page: number
  readonly named: RegExp
}

interface Place {
  readonly file: string
  readonly page: number
}

const overwritten = async (server: TillProcess, { file, page }: Place, use: () => Promise<void>): Promise<void> => {
  const path = Path.join(server.folder, "postgres", "data", file)
  const whole = fs.readFileSync(path)
  const damaged = Buffer.from(whole)
  damaged.fill(0x5a, page * PAGE_BYTES + PAGE_BYTES / 2, page * PAGE_BYTES + PAGE_BYTES / 2 + 512)
  fs.writeFileSync(path, damaged)
  try {
    await use()
  } finally {
    fs.writeFileSync(path, whole)
  }
}

/** Finds the pages of a middle record, a large one, the first one, and of rows of the views. */
const damagesOf = (server: TillProcess): Effect.Effect<ReadonlyArray<Damage>> =>
  Effect.gen(function* () {
    const { url } = yield* reach({ dataFolder: server.folder })
    const connection = yield* PgConnection.make({ url })
    const one = <Row>(statement: string) => Effect.map(connection.query(statement), ({ rows }) => rows[0] as Row)
    const pageOf = (ctid: string) => `(split_part(trim('()' from (${ctid})::text), ',', 1))::int`
    const file = (table: string) => `pg_relation_filepath('${table}')`
    const account = "account LIKE 'mer_%:test'"
    const middle = yield* one<Place & { readonly version: string }>(`WITH middle AS (
        SELECT ${pageOf("ctid")} AS page FROM journal WHERE ${account} AND version = ${CUSTOMERS / 2})
      SELECT ${file("journal")} AS file, page, (SELECT min(version)::text FROM journal
        WHERE ${account} AND ${pageOf("ctid")} = middle.page) AS version FROM middle`)
    const large = yield* one<Place & { readonly version: string }>(`SELECT
        (SELECT max(version)::text FROM journal WHERE ${account}) AS version,
        pg_relation_filepath(reltoastrelid) AS file,
        (pg_relation_size(reltoastrelid) / ${PAGE_BYTES} - 1)::int AS page
      FROM pg_class WHERE oid = 'journal'::regclass`)
    const rows = yield* one<Place>(`SELECT ${file("objects")} AS file, ${pageOf("ctid")} AS page FROM objects
      WHERE ${account} ORDER BY id OFFSET ${CUSTOMERS / 2} LIMIT 1`)
    const invalid = ({ file, page }: Place) => `: invalid page in block ${page} of relation "?${file}"?`
    return [
      {
        what: "a page of records",
        ...middle,
        named: new RegExp(
          `^till: Record ${middle.version} of account mer_\\w+:test cannot be read${invalid(middle)}\n$`
        )
      },
      {
        what: "a page of a large record's bytes",
        ...large,
        named: new RegExp(`^till: Record ${large.version} of account mer_\\w+:test cannot be read${invalid(large)}\n$`)
      },
      {
        what: "the page that the list of accounts begins with",
        file: middle.file,
        page: 0,
        named: new RegExp(
          `^till: The accounts of the journal cannot be listed${invalid({ file: middle.file, page: 0 })}\n`
        )
      },
      {
        what: "a page of the views",
        ...rows,
        named: new RegExp(
          `till: Of the documents of account mer_\\w+:test, the one behind \\w+ cannot be read${invalid(rows)}\n`
        )
      }
    ]
  }).pipe(Effect.scoped, Effect.orDie)

describe("till verify on a database with a damaged page", () => {
  it.live("names unreadable records and tables, with Postgres' reason", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      yield* Effect.promise(async () => {
        for (let i = 0; i < CUSTOMERS; i++) await server.post("/v1/customers", { name: `Customer ${i}`.repeat(12) })
        await server.post("/v1/customers", { metadata: LARGE })
      })
      const damages = yield* damagesOf(server)
      yield* Effect.promise(async () => {
        assert.strictEqual((await server.kill("SIGTERM")).code, 0)
        for (const { named, what, ...place } of damages) {
          await overwritten(server, place, async () => {
            const { code, stderr, stdout } = await till(["verify"], server.variables)
            assert.match(stderr, named, what)
            assert.strictEqual(stdout, "", what)
            assert.strictEqual(code, 1, what)
          })
        }
        const { code, stderr } = await till(["verify"], server.variables)
        assert.strictEqual(code, 0, stderr)
      })
    })
  )
})
