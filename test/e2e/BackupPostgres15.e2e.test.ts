/**
 * The oldest supported Postgres, if the machine has it: backups are restored into it and taken from it, and its own
 * `pg_dump` and `pg_restore` work, too.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import { usersOf } from "../../src/postgres/embedded/PostgresUser.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import { prepareTill, till } from "../support/TillProcess.ts"
import { serverPort } from "../support/ServerPort.ts"

/** Debian's folder for it. */
const PROGRAMS = "/usr/lib/postgresql/15/bin"
const isThere = fs.existsSync(Path.join(PROGRAMS, "postgres"))

/** Postgres refuses to run as root. */
const user = process.geteuid?.() === 0 ? usersOf(fs.readFileSync("/etc/passwd", "utf8"))?.maker : undefined
const as = user === undefined ? {} : { uid: user.userId, gid: user.groupId }

const program = (name: string, ...args: ReadonlyArray<string>): string => {
  const { status, stderr, stdout } = spawnSync(Path.join(PROGRAMS, name), args, {
    ...as,
    cwd: "/",
    encoding: "utf8",
    // A server that starts in the background keeps its output open.
    ...(name === "pg_ctl" && { stdio: "ignore" })
  })
  assert.strictEqual(status, 0, `${name} ${args.join(" ")}: ${stderr}`)
  return stdout
}

/** Starts a server; returns a database's URL and a function that creates databases. */
const server = Effect.gen(function* () {
  const folder = yield* temporaryFolder()
  if (user !== undefined) fs.chownSync(folder, user.userId, user.groupId)
  const data = Path.join(folder, "data")
  const port = String(yield* serverPort)
  program("initdb", "-D", data, "-U", "till", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
  const options = `-p ${port} -k ${folder} -c listen_addresses=127.0.0.1`
  yield* Effect.acquireRelease(
    Effect.sync(() => program("pg_ctl", "-D", data, "-o", options, "-l", Path.join(folder, "log"), "-w", "start")),
    () => Effect.sync(() => program("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"))
  )
  const place = ["-h", "127.0.0.1", "-p", port, "-U", "till"]
  return {
    folder,
    place,
    make: (name: string) => {
      program("createdb", ...place, name)
      return `postgres://till@127.0.0.1:${port}/${name}`
    }
  }
})

describe("Postgres 15", () => {
  // Skipped on a machine without it.
  it.live.skipIf(!isThere)(
    "takes a backup, gives one, and is restored from its own dump with the secret",
    () =>
      Effect.gen(function* () {
        const { folder, make, place } = yield* server
        const source = yield* prepareTill()
        const backup = Path.join(yield* temporaryFolder(), "backup")
        const back = Path.join(yield* temporaryFolder(), "data")
        yield* Effect.promise(async () => {
          await source.start()
          for (let i = 0; i < 20; i++) await source.post("/v1/customers", { name: `Customer ${i}` })
          await source.kill("SIGTERM")
          const succeeds = async (args: ReadonlyArray<string>, variables: Readonly<Record<string, string>>) => {
            const { code, stderr, stdout } = await till(args, { ...source.variables, ...variables })
            assert.strictEqual(code, 0, `${args.join(" ")}: ${stderr}`)
            return stdout
          }
          const sound = /^21 records of 2 accounts: the journal is whole and the views agree with it; .+\.\n$/
          const first = { DATABASE_URL: make("first") }
          await succeeds(["backup", backup], {})
          await succeeds(["restore", backup], first)
          assert.match(await succeeds(["verify"], first), sound)
          assert.match(await succeeds(["backup", backup], first), /^Backed up 0 new records \(/)
          await succeeds(["restore", backup], { TILL_DATA_DIR: back })
          assert.match(await succeeds(["verify"], { TILL_DATA_DIR: back }), sound)

          const dump = Path.join(folder, "dump")
          program("pg_dump", ...place, "-Fc", "-f", dump, "first")
          const second = { DATABASE_URL: make("second") }
          program("pg_restore", ...place, "-d", "second", dump)
          assert.match(await succeeds(["verify"], second), sound)
        })
      }),
    600_000
  )
})
