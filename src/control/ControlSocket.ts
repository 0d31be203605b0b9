/**
 * The local socket by which commands reach a running service. Services alone have the installation in their hands, and
 * what they keep in memory has to change with a command.
 *
 * The socket lies in the data folder, and only the owner of the service may connect to it (mode 0600). So whoever can
 * administer a running installation could administer it as well while it is stopped. A folder whose path is too long
 * for a socket, or whose file system has none, gets one in the system's folder for temporary files, named after the
 * folder. The client trusts a socket only if it belongs to the client's own user or to the folder's.
 *
 * Several services may share a folder, with `DATABASE_URL`. Each has a socket of its own, under a name that no other
 * one ever had, and a command goes to the youngest one that somebody listens on. The socket goes away with its service.
 * A killed service leaves one behind, which the next start on the machine removes. Each request names its database, and
 * a service on another one refuses it.
 */
import { Cause, Data, Effect, Exit, Layer, Option, Schema } from "effect"
import { hash, randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as http from "node:http"
import * as net from "node:net"
import * as os from "node:os"
import * as Path from "node:path"
import { text } from "node:stream/consumers"
import { Unavailable } from "../engine/Accounts.ts"
import { parseJson } from "../json/JsonParse.ts"
import type { Answer } from "../payments/Administration.ts"
import { AdministrationFailed, Command } from "../payments/Administration.ts"

/** The installation that a service serves, or that a command is about. */
export interface Installation {
  /** Path of the data folder. */
  readonly dataFolder: string
  /** The database's name, without a password. */
  readonly database: string
  /** Base of the links that the installation hands out, without a slash at its end. */
  readonly publicUrl: string
}

/** The service could not open its socket. */
export class ControlUnavailable extends Data.TaggedError("ControlUnavailable")<{ readonly message: string }> {}

const DATABASE_HEADER = "till-database"
const BODY_BYTES_MAX = 65_536
const ANSWER_MILLIS_MAX = 30_000
/** Closing waits this long for commands under way, and for whoever holds a connection without a word. */
const CLOSE_MILLIS = 1000
/** macOS allows this much of a socket's path, Linux four bytes more. */
const PATH_BYTES_MAX = 103

/** Where the sockets of a folder can be, in the order in which a service tries it, with what their names begin with. */
const placesOf = (dataFolder: string): ReadonlyArray<{ readonly folder: string; readonly prefix: string }> => {
  const folder = fs.realpathSync(dataFolder)
  return [
    { folder, prefix: "control" },
    { folder: os.tmpdir(), prefix: `till-${hash("sha256", folder).slice(0, 16)}` }
  ]
}

/** The sockets that are there for a data folder, youngest first, whether somebody listens on them or not. */
export const socketsOf = (dataFolder: string): ReadonlyArray<string> =>
  placesOf(dataFolder)
    .flatMap(({ folder, prefix }) =>
      fs
        .readdirSync(folder)
        .filter((name) => name.startsWith(prefix) && name.endsWith(".sock"))
        .map((name) => Path.join(folder, name))
    )
    .flatMap((path) => {
      const stats = fs.lstatSync(path, { throwIfNoEntry: false })
      return stats?.isSocket() === true ? [{ path, since: stats.mtimeMs }] : []
    })
    .toSorted((one, other) => other.since - one.since)
    .map(({ path }) => path)

/** Sockets of other machines that share the folder look as if nobody listened on them. */
const MACHINE = hash("sha256", os.hostname()).slice(0, 6)

/** Has a command carried out, by this process or by the one that serves the installation's account. */
export type CarryOut<R> = (command: Command) => Effect.Effect<Answer, AdministrationFailed | Unavailable, R>

/** Takes commands as long as the layer lives. */
export const layer = <R>(
  installation: Installation,
  carryOut: CarryOut<R>
): Layer.Layer<never, ControlUnavailable, R> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const run = Effect.runPromiseExitWith(yield* Effect.context<R>())
      const server = http.createServer((request, response) => {
        void answer(request, installation, (command) => run(carryOut(command))).then(({ body, status }) => {
          response.writeHead(status, { "content-type": "application/json", connection: "close" })
          response.end(JSON.stringify(body))
        })
      })
      yield* Effect.acquireRelease(open(server, installation), (remove) =>
        Effect.andThen(
          Effect.promise(() => close(server)),
          Effect.sync(remove)
        )
      )
    })
  )

/** Answers with what removes the socket again. */
const open = (server: http.Server, { dataFolder }: Installation): Effect.Effect<() => void, ControlUnavailable> =>
  Effect.tryPromise({
    try: async () => {
      await removeLeftovers(dataFolder)
      const name = `-${MACHINE}-${randomBytes(4).toString("hex")}.sock`
      const [first, second] = placesOf(dataFolder).map(({ folder, prefix }) => Path.join(folder, prefix + name))
      return await listen(server, first!).catch(() => listen(server, second!))
    },
    catch: (cause) =>
      new ControlUnavailable({ message: `Cannot open a socket for commands on ${dataFolder}: ${String(cause)}` })
  })

/** Removes what killed services of this machine have left. A name never comes back, so nobody can take it meanwhile. */
const removeLeftovers = async (dataFolder: string): Promise<void> => {
  for (const path of socketsOf(dataFolder)) {
    const isOurs = Path.basename(path).includes(`-${MACHINE}-`)
    if (isOurs && (await isRefused(path))) fs.rmSync(path, { force: true })
  }
}

const isRefused = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = net.connect(path, () => {
      socket.destroy()
      resolve(false)
    })
    socket.once("error", (error) => resolve("code" in error && error.code === "ECONNREFUSED"))
  })

/**
 * The socket is made in a folder that nobody else can enter, gets its mode there, and takes its place in one step. So
 * it is its owner's alone from the beginning.
 */
const listen = async (server: http.Server, path: string): Promise<() => void> => {
  const folder = fs.mkdtempSync(Path.join(Path.dirname(path), ".till-"))
  try {
    const made = Path.join(folder, "s")
    if (Buffer.byteLength(path) > PATH_BYTES_MAX) throw new Error("the path is too long for a socket")
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject)
      // A process among several of one port has this to itself.
      server.listen({ path: made, exclusive: true }, resolve)
    })
    fs.chmodSync(made, 0o600)
    fs.renameSync(made, path)
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
  return () => fs.rmSync(path, { force: true })
}

const close = (server: http.Server): Promise<void> =>
  new Promise((resolve) => {
    const impatient = setTimeout(() => server.closeAllConnections(), CLOSE_MILLIS)
    server.close(() => {
      clearTimeout(impatient)
      resolve()
    })
    server.closeIdleConnections()
  })

interface Reply {
  readonly status: number
  readonly body: unknown
}

const WRONG_DATABASE = 421

const answer = async (
  request: http.IncomingMessage,
  { database, publicUrl }: Installation,
  run: (command: Command) => Promise<Exit.Exit<Answer, AdministrationFailed | Unavailable>>
): Promise<Reply> => {
  try {
    if (request.headers[DATABASE_HEADER] !== encodeURIComponent(database)) {
      return refusal(WRONG_DATABASE, "The service is running on another database.")
    }
    const chunks: Array<Buffer> = []
    let size = 0
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > BODY_BYTES_MAX) return refusal(400, "The command is too large.")
      chunks.push(chunk)
    }
    const command = Schema.decodeUnknownExit(Command)(parseJson(Buffer.concat(chunks).toString("utf8")))
    if (Exit.isFailure(command)) return refusal(400, "The running service does not know this command.")
    const exit = await run(command.value)
    if (Exit.isSuccess(exit)) return { status: 200, body: addressed(exit.value, publicUrl) }
    const failure = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
    if (failure instanceof AdministrationFailed) return refusal(400, failure.message)
    return refusal(503, failure instanceof Unavailable ? failure.reason : "The service failed.")
  } catch {
    return refusal(400, "The command could not be read.")
  }
}

/** Only the service knows where it is: what a command is started with need not be what the service was. */
const addressed = (answer: Answer, publicUrl: string): Answer =>
  answer.link === undefined ? answer : { ...answer, link: publicUrl + answer.link }

const refusal = (status: number, message: string): Reply => ({ status, body: { message } })

/** The answer of the service that is running on the installation; none if no service is. */
export const ask = (
  installation: Installation,
  command: Command
): Effect.Effect<Option.Option<Answer>, AdministrationFailed> =>
  Effect.gen(function* () {
    for (const path of trusted(installation.dataFolder)) {
      const reply = yield* Effect.promise(() => post(path, installation.database, command))
      if (reply === undefined || reply.status === WRONG_DATABASE) continue
      if (reply.status === 200) return Option.some(reply.body as Answer)
      const message = (reply.body as { readonly message?: unknown } | null)?.message
      return yield* new AdministrationFailed({ message: typeof message === "string" ? message : "The service failed." })
    }
    return Option.none()
  })

/** The sockets that are there, without those that a stranger has put into the folder for temporary files. */
const trusted = (dataFolder: string): ReadonlyArray<string> => {
  const folder = fs.statSync(dataFolder, { throwIfNoEntry: false })
  if (folder === undefined) return []
  return socketsOf(dataFolder).filter((path) => {
    const owner = fs.lstatSync(path, { throwIfNoEntry: false })?.uid
    return owner !== undefined && [process.geteuid?.(), folder.uid].includes(owner)
  })
}

/** Answers with nothing if nothing can have been done, because nobody listens. */
const post = async (socketPath: string, database: string, command: Command): Promise<Reply | undefined> => {
  try {
    const signal = AbortSignal.timeout(ANSWER_MILLIS_MAX)
    const headers = { [DATABASE_HEADER]: encodeURIComponent(database), "content-type": "application/json" }
    const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
      const request = http.request({ socketPath, method: "POST", headers, signal, agent: false }, resolve)
      request.once("error", reject).end(JSON.stringify(command))
    })
    return { status: response.statusCode ?? 503, body: parseJson(await text(response)) }
  } catch (cause) {
    if (cause instanceof Error && "syscall" in cause && cause.syscall === "connect") return undefined
    return { status: 503, body: { message: "The running service did not answer; list the merchants or keys to see." } }
  }
}
