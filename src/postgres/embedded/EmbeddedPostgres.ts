/**
 * A Postgres server that Till runs itself, for installations without `DATABASE_URL`.
 *
 * Guarantees: committed data is on the disk (fsync and synchronous_commit are on, as by default). The server listens on
 * a socket in a folder that only its user may enter, which costs both sides less than TCP, and on loopback, on a free
 * port; both require a password that only the data folder's owner can read. Closing the scope stops the server. If Till
 * is killed, the server continues, and the next Till on the folder adopts it. If the server is killed, it is started
 * again on the same port, so that clients just reconnect. It does not survive a full disk: then the start fails with
 * one line.
 */
import { PgConnection } from "@effect/sql-pg"
import { Effect, Option, Redacted, Schedule, type Scope } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import * as Loop from "../../engine/process/Loop.ts"
import { announce } from "./Announcement.ts"
import {
  administrate,
  cannotRun,
  type Cluster,
  databaseName,
  findCluster,
  isSecured,
  openCluster,
  pathIn,
  roleName,
  secure,
  type ServedCluster,
  startFailure
} from "./Cluster.ts"
import { hold, prepare } from "./DataFolder.ts"
import { attempt, describeCause, embeddedPostgresError, type EmbeddedPostgresError } from "./EmbeddedPostgresError.ts"
import { freePort } from "./FreePort.ts"
import { openToAppend, write } from "./OwnFiles.ts"
import {
  disownLeftover,
  isAtWorkOn,
  removeDeadSockets,
  findServer,
  signal,
  spawnDetached,
  type EndOfProcess
} from "./Postmaster.ts"
import { logOf } from "../../engine/process/Log.ts"

const log = logOf("postgres")

export { EmbeddedPostgresError } from "./EmbeddedPostgresError.ts"

export interface EmbeddedPostgres {
  /** `postgres://…`, with the password. */
  readonly url: Redacted.Redacted
  readonly port: number
  /** True if a killed Till had left the server running. */
  readonly adopted: boolean
  /** The server's current process id, which changes when the server is started again. */
  readonly processId: Effect.Effect<number>
}

// For two cores and many small commits: few processes, rare checkpoints while little is written, no costly planning.
// All other settings are Postgres' defaults. The log contains no statements and key values, which hold customers' data.
const settings: Record<string, string> = {
  listen_addresses: "127.0.0.1",
  shared_buffers: "256MB",
  wal_buffers: "16MB",
  // A new WAL segment is not filled with zeros first, which delayed all commits by 50 ms, once per 4,000 of them.
  // Commits are flushed nevertheless.
  wal_init_zero: "off",
  // On macOS a plain fsync leaves data in the disk's volatile cache.
  ...(process.platform === "darwin" && { wal_sync_method: "fsync_writethrough" }),
  min_wal_size: "256MB",
  checkpoint_timeout: "15min",
  max_parallel_workers_per_gather: "0",
  max_logical_replication_workers: "0",
  io_method: "sync",
  jit: "off",
  timezone: "UTC",
  log_timezone: "UTC",
  logging_collector: "off",
  log_checkpoints: "off",
  log_error_verbosity: "terse",
  log_min_error_statement: "panic"
}

/** The size of a database from which its checkpoints are rarer, in bytes. */
const LARGE_BYTES = 4 * 2 ** 30

/**
 * Returns the limit of the WAL's size. While the data is small, a checkpoint every ten seconds costs less than a WAL
 * whose segments are all new pages of memory. With much data, the first change of a page after a checkpoint writes the
 * whole page into the WAL, and most changes are the first ones: with nine million payments, ten times the bytes.
 */
const walSizeFor = (dataBytes: number): string => (dataBytes < LARGE_BYTES ? "512MB" : "2GB")

const bytesOf = (folder: string): number =>
  fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .reduce((sum, file) => sum + (file.isFile() ? fs.statSync(Path.join(file.parentPath, file.name)).size : 0), 0)

/** Returns the connection limit: 15 for each process of Till's, and 35 for commands beside them. */
const connectionsFor = (processes: number): number => 35 + 15 * processes

export interface EmbeddedPostgresOptions {
  readonly dataFolder: string
  /** How many processes of Till's use the server; 1 by default. */
  readonly processes?: number
}

/** Starts (or adopts) the embedded Postgres of the data folder; it is stopped when the scope closes. */
export const make = Effect.fnUntraced(function* (
  options: EmbeddedPostgresOptions
): Effect.fn.Return<EmbeddedPostgres, EmbeddedPostgresError, Scope.Scope> {
  const folder = yield* hold(options.dataFolder)
  const cluster = yield* openCluster(folder)
  if (!(yield* attempt(`read ${cluster.path}`, () => isSecured(cluster)))) {
    // A killed Till may have left its server running.
    yield* stop(cluster)
    yield* secure(cluster)
  }
  const adopted = yield* adopt(cluster)
  const connections = connectionsFor(options.processes ?? 1)
  if (adopted === undefined) yield* announce("Starting the database …")
  const first = yield* Effect.acquireRelease(
    adopted === undefined ? start(cluster, connections) : Effect.succeed(adopted),
    () => stop(cluster),
    { interruptible: true }
  )
  let server: Server = first
  const { port, socketFolder } = first
  const again = Effect.gen(function* () {
    yield* server.ended
    server = yield* restart(cluster, connections, port)
  })
  yield* Effect.forkScoped(Loop.forever("watch over Postgres", again))
  const bounded = Effect.andThen(boundLog(cluster), Effect.sleep(logCheckInterval))
  yield* Effect.forkScoped(Loop.forever("watch over Postgres' log", bounded))
  return {
    url: connectionUrl(cluster, port, socketFolder),
    port,
    adopted: adopted !== undefined,
    processId: Effect.sync(() => server.processId)
  }
})

/**
 * Runs statements that write tables anew, and uses up all files of the write-ahead log that hold anything of before;
 * they are deleted then. No Till may run on the data folder.
 */
export const purge = (
  dataFolder: string,
  statements: ReadonlyArray<string>
): Effect.Effect<void, EmbeddedPostgresError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const cluster = yield* openCluster(yield* hold(dataFolder))
      yield* stop(cluster)
      const segments = yield* attempt(`read ${cluster.path}`, () => fs.readdirSync(Path.join(cluster.path, "pg_wal")))
      // Files are prepared ahead from old ones: each is written over by a switch.
      const switches = segments.flatMap(() => [
        "SELECT pg_logical_emit_message(false, 'till', 'purge')",
        "SELECT pg_switch_wal()"
      ])
      yield* administrate(cluster, [...statements, ...switches, "CHECKPOINT"], ["wal_recycle=off"])
      yield* secure(cluster)
    })
  )

/** Stops the server of a data folder whose Till has ended, without waiting for it. */
export const endAbandoned = (dataFolder: string): void => {
  const found = findServer(pathIn(fs.realpathSync(dataFolder)))
  if (found !== undefined) signal(found.processId, "SIGINT")
}

/** How long a server is awaited that another process is starting. */
const beingStarted = Schedule.spaced("100 millis").pipe(Schedule.upTo({ duration: "10 seconds" }))

/** Returns the server of the data folder: the running one, otherwise one that is started here. */
export const reach = (options: {
  readonly dataFolder: string
}): Effect.Effect<Pick<EmbeddedPostgres, "url">, EmbeddedPostgresError, Scope.Scope> =>
  Effect.catchIf(
    make(options),
    ({ reason }) => reason === "FolderInUse",
    (inUse) =>
      Effect.gen(function* () {
        const folder = yield* prepare(options.dataFolder)
        const cluster = yield* findCluster(folder)
        const found = cluster && findServer(cluster.path)
        if (cluster === undefined || found?.port === undefined) return yield* inUse
        yield* checkAnswer(cluster, found.port, found.socketFolder)
        return { url: connectionUrl(cluster, found.port, found.socketFolder) }
      }).pipe(Effect.retry({ schedule: beingStarted, while: ({ reason }) => reason === "FolderInUse" }))
  )

interface Server {
  readonly processId: number
  readonly port: number
  readonly socketFolder: string | undefined
  readonly ended: Effect.Effect<void>
}

/** Builds a URL for libpq: a socket's folder replaces the host. */
const connectionUrl = (cluster: ServedCluster, port: number, socketFolder: string | undefined) => {
  const url = new URL(`postgres://${roleName}:${Redacted.value(cluster.password)}@127.0.0.1:${port}/${databaseName}`)
  url.searchParams.set("sslmode", "disable")
  if (socketFolder !== undefined) url.searchParams.set("host", socketFolder)
  return Redacted.make(url.href, { label: "embedded database" })
}

const pollInterval = "10 millis"

/** Waits for the server that a killed Till left running; undefined if there is none. */
const adopt = Effect.fnUntraced(function* (
  cluster: Cluster
): Effect.fn.Return<Server | undefined, EmbeddedPostgresError> {
  while (true) {
    const found = findServer(cluster.path)
    if (found === undefined) return undefined
    // Without a port it is starting or stopping: the next polls find it ready or gone.
    const { port, processId, socketFolder } = found
    if (port !== undefined) {
      yield* checkAnswer(cluster, port, socketFolder)
      return { processId, port, socketFolder, ended: endOfStranger(processId, cluster) }
    }
    yield* Effect.sleep(pollInterval)
  }
})

// The system reports the end only of child processes, so the end of others is polled.
const endOfStranger = (processId: number, cluster: Cluster): Effect.Effect<void> =>
  Effect.suspend(() =>
    isAtWorkOn(processId, cluster.path)
      ? Effect.andThen(Effect.sleep("250 millis"), endOfStranger(processId, cluster))
      : Effect.void
  )

const checkAnswer = (
  cluster: ServedCluster,
  port: number,
  socketFolder: string | undefined
): Effect.Effect<void, EmbeddedPostgresError> =>
  Effect.gen(function* () {
    const url = connectionUrl(cluster, port, socketFolder)
    const connection = yield* PgConnection.make({ url, applicationName: "till start" })
    // A successful login shows that the server is this cluster's: SCRAM proves the password to both sides.
    yield* connection.queryValues("SELECT 1")
  }).pipe(
    Effect.scoped,
    Effect.mapError((error) =>
      embeddedPostgresError(
        "StartFailed",
        `A Postgres left running on ${cluster.path} does not answer as it should: ${describeCause(error)}.`
      )
    )
  )

/** How often a start is tried again if the port was taken, or children of a dead server are still running. */
const startAttempts = 100

const start = Effect.fnUntraced(function* (
  cluster: Cluster,
  connections: number,
  fixedPort?: number
): Effect.fn.Return<Server, EmbeddedPostgresError> {
  for (let attemptsLeft = startAttempts; ; attemptsLeft--) {
    const port = fixedPort ?? (yield* anyPort)
    const logged = yield* attempt(`write ${cluster.logFile}`, () => logSize(cluster))
    const outcome = yield* startOnce(cluster, connections, port)
    if ("processId" in outcome) return outcome
    const output = yield* attempt(`read ${cluster.logFile}`, () => logSince(cluster, logged))
    // The log's terse messages do not distinguish further why a lock is held.
    const isTransient =
      /Address already in use|pre-existing shared memory block|lock file "[^"]*" already exists/i.test(output)
    if (!isTransient || attemptsLeft === 0) return yield* startFailure("Postgres did not start", output)
    yield* Effect.sleep("100 millis")
  }
})

const anyPort: Effect.Effect<number, EmbeddedPostgresError> = Effect.mapError(freePort("127.0.0.1", 0), (cause) =>
  embeddedPostgresError("StartFailed", `No free port on 127.0.0.1: ${describeCause(cause)}.`)
)

const startOnce = Effect.fnUntraced(function* (
  cluster: Cluster,
  connections: number,
  port: number
): Effect.fn.Return<Server | EndOfProcess, EmbeddedPostgresError> {
  const dataBytes = yield* attempt(`read ${cluster.path}`, () => bytesOf(Path.join(cluster.path, "base")))
  const own = {
    port: String(port),
    max_connections: String(connections),
    max_wal_size: walSizeFor(dataBytes),
    unix_socket_directories: cluster.socketFolder ?? ""
  }
  const args = Object.entries({ ...settings, ...own }).flatMap(([name, value]) => ["-c", `${name}=${value}`])
  const command = yield* cluster.command("postgres", ["-D", cluster.path, ...args])
  const child = yield* attempt(`start Postgres on ${cluster.path}`, () => {
    disownLeftover(cluster.path)
    if (cluster.socketFolder !== undefined) removeDeadSockets(cluster.path, cluster.socketFolder)
    const log = openToAppend(cluster.logFile)
    try {
      return spawnDetached(command, log, cluster.path)
    } finally {
      fs.closeSync(log)
    }
  })
  const ended = Effect.promise(() => child.ended)
  // No time limit: after a crash, Postgres first replays its WAL, which may be long.
  const ready: Effect.Effect<Server> = Effect.suspend(() => {
    const found = findServer(cluster.path)
    return found !== undefined && found.processId === child.processId && found.port !== undefined
      ? Effect.succeed({
          processId: found.processId,
          port,
          socketFolder: found.socketFolder,
          ended: Effect.asVoid(ended)
        })
      : Effect.andThen(Effect.sleep(pollInterval), ready)
  })
  const abandon = Effect.andThen(
    Effect.sync(() => child.processId !== undefined && signal(child.processId, "SIGINT")),
    Effect.timeoutOption(ended, "2 seconds")
  )
  const outcome = yield* Effect.raceFirst(ready, ended).pipe(Effect.onInterrupt(() => abandon))
  return "cause" in outcome ? yield* cannotRun(command, outcome.cause) : outcome
})

/** Starts a server that has ended again, on the same port, until it succeeds. */
const restart = (cluster: Cluster, connections: number, port: number): Effect.Effect<Server> =>
  Effect.andThen(
    log.warning("The embedded Postgres ended; starting it again"),
    start(cluster, connections, port).pipe(
      Effect.tapError((error) => log.error(error.message, undefined, { cause: "restart" })),
      Effect.catch(() => Effect.andThen(Effect.sleep("2 seconds"), restart(cluster, connections, port)))
    )
  )

/** Stops a server by a fast shutdown, and after 6 seconds by an immediate one. */
const stop = (cluster: Cluster): Effect.Effect<void> => {
  // The server removes its file shortly before its process ends.
  let processId: number | undefined
  const isGone = () =>
    findServer(cluster.path) === undefined && (processId === undefined || !isAtWorkOn(processId, cluster.path))
  const send = (name: NodeJS.Signals) =>
    Effect.sync(() => {
      const found = findServer(cluster.path)
      if (found === undefined) return
      processId = found.processId
      signal(processId, name)
    })
  const gone: Effect.Effect<void> = Effect.suspend(() =>
    isGone() ? Effect.void : Effect.andThen(Effect.sleep(pollInterval), gone)
  )
  return Effect.andThen(send("SIGINT"), gone).pipe(
    Effect.timeoutOption("6 seconds"),
    Effect.flatMap(
      Option.match({
        onSome: () => Effect.void,
        onNone: () => Effect.andThen(send("SIGQUIT"), gone).pipe(Effect.timeoutOption("2 seconds"), Effect.asVoid)
      })
    )
  )
}

const logCheckInterval = "10 minutes"
const logBytesMax = 8 * 1024 * 1024

const logSize = (cluster: Cluster): number => fs.lstatSync(cluster.logFile, { throwIfNoEntry: false })?.size ?? 0

const logSince = (cluster: Cluster, offset: number): string =>
  fs.readFileSync(cluster.logFile).subarray(offset).toString("utf8")

// The server appends through a descriptor of its own, so the file is emptied in place, never replaced.
const boundLog = (cluster: Cluster): Effect.Effect<void> =>
  attempt("bound the log", () => {
    if (logSize(cluster) <= logBytesMax) return
    const kept = `${cluster.logFile}.1`
    fs.rmSync(kept, { force: true })
    fs.copyFileSync(cluster.logFile, kept, fs.constants.COPYFILE_EXCL)
    write(cluster.logFile, "")
  }).pipe(Effect.ignore)
