/**
 * A database that refuses writes takes a process out of a balancer's rotation, with the reason, and writes that succeed
 * bring it back, though no client sends one (semantics storage.read_only). A trigger refuses with the messages and
 * codes that Postgres has for full disks and similar errors.
 */
import { PgConnection } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { freshDatabase } from "../support/Postgres.ts"
import { pause, startTill, until } from "../support/TillProcess.ts"

const REFUSALS = [
  ["53100", 'could not extend file "base/5/16391": No space left on device', "The disk of the database is full."],
  ["25006", "cannot execute INSERT in a read-only transaction", "The database is read-only, as a standby is."],
  ["42501", "permission denied for table journal", "The database does not let Till write."],
  [
    "XX000",
    'could not extend file "base/5/16391": Disk quota exceeded',
    "The database has used up its quota of the disk."
  ],
  ["58030", 'could not write to file "base/5/16391": Input/output error', "The disk of the database fails."]
] as const

const refuse = (sqlState: string, message: string) => `CREATE OR REPLACE FUNCTION refuse() RETURNS trigger AS
  $$ BEGIN RAISE EXCEPTION '${message}' USING ERRCODE = '${sqlState}'; END $$ LANGUAGE plpgsql;
  CREATE TRIGGER refuse BEFORE INSERT ON journal FOR EACH ROW EXECUTE FUNCTION refuse()`

describe("a database that refuses writes", () => {
  it.live("is no database for requests, for the reason that readiness and one line of the log name", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const connection = yield* Effect.orDie(PgConnection.make({ url }))
      const server = yield* startTill({ variables: { DATABASE_URL: Redacted.value(url) } })
      yield* Effect.promise(async () => {
        const sql = async (statements: string) => {
          for (const statement of statements.split(/;\n/u)) {
            await Effect.runPromise(Effect.orDie(connection.queryValues(statement)))
          }
        }
        const readiness = async () => {
          const { body, status } = await server.request("GET", "/readyz", { key: null })
          return { status, body }
        }
        const create = async (name: string) =>
          (await server.request("POST", "/v1/customers", { body: { name }, idempotencyKey: name })).status
        const { id } = await server.post("/v1/customers", { name: "before" })
        for (const [sqlState, message, reason] of REFUSALS) {
          await sql(refuse(sqlState, message))
          for (let i = 0; i < 5; i++) assert.strictEqual(await create(`${sqlState} ${i}`), 503)
          // Longer than the pause between two tries.
          for (let i = 0; i < 4; i++) {
            assert.deepStrictEqual(await readiness(), { status: 503, body: { status: "unavailable", reason } })
            await pause(400)
          }
          assert.strictEqual((await server.get(`/v1/customers/${id}`)).name, "before")
          await sql("DROP TRIGGER refuse ON journal")
          await until("it is ready again", async () => (await readiness()).status === 200)
          assert.deepStrictEqual((await readiness()).body, { status: "ok" })
          assert.strictEqual(await create(`${sqlState} 0`), 200)
        }
        const lines = server.stderr.split("\n").filter((line) => /"level":"(?:ERROR|FATAL)"/u.test(line))
        assert.lengthOf(lines, 1, lines.join("\n"))
        assert.include(lines[0], "Nothing can be written: The disk of the database is full.")
        assert.include(lines[0], "No space left on device")
        assert.include(server.stderr, "The database takes writes again")
        const { data } = await server.get("/v1/customers?limit=100")
        assert.lengthOf(data, 1 + REFUSALS.length)
        const rows = await Effect.runPromise(connection.queryValues("SELECT FROM journal WHERE account = 'probe'"))
        assert.isEmpty(rows)
      })
    })
  )

  it.live("for a reason of one record's own goes on to be one for others", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const connection = yield* Effect.orDie(PgConnection.make({ url }))
      const server = yield* startTill({ variables: { DATABASE_URL: Redacted.value(url) } })
      yield* Effect.promise(async () => {
        for (const statement of refuse("22012", "division by zero").split(/;\n/u)) {
          await Effect.runPromise(Effect.orDie(connection.queryValues(statement)))
        }
        assert.strictEqual((await server.request("POST", "/v1/customers", { idempotencyKey: "one" })).status, 503)
        assert.strictEqual((await server.request("GET", "/readyz", { key: null })).status, 200)
        assert.include(server.stderr, "A flush of the journal failed")
      })
    })
  )
})
