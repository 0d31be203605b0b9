/** `till verify` finds changes that Till has not made, and `till rebuild` repairs the views. */
import { PgConnection } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Redacted } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { reconstruction, verification } from "../../src/cli/Maintenance.ts"
import { freshDatabase } from "../support/Postgres.ts"
import { prepareTill, run, till, type TillProcess, until } from "../support/TillProcess.ts"
import { Traffic } from "../support/fixtures/Traffic.ts"
import { TrafficAudit } from "../support/fixtures/TrafficAudit.ts"

const sound = /^\d+ records of 2 accounts: the journal is whole and the views agree with it; .+\.\n$/

const allAnchored =
  /^(\d+) records .+ agree with it; (\d+) records are anchored, newest anchor \d{4}-\d\d-\d\dT\d\d:\d\dZ\.\n$/

/** Runs SQL on Till's database; returns the rows. */
type Sql = (statement: string) => Promise<ReadonlyArray<unknown>>

/** A change in the database, the line by which `till verify` must name it, and its reversal. */
interface Damage {
  readonly what: string
  readonly statement: string
  readonly named: RegExp
  readonly undo: string
}

/** The account of the traffic, and a record in the middle of its journal. */
interface Place {
  readonly account: string
  readonly version: number
}

const inJournal = ({ account, version }: Place): ReadonlyArray<Damage> => {
  const record = `account = '${account}' AND version = ${version}`
  const changed = new RegExp(`^till: Record ${version} of account ${account} is not what was written: .+\n$`)
  const saved = "INSERT INTO journal SELECT * FROM saved"
  const restore = `DELETE FROM journal WHERE ${record}; ${saved}`
  const move = (from: number, to: number) =>
    `UPDATE journal SET version = ${to} WHERE account = '${account}' AND version = ${from}`
  const swap = [move(version, -1), move(version + 1, version), move(-1, version + 1)].join(";")
  return [
    {
      what: "a byte of a record",
      statement: `UPDATE journal SET record = set_byte(record, 99, get_byte(record, 99) # 1) WHERE ${record}`,
      named: changed,
      undo: restore
    },
    {
      what: "a hash",
      statement: `UPDATE journal SET hash = set_byte(hash, 0, get_byte(hash, 0) # 1) WHERE ${record}`,
      named: changed,
      undo: restore
    },
    { what: "the order of two records", statement: swap, named: changed, undo: swap },
    {
      what: "a record together with its hash",
      statement: `UPDATE journal SET record = record || '\\x20', hash = sha256(convert_to(
        (SELECT encode(hash, 'hex') FROM journal WHERE account = '${account}' AND version = ${version - 1})
        || ' ${account} ${version} ', 'UTF8') || record || '\\x20') WHERE ${record}`,
      named: new RegExp(`^till: Record ${version + 1} of account ${account} is not what was written: .+\n$`),
      undo: restore
    },
    {
      what: "a removed record",
      statement: `DELETE FROM journal WHERE ${record}`,
      named: new RegExp(`^till: Record ${version} of account ${account} is missing: record ${version + 1} follows\n$`),
      undo: saved
    }
  ]
}

/** The newest record is missing: the hash chain does not show that, but the views are ahead of the journal. */
const newestMissing = ({ account, version }: Place): Damage => ({
  what: "the newest record, removed",
  statement: `DELETE FROM journal WHERE account = '${account}' AND version = ${version}`,
  named: new RegExp(`^till: Record ${version} of account ${account} is missing, but the views have it\n$`),
  undo: "INSERT INTO journal SELECT * FROM saved"
})

/** A change of one row of the views that returns the row's id, and the row's name in the output of `till verify`. */
type ViewDamage = readonly [statement: string, table: string, problem: string]

const changed = "differs from the journal"
const removed = "is in the journal, but not in the views"
const invented = "is in the views, but not in the journal"

const inViews = ({ account }: Place): ReadonlyArray<ViewDamage> => {
  /** Selects a row of the account by its id. */
  const one = (table: string, id: string, answer: string = id) =>
    `WHERE account = '${account}' AND ${id} =
      (SELECT ${id} FROM ${table} WHERE account = '${account}' ORDER BY ${id} OFFSET 7 LIMIT 1) RETURNING ${answer}`
  const document = one("objects", "id")
  const event = one("events", "id", "type || ' ' || id")
  const key = one("idempotency", "version", "lpad(version::text, 16, '0')")
  const delivery = `WHERE account = '${account}' AND id =
    (SELECT id FROM deliveries WHERE account = '${account}' AND attempts <> '[]' ORDER BY id OFFSET 7 LIMIT 1)
    RETURNING destination || '/' || id`
  return [
    [`UPDATE objects SET document_length = document_length - 1 ${document}`, "documents", changed],
    [`UPDATE objects SET labels = '{"customer":"cus_other"}' ${document}`, "documents", changed],
    [`UPDATE objects SET document_at = NULL ${document}`, "documents", changed],
    [`DELETE FROM objects ${document}`, "documents", removed],
    [
      `INSERT INTO objects (account, id, kind, version, document_at, document_length, format)
        VALUES ('${account}', 'cus_invented', 'customer', 1, 0, 10, 1) RETURNING id`,
      "documents",
      invented
    ],
    [`UPDATE events SET version = version + 1 ${event}`, "events", changed],
    [`UPDATE events SET type = 'customer.deleted' ${event}`, "events", invented],
    [`DELETE FROM events ${event}`, "events", removed],
    [`UPDATE idempotency SET at = at + 1 ${key}`, "keys", changed],
    [`DELETE FROM idempotency ${key}`, "keys", removed],
    [
      `INSERT INTO timers (account, id, name, version, due_at, wake_at)
        VALUES ('${account}', 'invented', 'settle', 1, 0, 0) RETURNING id`,
      "timers",
      invented
    ],
    [
      `UPDATE subscriptions SET types = '{customer.created}' WHERE account = '${account}' RETURNING destination`,
      "subscriptions",
      changed
    ],
    [`UPDATE deliveries SET state = 'delivered', due_at = NULL ${delivery}`, "deliveries", changed],
    [`UPDATE deliveries SET attempts = '[]' ${delivery}`, "deliveries", changed],
    [`DELETE FROM deliveries ${delivery}`, "deliveries", removed]
  ]
}

const verify = (server: TillProcess) => till(["verify"], server.variables)

const assertSound = async (server: TillProcess) => {
  const { code, stderr, stdout } = await verify(server)
  assert.strictEqual(code, 0, stderr)
  assert.match(stdout, sound)
}

/** Runs the command's effects in this process: a process of its own takes ten times as long. */
const inPlace = <A, E>({ variables }: TillProcess, command: Effect.Effect<A, E>): Promise<A> =>
  Effect.runPromise(
    Effect.provideService(command, ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: variables }))
  )

/** The line that the command prints for the problems that it finds. */
const assertFound = async (server: TillProcess, what: string, named: RegExp | string) => {
  const { problems } = await inPlace(server, verification)
  const told = `till: ${problems.join("\n")}\n`
  if (typeof named === "string") assert.strictEqual(told, named, what)
  else assert.match(told, named, what)
}

const assertNamed = async (server: TillProcess, what: string, named: RegExp | string) => {
  const { code, stderr, stdout } = await verify(server)
  assert.strictEqual(code, 1, `${what}: ${stdout}`)
  if (typeof named === "string") assert.strictEqual(stderr, named, what)
  else assert.match(stderr, named, what)
  assert.strictEqual(stdout, "", what)
}

/** A stopped service with a history, and SQL on its database. */
const withHistory = Effect.gen(function* () {
  const url = yield* freshDatabase
  const connection = yield* Effect.orDie(PgConnection.make({ url }))
  const server = yield* prepareTill({ variables: { DATABASE_URL: Redacted.value(url) } })
  const traffic = new Traffic(server.http, 11, 8)
  const sql: Sql = async (statements) => {
    let first: ReadonlyArray<unknown> = []
    for (const statement of statements.split(";")) {
      first = (await Effect.runPromise(Effect.orDie(connection.queryValues(statement))))[0] ?? []
    }
    return first
  }
  const place = yield* Effect.promise(async () => {
    await server.start()
    // An endpoint without a listener gives the history failed attempts.
    await server.post("/v1/webhook_endpoints", { url: "http://127.0.0.1:9/", enabled_events: ["*"] })
    await traffic.run(() => traffic.deeds.length > 300)
    assert.strictEqual((await server.kill("SIGTERM")).code, 0)
    const [account, version] = await sql(
      "SELECT account, max(version)::int FROM journal WHERE account LIKE '%:test' GROUP BY 1"
    )
    return { account: String(account), version: Number(version) }
  })
  return { server, traffic, sql, place }
})

describe("till verify", () => {
  it.live("names the record that was changed, removed or forged", () =>
    Effect.gen(function* () {
      const { place: newest, server, sql } = yield* withHistory
      yield* Effect.promise(async () => {
        await assertSound(server)
        const middle = { ...newest, version: Math.floor(newest.version / 2) }
        const where = ({ account, version }: Place) => `WHERE account = '${account}' AND version = ${version}`
        await sql("CREATE TABLE saved (LIKE journal)")
        const cases = [
          ...inJournal(middle).map((damage) => [middle, damage] as const),
          [newest, newestMissing(newest)] as const
        ]
        for (const [place, { named, statement, undo, what }] of cases) {
          await sql(`DELETE FROM saved; INSERT INTO saved SELECT * FROM journal ${where(place)}`)
          await sql(statement)
          await assertFound(server, what, named)
          if (place === newest) await assertNamed(server, what, named)
          await sql(undo)
        }
        await assertSound(server)
      })
    })
  )
})

describe("till verify beside a running service", () => {
  it.live("reads its embedded database as of one moment, and then prints the anchors", () =>
    Effect.gen(function* () {
      const server = yield* prepareTill()
      const traffic = new Traffic(server.http, 12, 4)
      yield* Effect.promise(async () => {
        await server.start()
        let verified = false
        const running = traffic.run(() => verified)
        for (let times = 0; times < 3; times++) {
          const { code, stderr, stdout } = await verify(server)
          assert.strictEqual(code, 0, stderr)
          assert.match(stdout, sound)
        }
        verified = true
        await running
        const { code, stderr } = await till(["rebuild"], server.variables)
        assert.match(stderr, /^till: The data folder .+ is in use by another Till/)
        assert.strictEqual(code, 1)
        assert.strictEqual((await server.kill("SIGTERM")).code, 0)
        const [, records, anchored] = allAnchored.exec((await verify(server)).stdout) ?? []
        assert.isDefined(anchored)
        assert.strictEqual(anchored, records)
        const mark = Path.join(server.folder, "anchor")
        fs.writeFileSync(mark, fs.readFileSync(mark, "utf8").replace(/^\d+/, "99"))
        await assertNamed(server, "a mark of an anchor that is not there", /^till: Anchor 99 is gone or replaced: /)
      })
    })
  )

  it.live("prints that it has not checked anchors without the secret", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const server = yield* prepareTill({ variables: { DATABASE_URL: Redacted.value(url) } })
      yield* Effect.promise(async () => {
        await server.start()
        await server.post("/v1/customers")
        const elsewhere = { ...server.variables, TILL_DATA_DIR: Path.join(server.folder, "elsewhere") }
        const { code, stdout } = await till(["verify"], elsewhere)
        assert.match(stdout, /^\d+ records .+; anchors were not checked, because TILL_DATA_DIR has no secret\.\n$/)
        assert.strictEqual(code, 0)
        assert.isFalse(fs.existsSync(elsewhere.TILL_DATA_DIR))
      })
    })
  )
})

describe("maintenance that a signal ends", () => {
  it.live("is reported as a failure", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const server = yield* prepareTill({ variables: { DATABASE_URL: Redacted.value(url) } })
      yield* Effect.promise(async () => {
        await server.start()
        assert.strictEqual((await server.kill("SIGTERM")).code, 0)
      })
      const holder = yield* PgConnection.make({ url, applicationName: "holder of the journal" })
      yield* holder.queryValues("BEGIN")
      yield* holder.queryValues("LOCK TABLE journal IN ACCESS EXCLUSIVE MODE")
      const waiting = "SELECT count(*)::int FROM pg_locks WHERE NOT granted AND relation = 'journal'::regclass"
      for (const command of ["verify", "rebuild"]) {
        const { child, ended, stderr, stdout } = run([command], server.variables)
        yield* Effect.promise(() =>
          until(
            `${command} reads the journal`,
            async () => Number((await Effect.runPromise(holder.queryValues(waiting)))[0]?.[0]) > 0
          )
        )
        child.kill("SIGTERM")
        assert.deepStrictEqual((yield* Effect.promise(() => ended)).code, 1, stderr())
        assert.include(stderr(), "till: Interrupted before the end. Run the command again.")
        assert.strictEqual(stdout(), "")
      }
    })
  )
})

describe("maintenance, where no service was ever started", () => {
  const commands = [
    ["verify"],
    ["rebuild"],
    ["keys", "list"],
    ["merchants", "list"],
    ["merchants", "rename", "mer_x", "X"]
  ]
  const assertNothing = async (variables: Readonly<Record<string, string>>) => {
    for (const command of commands) {
      const { code, stderr } = await till(command, variables)
      assert.match(stderr, /^till: There is no installation: do TILL_DATA_DIR and DATABASE_URL /, command.join(" "))
      assert.strictEqual(code, 1)
    }
  }

  it.live("reports a missing database instead of success, and creates nothing in the folder", () =>
    Effect.gen(function* () {
      const { folder, variables } = yield* prepareTill()
      const mistyped = Path.join(folder, "mistyped")
      yield* Effect.promise(() => assertNothing({ ...variables, TILL_DATA_DIR: mistyped }))
      assert.isFalse(fs.existsSync(mistyped))
    })
  )

  it.live("nor in a database", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const { variables } = yield* prepareTill({ variables: { DATABASE_URL: Redacted.value(url) } })
      yield* Effect.promise(() => assertNothing(variables))
      const connection = yield* PgConnection.make({ url })
      assert.isEmpty(yield* connection.queryValues("SELECT * FROM pg_tables WHERE schemaname = 'public'"))
    })
  )
})

describe("till rebuild", () => {
  it.live(
    "mends every view that till verify has named, and the service goes on with it",
    () =>
      Effect.gen(function* () {
        const { place, server, sql, traffic } = yield* withHistory
        yield* Effect.promise(async () => {
          for (const [statement, table, problem] of inViews(place)) {
            const [id] = await sql(statement)
            await assertFound(server, statement, `till: ${table} ${id} of account ${place.account} ${problem}\n`)
            assert.strictEqual(await inPlace(server, reconstruction), 2)
          }
          const [statement, table, problem] = inViews(place)[0]!
          const [id] = await sql(statement)
          await assertNamed(server, statement, `till: ${table} ${id} of account ${place.account} ${problem}\n`)
          const rebuilt = await till(["rebuild"], server.variables)
          assert.strictEqual(rebuilt.stdout, "The views of 2 accounts were rebuilt from the journal.\n", rebuilt.stderr)
          const again = await till(["rebuild", "--json"], server.variables)
          assert.strictEqual(again.stdout, '{"accounts":2}\n', again.stderr)
          await assertSound(server)
          await server.start()
          const beside = await till(["rebuild"], server.variables)
          assert.strictEqual(beside.stderr, "till: Till is running on this database: stop it first.\n")
          assert.strictEqual(beside.code, 1)
          const problems = await new TrafficAudit(traffic).checkAll()
          assert.isEmpty(problems, problems.join("\n"))
        })
      }),
    600_000
  )
})
