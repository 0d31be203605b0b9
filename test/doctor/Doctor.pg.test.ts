/** `till doctor` names each fault of an installation, and no secret (semantics operation.doctor). */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Redacted } from "effect"
import * as fs from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as Path from "node:path"
import { diagnosis, storage } from "../../src/app.ts"
import * as Config from "../../src/config.ts"
import type { Finding } from "../../src/doctor/Finding.ts"
import { setMark } from "../../src/postgres/embedded/Marks.ts"
import { freshDatabase } from "../support/Postgres.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"

type Environment = Readonly<Record<string, string>>

const SECRET_KEY = "sk_test_doctor0000000000000000000000"

const inEnvironment = (env: Environment) =>
  Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))

const examine = (env: Environment) => inEnvironment(env)(diagnosis)

/** A port on which nothing listens. */
const freePort = Effect.callback<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo
    server.close(() => resume(Effect.succeed(port)))
  })
})

/** An installation with tables and a secret, whose service does not run. */
const installation = Effect.gen(function* () {
  const url = yield* freshDatabase
  const folder = yield* temporaryFolder()
  fs.chmodSync(folder, 0o700)
  fs.writeFileSync(Path.join(folder, "secret"), "ab".repeat(32), { mode: 0o600 })
  const env = {
    DATABASE_URL: Redacted.value(url),
    TILL_DATA_DIR: folder,
    PORT: String(yield* freePort),
    TILL_SK_TEST: SECRET_KEY
  }
  yield* inEnvironment(env)(Effect.scoped(Effect.asVoid(Layer.build(Layer.provide(storage, Config.layer)))))
  const sql = (statement: string) =>
    Effect.flatMap(PgClient.PgClient, (client) => client.unsafe(statement)).pipe(
      Effect.provide(PgClient.layer({ url, maxConnections: 1 })),
      Effect.orDie
    )
  return { env, folder, sql }
})

const levelOf = (findings: ReadonlyArray<Finding>, check: string) =>
  findings.filter((finding) => finding.check === check).map(({ level }) => level)

/** A fault, and the check that names it. */
interface Fault {
  readonly what: string
  readonly check: string
  readonly level: Finding["level"]
  readonly text: RegExp
  readonly statement?: ReadonlyArray<string>
  readonly inFolder?: (folder: string) => void
  readonly variables?: Environment
}

const DAY = 86_400_000
const inserted = (table: string, values: string) => `INSERT INTO ${table} VALUES ${values}`

const checkpointAt = (version: number) => `INSERT INTO checkpoints (account, version) VALUES ('mer_1:test', ${version})`

const faults: ReadonlyArray<Fault> = [
  {
    what: "a misspelt variable",
    check: "configuration.unknown",
    level: "warning",
    text: /TILL_SCRUB_DAY$/,
    variables: { TILL_SCRUB_DAY: "3" }
  },
  {
    what: "a wrong variable",
    check: "configuration",
    level: "problem",
    text: /^TILL_SCRUB_DAYS: must be/,
    variables: { TILL_SCRUB_DAYS: "often" }
  },
  {
    what: "simulated live payments",
    check: "configuration.live_processor",
    level: "warning",
    text: /no money moves$/,
    variables: { TILL_LIVE_PROCESSOR: "simulator" }
  },
  {
    what: "a public address without encryption",
    check: "configuration.public_url",
    level: "warning",
    text: /http:\/\/pay\.example/,
    variables: { TILL_PUBLIC_URL: "http://pay.example" }
  },
  {
    what: "a dashboard that nobody can sign in to",
    check: "configuration.dashboard",
    level: "warning",
    text: /sign in/,
    variables: { HOST: "0.0.0.0" }
  },
  {
    what: "checks that are turned off",
    check: "configuration.scrub",
    level: "warning",
    text: /TILL_SCRUB_DAYS is 0$/,
    variables: { TILL_SCRUB_DAYS: "0" }
  },
  {
    what: "a missing data folder",
    check: "files.data_folder",
    level: "problem",
    text: /^There is no /,
    inFolder: (folder) => fs.rmSync(folder, { recursive: true })
  },
  {
    what: "a data folder that others may write to",
    check: "files.data_folder",
    level: "problem",
    text: /others may write/,
    inFolder: (folder) => fs.chmodSync(folder, 0o777)
  },
  {
    what: "a missing secret",
    check: "files.secret",
    level: "problem",
    text: /^There is no secret/,
    inFolder: (folder) => fs.rmSync(Path.join(folder, "secret"))
  },
  {
    what: "a secret that others can read",
    check: "files.secret",
    level: "warning",
    text: /can read/,
    inFolder: (folder) => fs.chmodSync(Path.join(folder, "secret"), 0o644)
  },
  {
    what: "a database that does not answer",
    check: "database",
    level: "problem",
    text: /^DATABASE_URL: Postgres at 127\.0\.0\.1:1: /,
    variables: { DATABASE_URL: "postgres://till:pa55word@127.0.0.1:1/till" }
  },
  {
    what: "tables of a newer Till",
    check: "database.tables",
    level: "problem",
    text: /newer Till/,
    statement: [inserted("effect_sql_migrations", "(9999, now(), 'from_the_future')")]
  },
  {
    what: "a restore that has not completed",
    check: "database.tables",
    level: "problem",
    text: /restore/,
    statement: ["CREATE TABLE unfinished_restore (single boolean)"]
  },
  {
    what: "views that are behind",
    check: "views",
    level: "warning",
    text: /^20,000 records/,
    statement: [inserted("journal", "('mer_1:test', 20001, '', '')"), checkpointAt(1)]
  },
  {
    what: "a processor of a restored installation",
    check: "processors.restored",
    level: "warning",
    text: /restored from a backup and not yet compared with prc_1: it takes no payments$/,
    statement: [
      "INSERT INTO objects (account, id, kind, version, labels, format) " +
        `VALUES ('installation', 'prc_1', 'processor', 1, '{"restored": "true"}', 1)`
    ]
  },
  {
    what: "a webhook that waits for hours",
    check: "webhooks",
    level: "warning",
    text: /^1 webhooks wait for their delivery, one since 20\d\d\d days$/,
    statement: [inserted("deliveries", "('mer_1:test', 'we_1', 'd', 'e', 1, 1, 0, 'pending', '[]', 1, 1, 1)")]
  },
  {
    what: "timers that did not fire",
    check: "timers",
    level: "warning",
    text: /^2 timers are overdue/,
    statement: [inserted("timers", "('mer_1:test', 'a', 'n', 1, 1, 1), ('mer_1:test', 'b', 'n', 1, 1, 1)")]
  },
  {
    what: "an old anchor",
    check: "upkeep.anchor",
    level: "warning",
    text: /^The newest anchor is 20\d\d\d days old$/,
    statement: [inserted("anchors", `(1, 1, '[["mer_1:test",1,"00"]]', '')`), checkpointAt(9)]
  },
  {
    what: "records that no anchor covers",
    check: "upkeep.anchor",
    level: "warning",
    text: /^No record is anchored/,
    statement: [checkpointAt(9)]
  },
  {
    what: "a runner that is gone, with its partitions",
    check: "runners",
    level: "problem",
    text: /^https:\/\/10\.0\.0\.9:1 no longer answer/,
    statement: [inserted("runners", "('https://10.0.0.9:1', '0.1.0', now(), now(), 0, false)")]
  },
  {
    what: "partitions without a runner",
    check: "runners.partitions",
    level: "problem",
    text: /^64 of 64 partitions/,
    statement: [inserted("runners", "('https://10.0.0.9:1', '0.1.0', now(), now(), 0, false)")]
  },
  {
    what: "a runner whose clock is wrong",
    check: "runners.clock",
    level: "warning",
    text: /7000 ms ahead/,
    statement: [inserted("runners", "('https://10.0.0.9:1', '0.1.0', now(), now(), 7000, false)")]
  },
  {
    what: "an old backup",
    check: "upkeep.backup",
    level: "warning",
    text: /^The newest backup is 3 days old, in \/backups$/,
    inFolder: (folder) => setMark(folder, "backup", { at: Date.now() - 3 * DAY, folder: "/backups" })
  },
  {
    what: "a missing backup",
    check: "upkeep.backup",
    level: "warning",
    text: /^No backup/
  },
  {
    what: "damage that a scrub has found",
    check: "upkeep.scrub",
    level: "problem",
    text: /^All 4 accounts were checked until 2 hours ago: 1 are damaged$/,
    inFolder: (folder) => setMark(folder, "scrub", { at: Date.now() - 7_300_000, accounts: 4, problems: 1 })
  },
  {
    what: "an old scrub",
    check: "upkeep.scrub",
    level: "warning",
    text: /16 days ago$/,
    inFolder: (folder) => setMark(folder, "scrub", { at: Date.now() - 16 * DAY, accounts: 4, problems: 0 })
  },
  {
    what: "a mark that cannot be read",
    check: "upkeep.backup",
    level: "warning",
    text: /^No backup/,
    inFolder: (folder) => fs.writeFileSync(Path.join(folder, "last-backup.json"), "{")
  }
]

describe("the doctor", () => {
  it.live("finds nothing wrong with an installation but that its service does not run", () =>
    Effect.gen(function* () {
      const { env, folder } = yield* installation
      setMark(folder, "backup", { at: Date.now(), folder: "/backups" })
      setMark(folder, "scrub", { at: Date.now(), accounts: 2, problems: 0 })
      const findings = yield* examine(env)
      // Postgres' settings are those of the tests' server.
      const wrong = findings.filter(({ check, level }) => level !== "ok" && !check.startsWith("database."))
      assert.deepStrictEqual(
        wrong.map(({ check, text }) => [check, text]),
        [["service", `No service answers at http://127.0.0.1:${env.PORT}; the port is free`]]
      )
      assert.deepStrictEqual(levelOf(findings, "database.tables"), ["ok"])
      assert.deepStrictEqual(levelOf(findings, "files.secret.own"), ["ok"])
      assert.deepStrictEqual(levelOf(findings, "clock"), ["ok"])
      for (const { level, remedy } of findings) assert.strictEqual(remedy === null, level === "ok")
    })
  )

  it.live.each(faults)("names $what", ({ check, inFolder, level, statement, text, variables }) =>
    Effect.gen(function* () {
      const { env, folder, sql } = yield* installation
      for (const one of statement ?? []) yield* sql(one)
      inFolder?.(folder)
      const findings = yield* examine({ ...env, ...variables })
      const found = findings.filter((finding) => finding.check === check && finding.level === level)
      assert.lengthOf(found, 1)
      assert.match(found[0]!.text, text)
      assert.isNotNull(found[0]!.remedy)
      const shown = JSON.stringify(findings)
      const { password } = new URL(env.DATABASE_URL)
      for (const secret of [SECRET_KEY, "pa55word", "abababab", ...(password === "" ? [] : [password])]) {
        assert.notInclude(shown, secret)
      }
    })
  )

  it.live("tells another program on the port from a service that is not ready", () =>
    Effect.gen(function* () {
      const { env } = yield* installation
      const answers = { headers: {} as Record<string, string>, status: 200, body: "hello" }
      const other = createServer((_, response) => {
        response.writeHead(answers.status, answers.headers).end(answers.body)
      })
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => {
          other.listen(Number(env.PORT), "127.0.0.1", () => resume(Effect.void))
        }),
        () => Effect.sync(() => other.close())
      )
      const serviceIn = (findings: ReadonlyArray<Finding>) => findings.find(({ check }) => check === "service")!
      assert.match(serviceIn(yield* examine(env)).text, /^Another program answers/)
      answers.headers = { "x-request-id": "req_1" }
      answers.body = `{"status":"ok"}`
      assert.strictEqual(serviceIn(yield* examine(env)).level, "ok")
      answers.status = 503
      answers.body = `{"status":"unavailable","reason":"The disk is full."}`
      assert.match(serviceIn(yield* examine(env)).text, /is not ready: The disk is full\.$/)
    })
  )
})
