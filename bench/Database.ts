/**
 * A Postgres of a run: an embedded one with its data in a temporary folder, or the server that `DATABASE_URL` names.
 * Its durability settings are the defaults; the run refuses a server with others. Each contender has a Postgres of its
 * own; on a named server, it has a database of its own, which is dropped afterwards.
 */
import { randomUUID } from "node:crypto"
import { mkdtempSync, rmSync, statfsSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Redacted, Scope } from "effect"
import { Client } from "pg"
import * as EmbeddedPostgres from "../src/postgres/embedded/EmbeddedPostgres.ts"
import { grantIn, MAKES_DATABASES } from "../test/support/DatabaseRights.ts"
import { BenchFailure, failureOf } from "./BenchFailure.ts"
import * as ProcessTime from "./ProcessTime.ts"

export interface Database {
  readonly version: string
  /** Creates an empty database and gives its URL. */
  readonly create: (name: string) => Effect.Effect<string, BenchFailure>
  /** Returns the number that a query selects, in a created database, or without a name in the URL's database. */
  readonly count: (name: string, query: string) => Effect.Effect<number, BenchFailure>
  /** Returns the rows that a query selects. */
  readonly rows: (
    name: string,
    query: string
  ) => Effect.Effect<ReadonlyArray<Readonly<Record<string, string>>>, BenchFailure>
  /** Writes the dirty pages in Postgres' memory, so that no later measurement pays for them. */
  readonly checkpoint: Effect.Effect<void, BenchFailure>
  /** CPU time of the whole server in microseconds; undefined if the server runs on another machine, or not on Linux. */
  readonly cpuMicros: () => number | undefined
}

/** The database of a server that stores nothing. */
export const none: Database = {
  version: "",
  create: () => Effect.succeed(""),
  count: () => Effect.succeed(0),
  rows: () => Effect.succeed([]),
  checkpoint: Effect.void,
  cpuMicros: () => 0
}

/** A new folder, removed with the scope. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "till-bench-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** Type of a file system in memory on Linux. */
const TMPFS = 0x01021994

const urlOf = Effect.fnUntraced(function* (mayBeInMemory: boolean) {
  const given = process.env["DATABASE_URL"]
  if (given !== undefined && given !== "") return given
  return yield* embedded(yield* temporaryFolder, mayBeInMemory)
})

/** Starts an embedded Postgres with its data in a folder. */
const embedded = Effect.fnUntraced(function* (folder: string, mayBeInMemory: boolean) {
  const dataFolder = join(folder, "data")
  if (!mayBeInMemory && statfsSync(folder).type === TMPFS) {
    return yield* new BenchFailure({
      problem: `${folder} is in memory: nothing there is durable. Choose a folder on a disk, with TMPDIR for temporary ones.`
    })
  }
  const server = yield* Effect.mapError(
    Effect.andThen(grantIn(dataFolder, MAKES_DATABASES), EmbeddedPostgres.make({ dataFolder })),
    failureOf("Postgres does not start")
  )
  return Redacted.value(server.url)
})

const CONNECT_MILLIS_MAX = 10_000

const connect = (connectionString: string) =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        const client = new Client({ connectionString, connectionTimeoutMillis: CONNECT_MILLIS_MAX })
        // The server may end before its connections, which then carry no query.
        client.on("error", () => {})
        await client.connect()
        return client
      },
      catch: failureOf("Postgres does not answer")
    }),
    (client) => Effect.promise(() => client.end().catch(() => {}))
  )

const query = (client: Client, text: string) =>
  Effect.tryPromise({
    try: async () => (await client.query<Record<string, string>>(text)).rows,
    catch: failureOf(`Postgres refuses "${text}"`)
  })

const requireDurability = Effect.fnUntraced(function* (client: Client) {
  for (const setting of ["fsync", "synchronous_commit", "full_page_writes"]) {
    const [row] = yield* query(client, `SHOW ${setting}`)
    if (row?.[setting] !== "on") return yield* new BenchFailure({ problem: `This Postgres runs without ${setting}.` })
  }
})

export const make = Effect.suspend(() => Effect.flatMap(urlOf(false), at))

/** The same for figures that do not depend on the disk: its folder may be in memory. */
export const makeAnywhere = Effect.suspend(() => Effect.flatMap(urlOf(true), at))

/** Opens a Postgres in a folder that outlives the run. Its databases are created once. */
export const makeKept = (folder: string) =>
  Effect.flatMap(embedded(folder, false), (server) => at(server, { isKept: true }))

/** Connects to a running server. */
export const at = Effect.fnUntraced(function* (server: string, { isKept = false } = {}) {
  const admin = yield* connect(server)
  yield* requireDurability(admin)
  const [info] = yield* query(admin, "SELECT current_setting('server_version') AS version, pg_backend_pid() AS backend")
  const backend = Number(info!["backend"])
  // A process id in a container differs from the id here.
  const isHere = isLocal(server) && ProcessTime.nameOf(backend)?.startsWith("postgres") === true
  const postmaster = isHere ? ProcessTime.parentOf(backend) : undefined
  // Two runs on one server must not drop each other's databases.
  const run = isKept ? "kept" : randomUUID().slice(0, 8)
  const clients = new Map<string, Client>()
  const scope = yield* Effect.scope

  const clientOf = (name: string) => (name === "" ? admin : clients.get(name)!)

  const create = Effect.fnUntraced(function* (name: string) {
    const database = `till_bench_${name.toLowerCase()}_${run}`
    const address = Object.assign(new URL(server), { pathname: `/${database}` }).toString()
    const drop = Effect.ignore(query(admin, `DROP DATABASE IF EXISTS ${database} WITH (FORCE)`))
    const isThere = (yield* query(admin, `SELECT FROM pg_database WHERE datname = '${database}'`)).length > 0
    if (!isThere) yield* query(admin, `CREATE DATABASE ${database}`)
    if (!isKept) yield* Scope.addFinalizer(scope, drop)
    clients.set(name, yield* connect(address).pipe(Effect.provideService(Scope.Scope, scope)))
    return address
  })

  return {
    version: info!["version"]!.split(" ")[0]!,
    create,
    count: (name, text) => Effect.map(query(clientOf(name), text), ([row]) => Number(Object.values(row ?? {})[0])),
    rows: (name, text) => query(clientOf(name), text),
    checkpoint: Effect.asVoid(query(admin, "CHECKPOINT")),
    cpuMicros: () => (postmaster === undefined ? undefined : ProcessTime.ofTree(postmaster))
  } satisfies Database as Database
})

const isLocal = (server: string): boolean => ["", "localhost", "127.0.0.1", "[::1]"].includes(new URL(server).hostname)
