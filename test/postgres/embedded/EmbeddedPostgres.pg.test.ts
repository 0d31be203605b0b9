import { PgConnection } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, type Scope } from "effect"
import { spawn, type ChildProcess } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import { inspect } from "node:util"
import * as EmbeddedPostgres from "../../../src/postgres/embedded/EmbeddedPostgres.ts"
import { changeOwner } from "../../../src/postgres/embedded/PostgresUser.ts"
import { disownLeftover, isAtWorkOn } from "../../../src/postgres/embedded/Postmaster.ts"
import { temporaryFolder } from "../../support/TemporaryFolder.ts"

/** Creates a folder that is removed when the scope closes, after the server in it has been ended. */
const clusterFolder = Effect.tap(temporaryFolder(), (folder) =>
  Effect.addFinalizer(() =>
    Effect.promise(async () => {
      const serverId = postmasterOf(folder)
      if (serverId !== undefined && isAtWorkOn(serverId, clusterOf(folder))) process.kill(serverId, "SIGQUIT")
      await until(() => serverId === undefined || !isAtWorkOn(serverId, clusterOf(folder)))
    })
  )
)

const clusterOf = (folder: string) => Path.join(folder, "postgres", "data")

const postmasterOf = (folder: string): number | undefined => {
  try {
    return Number.parseInt(fs.readFileSync(Path.join(clusterOf(folder), "postmaster.pid"), "utf8"), 10)
  } catch {
    return undefined
  }
}

const socketsOf = (folder: string): ReadonlyArray<string> =>
  fs
    .readdirSync(Path.join(folder, "postgres"))
    .filter((name) => name.startsWith(".s."))
    .toSorted()

const until = async (condition: () => boolean) => {
  const end = performance.now() + 300_000
  while (!condition()) {
    if (performance.now() > end) throw new Error("waited 300 s in vain")
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** Starts a server, uses it, stops it. */
const using = <A, E>(dataFolder: string, use: (server: EmbeddedPostgres.EmbeddedPostgres) => Effect.Effect<A, E>) =>
  Effect.scoped(Effect.flatMap(EmbeddedPostgres.make({ dataFolder }), use))

const query = (url: Redacted.Redacted, ...statements: ReadonlyArray<string>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const connection = yield* PgConnection.make({ url })
      let rows: ReadonlyArray<ReadonlyArray<unknown>> = []
      for (const statement of statements) rows = yield* connection.queryValues(statement)
      return rows
    })
  )

/** Reads the capabilities of a process. */
const capabilitiesOf = (processId: number): bigint =>
  BigInt(`0x${/^CapEff:\t([0-9a-f]+)$/m.exec(fs.readFileSync(`/proc/${processId}/status`, "utf8"))![1]}`)

const failureOf = (dataFolder: string) =>
  Effect.flip(Effect.scoped(EmbeddedPostgres.make({ dataFolder }))).pipe(
    Effect.tap((error) => Effect.sync(() => assert.notInclude(error.message, "\n")))
  )

interface Owner {
  readonly process: ChildProcess
  readonly errors: () => string
  readonly ready: Promise<{ readonly processId: number; readonly port: number; readonly adopted: boolean }>
  /** Exit code and signal. */
  readonly ended: Promise<readonly [number | null, NodeJS.Signals | null]>
}

/** Starts another process that owns the folder's Postgres; `detached` gives it a process group of its own. */
const spawnOwner = (folder: string, detached = false): Effect.Effect<Owner, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const script = Path.resolve(import.meta.dirname, "../../support/PostgresOwner.ts")
      const args = [script, folder]
      const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"], detached })
      let errors = ""
      child.stderr.on("data", (chunk) => (errors += String(chunk)))
      const ended = new Promise<readonly [number | null, NodeJS.Signals | null]>((resolve) =>
        child.once("close", (code, signal) => resolve([code, signal]))
      )
      const ready = new Promise<Awaited<Owner["ready"]>>((resolve, reject) => {
        child.stdout.once("data", (line) => resolve(JSON.parse(String(line))))
        void ended.then(() => reject(new Error(`the owner ended: ${errors}`)))
      })
      ready.catch(() => undefined)
      return { process: child, errors: () => errors, ready, ended }
    }),
    (owner) =>
      Effect.promise(() => {
        owner.process.kill("SIGKILL")
        return owner.ended
      })
  )

describe("EmbeddedPostgres", () => {
  it.live("starts on a fresh folder, and keeps the data over a restart", () =>
    Effect.gen(function* () {
      const folder = Path.join(yield* clusterFolder, "not", "there yet")
      const log = Path.join(folder, "postgres.log")
      yield* using(folder, ({ url }) => query(url, "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (42)"))
      assert.isUndefined(postmasterOf(folder))
      const rows = yield* using(folder, ({ url, adopted }) => {
        assert.isFalse(adopted)
        return query(url, "SELECT n FROM kept")
      })
      assert.deepStrictEqual(rows, [[42]])
      // The user that it runs as may pass through the folder, and not list it.
      assert.strictEqual(fs.statSync(folder).mode & 0o777, process.geteuid!() === 0 ? 0o711 : 0o700)
      const long = "x".repeat(9_000_000)
      fs.writeFileSync(log, long)
      yield* using(folder, () => Effect.promise(() => until(() => fs.statSync(log).size < 9_000_000)))
      assert.strictEqual(fs.readFileSync(`${log}.1`, "utf8").slice(0, long.length), long)
      assert.include(fs.readFileSync(log, "utf8"), "database system is shut down")
    })
  )

  it.live("lets the WAL of much data grow larger", () =>
    Effect.gen(function* () {
      const folder = yield* clusterFolder
      const limit = using(folder, ({ url }) => query(url, "SHOW max_wal_size"))
      assert.deepStrictEqual(yield* limit, [["512MB"]])
      const file = Path.join(folder, "postgres", "data", "base", "large")
      fs.writeFileSync(file, "")
      fs.truncateSync(file, 4 * 2 ** 30)
      assert.deepStrictEqual(yield* limit, [["2GB"]])
    })
  )

  it.live("is durable, local and requires its password", () =>
    Effect.gen(function* () {
      const folder = yield* clusterFolder
      yield* using(folder, ({ url, port, processId }) =>
        Effect.gen(function* () {
          if (process.platform === "linux") {
            const seen = fs
              .readFileSync(`/proc/${yield* processId}/environ`, "utf8")
              .split("\0")
              .map((variable) => variable.split("=")[0])
            assert.includeMembers(["PATH", "LC_ALL", "TZ", "PGDATA", "PG_GRANDPARENT_PID", ""], seen)
          }
          const rows = yield* query(
            url,
            `SELECT name, setting FROM pg_settings WHERE name IN
             ('fsync', 'synchronous_commit', 'full_page_writes', 'listen_addresses', 'TimeZone', 'wal_sync_method')
             ORDER BY name COLLATE "C"`
          )
          assert.deepStrictEqual(rows, [
            ["TimeZone", "UTC"],
            ["fsync", "on"],
            ["full_page_writes", "on"],
            ["listen_addresses", "127.0.0.1"],
            ["synchronous_commit", "on"],
            ["wal_sync_method", process.platform === "darwin" ? "fsync_writethrough" : "fdatasync"]
          ])
          const wrong = Redacted.make(`postgres://till_service:wrong@127.0.0.1:${port}/postgres`)
          assert.include(inspect(yield* Effect.flip(query(wrong, "SELECT 1")), { depth: 9 }), "authentication failed")
          const mode = (file: string) => fs.statSync(Path.join(folder, "postgres", file)).mode & 0o777
          assert.deepStrictEqual([mode("password"), mode("data"), mode(".")], [0o600, 0o700, 0o700])
          assert.strictEqual(mode("../lock"), 0o600)
        })
      )
    })
  )

  it.live("operation.postgres: lets one role log in, which owns its database and has no other privilege", () =>
    Effect.gen(function* () {
      const folder = yield* clusterFolder
      const file = Path.join(folder, "rootonly.txt")
      fs.writeFileSync(file, "a secret", { mode: 0o600 })
      yield* using(folder, ({ port, url }) =>
        Effect.gen(function* () {
          const refused = Effect.fnUntraced(function* (statement: string, as = url) {
            return inspect(yield* Effect.flip(query(as, statement)), { depth: 9 })
          })
          yield* query(url, "CREATE TABLE own (t text)", "ANALYZE own", "TRUNCATE own")
          for (const statement of [
            `SELECT pg_read_file('${file}')`,
            `SELECT pg_read_binary_file('${file}')`,
            `SELECT pg_ls_dir('${folder}')`,
            `SELECT lo_import('${file}')`,
            `COPY (SELECT 1) TO '${Path.join(folder, "written.txt")}'`,
            "COPY (SELECT 1) TO PROGRAM 'id'",
            `COPY own FROM '${file}'`,
            "COPY own FROM PROGRAM 'id'",
            "CREATE EXTENSION file_fdw",
            "CREATE EXTENSION dblink",
            "CREATE FUNCTION f() RETURNS int LANGUAGE c AS 'libc.so.6', 'getpid'",
            "CREATE ROLE other",
            "CREATE DATABASE other",
            "ALTER ROLE till_service SUPERUSER",
            "SET ROLE till",
            "ALTER SYSTEM SET fsync = off",
            "SELECT * FROM pg_authid"
          ]) {
            assert.match(yield* refused(statement), /\bcode: '42501'/u, statement)
          }
          assert.isFalse(fs.existsSync(Path.join(folder, "written.txt")))
          const known = new URL(Redacted.value(url)).password
          for (const role of ["till", "postgres", "pg_monitor"]) {
            for (const password of [known, ""]) {
              const other = Redacted.make(`postgres://${role}:${password}@127.0.0.1:${port}/postgres?sslmode=disable`)
              assert.include(yield* refused("SELECT 1", other), "no pg_hba.conf entry")
            }
          }
          yield* query(url, "DROP TABLE own")
        })
      )
    })
  )

  it.live.skipIf(process.platform !== "linux")(
    "operation.postgres: runs without capabilities; under a folder closed to its user, with one that allows only passing and reading",
    () =>
      Effect.gen(function* () {
        const open = yield* clusterFolder
        fs.chmodSync(open, 0o711)
        yield* using(open, ({ processId }) =>
          Effect.map(processId, (id) => {
            assert.strictEqual(capabilitiesOf(id), 0n)
            if (process.geteuid!() === 0) assert.notStrictEqual(fs.statSync(`/proc/${id}`).uid, 65_534)
          })
        )
        if (process.geteuid!() !== 0) return
        // CAP_DAC_READ_SEARCH, or CAP_DAC_OVERRIDE if this process lacks the former.
        const least = (capabilitiesOf(process.pid) & 4n) !== 0n ? 4n : 2n
        const closed = yield* clusterFolder
        fs.chmodSync(closed, 0o700)
        yield* using(Path.join(closed, "data"), ({ processId, url }) =>
          Effect.gen(function* () {
            assert.deepStrictEqual(yield* query(url, "SELECT 1"), [[1]])
            const id = yield* processId
            assert.strictEqual(capabilitiesOf(id), least)
            const status = fs.readFileSync(`/proc/${id}/status`, "utf8")
            for (const set of ["CapInh", "CapPrm", "CapBnd", "CapAmb"]) {
              assert.include(status, `${set}:\t${least.toString(16).padStart(16, "0")}\n`)
            }
            assert.include(status, "NoNewPrivs:\t1\n")
          })
        )
      })
  )

  it.live("secures a cluster whose access file was changed or that another user owns: only its role can log in", () =>
    Effect.gen(function* () {
      const folder = yield* clusterFolder
      const access = Path.join(clusterOf(folder), "pg_hba.conf")
      yield* using(folder, ({ url }) => query(url, "CREATE TABLE kept AS SELECT 7 AS n"))
      const written = fs.readFileSync(access, "utf8")
      assert.match(written, /^# Written by Till\.\nlocal all till_service scram-sha-256\nhost /u)
      fs.appendFileSync(access, "host all all 127.0.0.1/32 trust\n")
      if (process.geteuid!() === 0) {
        changeOwner(clusterOf(folder), { userId: 65_534, groupId: 65_534 })
        fs.chownSync(Path.join(folder, "postgres"), 65_534, 65_534)
      }
      yield* using(folder, ({ processId, url }) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* query(url, "SELECT n FROM kept"), [[7]])
          const rows = yield* query(
            url,
            `SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls FROM pg_roles
               WHERE rolname = current_user`
          )
          assert.deepStrictEqual(rows, [[false, false, false, false, false]])
          assert.include(
            inspect(yield* Effect.flip(query(url, "CREATE ROLE other")), { depth: 9 }),
            "permission denied"
          )
          if (process.geteuid!() === 0) {
            assert.notStrictEqual(fs.statSync(`/proc/${yield* processId}`).uid, 65_534)
          }
        })
      )
      assert.strictEqual(fs.readFileSync(access, "utf8"), written)
    })
  )

  it.live("refuses a cluster from before the first release", () =>
    Effect.gen(function* () {
      const folder = yield* clusterFolder
      yield* using(folder, () => Effect.void)
      fs.writeFileSync(Path.join(clusterOf(folder), "pg_hba.conf"), "local all all scram-sha-256\n")
      const { message } = yield* Effect.flip(using(folder, () => Effect.void))
      assert.include(message, "was made by a Till from before its first release, which no release can read")
    })
  )

  it.live("operation.files: follows no link and changes nothing outside, whatever has a name in the data folder", () =>
    Effect.gen(function* () {
      const outside = yield* temporaryFolder()
      const [file, inner] = [Path.join(outside, "file"), Path.join(outside, "folder")]
      fs.writeFileSync(file, "4242\nan important file\n")
      fs.chmodSync(file, 0o644)
      fs.mkdirSync(inner, { mode: 0o755 })
      const seen = () =>
        ["", "file", "folder", "free"].map((name) => {
          const found = fs.lstatSync(Path.join(outside, name), { throwIfNoEntry: false })
          return (
            found && [
              found.uid,
              found.gid,
              found.mode,
              found.isFile() && fs.readFileSync(Path.join(outside, name), "utf8")
            ]
          )
        })
      const before = seen()
      const made = yield* clusterFolder
      yield* using(made, () => Effect.void)
      fs.writeFileSync(Path.join(made, "postgres.log"), "x".repeat(9_000_000))
      const names = [
        "lock",
        "lock-journal",
        "owner",
        "format",
        "programs",
        "postgres.log",
        "postgres.log.1",
        "postgres/password",
        "postgres/data/pg_hba.conf",
        "postgres/data/postmaster.pid",
        "postgres/data/PG_VERSION",
        "postgres"
      ]
      for (const name of names) {
        const path = Path.join(made, name)
        const kept = `${made}.kept`
        if (fs.existsSync(path)) fs.renameSync(path, kept)
        for (const target of [file, inner, Path.join(outside, "free")]) {
          fs.rmSync(path, { recursive: true, force: true })
          fs.symlinkSync(target, path)
          const started = yield* Effect.exit(using(made, () => Effect.sleep("50 millis")))
          assert.deepStrictEqual(seen(), before, `${name} -> ${target}: ${String(started)}`)
          assert.notInclude(inspect(started, { depth: 9 }), "FolderInUse", `${name} -> ${target}`)
        }
        fs.rmSync(path, { recursive: true, force: true })
        if (fs.existsSync(kept)) fs.renameSync(kept, path)
      }
      yield* using(made, ({ url }) => Effect.map(query(url, "SELECT 1"), (rows) => assert.deepStrictEqual(rows, [[1]])))
    })
  )

  it.live("is reached over its socket, or over loopback if the folder's path is too long for a socket", () =>
    Effect.gen(function* () {
      const overTcp = (url: Redacted.Redacted) => query(url, "SELECT inet_client_addr() IS NOT NULL")
      const short = yield* clusterFolder
      yield* using(short, ({ port, url }) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* overTcp(url), [[false]])
          const loopback = new URL(Redacted.value(url))
          loopback.searchParams.delete("host")
          assert.strictEqual(loopback.port, String(port))
          assert.deepStrictEqual(yield* overTcp(Redacted.make(loopback.href)), [[true]])
        })
      )
      assert.deepStrictEqual(socketsOf(short), [])
      const spaced = Path.join(short, "with a space and ä")
      yield* using(spaced, ({ url }) => Effect.map(overTcp(url), (rows) => assert.deepStrictEqual(rows, [[false]])))
      for (const name of ["x".repeat(110), "with, comma"]) {
        const folder = Path.join(short, name)
        yield* using(folder, ({ url }) => Effect.map(overTcp(url), (rows) => assert.deepStrictEqual(rows, [[true]])))
      }
    })
  )

  it.live("is reached beside the process that holds it, and not stopped afterwards", () =>
    Effect.gen(function* () {
      const folder = yield* clusterFolder
      const owner = yield* spawnOwner(folder)
      const { processId } = yield* Effect.promise(() => owner.ready)
      const asked = Effect.flatMap(EmbeddedPostgres.reach({ dataFolder: folder }), ({ url }) => query(url, "SELECT 1"))
      assert.deepStrictEqual(yield* Effect.scoped(asked), [[1]])
      assert.isTrue(isAtWorkOn(processId, clusterOf(folder)), "closing the scope leaves another's server alone")
      owner.process.kill("SIGTERM")
      yield* Effect.promise(() => owner.ended)
      assert.deepStrictEqual(yield* Effect.scoped(asked), [[1]])
      assert.isUndefined(postmasterOf(folder))
    })
  )

  it.live("adopts the server of a killed owner", () =>
    Effect.gen(function* () {
      const folder = yield* clusterFolder
      const owner = yield* spawnOwner(folder)
      const left = yield* Effect.promise(() => owner.ready)
      owner.process.kill("SIGKILL")
      yield* Effect.promise(() => owner.ended)
      const password = Path.join(folder, "postgres", "password")
      const own = fs.readFileSync(password, "utf8")
      fs.writeFileSync(password, "another\n")
      assert.include((yield* failureOf(folder)).message, "does not answer as it should: ")
      fs.writeFileSync(password, own)
      yield* using(folder, (server) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(
            { port: server.port, processId: yield* server.processId, adopted: server.adopted },
            { port: left.port, processId: left.processId, adopted: true }
          )
          assert.deepStrictEqual(yield* query(server.url, "SELECT 1"), [[1]])
        })
      )
      assert.isFalse(isAtWorkOn(left.processId, clusterOf(folder)), "closing the scope stops an adopted server too")
    })
  )

  it.live("refuses a folder that another live process holds, and does not disturb that process", () =>
    Effect.gen(function* () {
      const folder = yield* clusterFolder
      const owner = yield* spawnOwner(folder)
      const { processId } = yield* Effect.promise(() => owner.ready)
      const error = yield* failureOf(folder)
      assert.strictEqual(error.reason, "FolderInUse")
      assert.strictEqual(
        error.message,
        `The data folder ${folder} is in use by another Till (process ${owner.process.pid}).`
      )
      const second = yield* spawnOwner(folder)
      assert.deepStrictEqual(yield* Effect.promise(() => second.ended), [1, null])
      assert.strictEqual(second.errors(), `${error.message}\n`)
      assert.isTrue(isAtWorkOn(processId, clusterOf(folder)))
    })
  )

  it.live("admits exactly one of many simultaneous starts", () =>
    Effect.gen(function* () {
      const folder = yield* clusterFolder
      const owners = yield* Effect.forEach([1, 2, 3, 4], () => spawnOwner(folder))
      const outcomes = yield* Effect.promise(() => Promise.allSettled(owners.map((owner) => owner.ready)))
      assert.strictEqual(outcomes.filter((outcome) => outcome.status === "fulfilled").length, 1)
      assert.strictEqual(owners.filter((owner) => owner.errors().includes("is in use by another Till")).length, 3)
    })
  )

  it.live("ignores a leftover record whose process id now belongs to an unrelated process", () =>
    Effect.gen(function* () {
      const folder = yield* clusterFolder
      const owner = yield* spawnOwner(folder)
      const { processId } = yield* Effect.promise(() => owner.ready)
      owner.process.kill("SIGKILL")
      process.kill(processId, "SIGKILL")
      yield* Effect.promise(() => until(() => !isAtWorkOn(processId, clusterOf(folder))))
      const record = Path.join(clusterOf(folder), "postmaster.pid")
      const stranger = yield* Effect.acquireRelease(
        Effect.sync(() => spawn("sleep", ["60"])),
        (child) => Effect.sync(() => child.kill())
      )
      fs.writeFileSync(record, fs.readFileSync(record, "utf8").replace(/^\d+/, String(stranger.pid)))
      // The sockets of the killed server are left, and no other server would remove them.
      assert.strictEqual(socketsOf(folder).length, 2)
      const own = yield* using(folder, ({ port, url }) =>
        Effect.map(query(url, "SELECT 1"), (rows) => ({ port, rows, sockets: socketsOf(folder) }))
      )
      assert.deepStrictEqual(own.rows, [[1]])
      assert.deepStrictEqual(own.sockets, [`.s.PGSQL.${own.port}`, `.s.PGSQL.${own.port}.lock`])
      assert.isNull(stranger.exitCode)
      assert.isNull(stranger.signalCode)
    })
  )

  it.live("starts a killed server again on the same port, with all committed data", () =>
    Effect.gen(function* () {
      const folder = yield* clusterFolder
      yield* using(folder, (server) =>
        Effect.gen(function* () {
          yield* query(server.url, "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (1)")
          const killed = yield* server.processId
          process.kill(killed, "SIGKILL")
          yield* Effect.promise(() => until(() => Effect.runSync(server.processId) !== killed))
          assert.deepStrictEqual(yield* query(server.url, "SELECT n FROM kept"), [[1]])
        })
      )
      assert.isUndefined(postmasterOf(folder))
    })
  )

  it.live("recovers from a start that was killed while it created the cluster", () =>
    Effect.gen(function* () {
      const folder = yield* clusterFolder
      const owner = yield* spawnOwner(folder)
      const home = Path.join(folder, "postgres")
      const unfinished = () =>
        (fs.existsSync(home) ? fs.readdirSync(home) : []).filter((name) => name.startsWith("initial"))
      yield* Effect.promise(() =>
        until(() => unfinished().some((name) => fs.readdirSync(Path.join(home, name)).length > 5))
      )
      owner.process.kill("SIGKILL")
      yield* Effect.promise(() => owner.ended)
      assert.isFalse(fs.existsSync(clusterOf(folder)))
      assert.deepStrictEqual(yield* using(folder, ({ url }) => query(url, "SELECT 1")), [[1]])
      assert.deepStrictEqual(unfinished(), [])
    })
  )

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    it.live(`${signal} to its whole process group stops owner and server in order`, () =>
      Effect.gen(function* () {
        const folder = yield* clusterFolder
        const owner = yield* spawnOwner(folder, true)
        const { processId } = yield* Effect.promise(() => owner.ready)
        const groupId = -(owner.process.pid ?? Number.NaN)
        process.kill(groupId, signal)
        // A second signal must not cut the shutdown short.
        process.kill(groupId, signal)
        const [, endedBy] = yield* Effect.promise(() => owner.ended)
        assert.isNull(endedBy)
        assert.isFalse(isAtWorkOn(processId, clusterOf(folder)))
        assert.isUndefined(postmasterOf(folder))
        const log = fs.readFileSync(Path.join(folder, "postgres.log"), "utf8")
        assert.include(log, "database system is shut down")
        assert.strictEqual(log.split("shutdown request").length - 1, 1, "one request, from the owner alone")
      })
    )
  }

  it.live("starts an adopted server again after it was killed", () =>
    Effect.gen(function* () {
      const folder = yield* clusterFolder
      const owner = yield* spawnOwner(folder)
      const { processId } = yield* Effect.promise(() => owner.ready)
      owner.process.kill("SIGKILL")
      yield* Effect.promise(() => owner.ended)
      yield* using(folder, (server) =>
        Effect.gen(function* () {
          process.kill(processId, "SIGKILL")
          yield* Effect.promise(() => until(() => Effect.runSync(server.processId) !== processId))
          assert.deepStrictEqual(yield* query(server.url, "SELECT 1"), [[1]])
          const record = Path.join(clusterOf(folder), "postmaster.pid")
          const before = fs.readFileSync(record, "utf8")
          disownLeftover(clusterOf(folder))
          assert.strictEqual(fs.readFileSync(record, "utf8"), before, "it is no leftover")
        })
      )
    })
  )

  it.live("refuses a folder of an incompatible version, or a damaged one", () =>
    Effect.gen(function* () {
      const folder = yield* clusterFolder
      yield* using(folder, () => Effect.void)
      const version = Path.join(clusterOf(folder), "PG_VERSION")
      const own = fs.readFileSync(version, "utf8")
      fs.writeFileSync(version, "17\n")
      const older = yield* failureOf(folder)
      assert.strictEqual(older.reason, "IncompatibleVersion")
      assert.include(older.message, "written by Postgres 17, and this Till brings Postgres 18")
      fs.rmSync(version)
      const nameless = yield* failureOf(folder)
      assert.strictEqual(nameless.message, `${clusterOf(folder)} is damaged: it has no PG_VERSION.`)
      fs.writeFileSync(version, own)
      fs.rmSync(Path.join(folder, "postgres", "password"))
      const locked = yield* failureOf(folder)
      assert.include(locked.message, `${Path.join(folder, "postgres", "password")} is missing.`)
      fs.writeFileSync(Path.join(folder, "format"), "2\n")
      const newer = yield* failureOf(folder)
      assert.strictEqual(newer.reason, "IncompatibleVersion")
      assert.include(newer.message, "written by a newer Till")
      for (const format of ["", "0\n", "1.0\n"]) {
        fs.writeFileSync(Path.join(folder, "format"), format)
        assert.include((yield* failureOf(folder)).message, "format is damaged: it must hold a format number.")
      }
    })
  )

  it.live.skipIf(process.platform !== "linux")("fails with one line on a file system that cannot create folders", () =>
    Effect.gen(function* () {
      for (const folder of ["/proc/till", "/proc/till/below"]) {
        const { message, reason } = yield* failureOf(folder)
        assert.strictEqual(reason, "FolderUnusable")
        assert.strictEqual(
          message,
          `Cannot use the data folder ${folder}: ENOENT: no such file or directory, mkdir '/proc/till'.`
        )
      }
    })
  )

  it.live("fails with one line about a folder that cannot be used", () =>
    Effect.gen(function* () {
      const folder = yield* clusterFolder
      const file = Path.join(folder, "file")
      fs.writeFileSync(file, "")
      const [dollar, quote, backtick] = ["do$lar", 'quo"te', "back`tick"].map((name) => Path.join(folder, name))
      const folders = [file, Path.join(file, "below"), dollar!, quote!, backtick!]
      const reasons = yield* Effect.forEach(folders, failureOf)
      assert.deepStrictEqual(
        reasons.map((error) => [error.reason, error.message]),
        [
          ["FolderUnusable", `Cannot use the data folder ${file}: it exists and is not a folder.`],
          ["FolderUnusable", `Cannot use the data folder ${file}/below: a part of the path is not a folder.`],
          ...[dollar, quote, backtick].map((odd) => [
            "FolderUnusable",
            `The data folder ${odd} may not have ", $ or \` in its path.`
          ])
        ]
      )
      assert.deepStrictEqual(fs.readdirSync(dollar!), [])
    })
  )
})
