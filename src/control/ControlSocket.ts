/**
 * The local socket by which commands reach a running service. Only the service may change the installation while it
 * runs, because its memory has to change too.
 *
 * The socket lies in the data folder, and only the user that runs the service may connect to it (mode 0600): exactly
 * the user that could administer the stopped installation. If the folder's path is too long for a socket, or its file
 * system has no sockets, the socket lies in the system's temporary folder, named after the data folder. A client trusts
 * a socket only if it belongs to the client's own user or to the data folder's.
 *
 * Several services may share a folder, with `DATABASE_URL`. Each has its own socket under a unique name, and a command
 * goes to the youngest socket that accepts connections. A service removes its socket when it ends; the socket of a
 * killed service is removed by the next start on that machine. Each request names its database, and a service on
 * another database refuses it. Commands that only processes send each other are refused, too.
 */
import { Cause, Data, Effect, Exit, Layer, Option } from "effect"
import { hash, randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as http from "node:http"
import * as net from "node:net"
import * as os from "node:os"
import * as Path from "node:path"
import { text } from "node:stream/consumers"
import type { Unavailable } from "../engine/Accounts.ts"
import { parseJson } from "../json/JsonParse.ts"
import {
  type Administered,
  AdministrationFailed,
  type OperatorCommand
} from "../payments/administration/Administration.ts"
import {
  decodeCommand,
  type JsonResponse,
  readResponse,
  refusal,
  refusalOf,
  success
} from "../payments/administration/AdministrationWire.ts"

export interface Installation {
  readonly dataFolder: string
  /** The database's name, without a password. */
  readonly database: string
  /** Base of the installation's links, without a trailing slash. */
  readonly publicUrl: string
}

export class ControlUnavailable extends Data.TaggedError("ControlUnavailable")<{ readonly message: string }> {}

const DATABASE_HEADER = "till-database"
const COMMAND_BYTES_MAX = 65_536
const ANSWER_MILLIS_MAX = 30_000
/** Closing waits this long for running commands and for idle connections. */
const CLOSE_MILLIS = 1000
/** The longest socket path on macOS; Linux allows four bytes more. */
const PATH_BYTES_MAX = 103

/** The places of a folder's sockets, in the order in which a service tries them, with the prefix of their names. */
const placesOf = (dataFolder: string): ReadonlyArray<{ readonly folder: string; readonly prefix: string }> => {
  const folder = fs.realpathSync(dataFolder)
  return [
    { folder, prefix: "control" },
    { folder: os.tmpdir(), prefix: `till-${hash("sha256", folder).slice(0, 16)}` }
  ]
}

/** Lists the existing sockets of a data folder, youngest first, including those of killed services. */
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

/** In each name, because a socket of another machine that shares the folder looks as if its service were killed. */
const MACHINE = hash("sha256", os.hostname()).slice(0, 6)

/** Runs a command, in this process or in the one that serves the installation's account. */
export type CarryOut<R> = (
  command: OperatorCommand
) => Effect.Effect<Administered, AdministrationFailed | Unavailable, R>

/** Accepts commands as long as the layer lives. */
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
      yield* Effect.acquireRelease(openSocket(server, installation), (remove) =>
        Effect.andThen(
          Effect.promise(() => close(server)),
          Effect.sync(remove)
        )
      )
    })
  )

/** Opens a socket and returns the function that removes it. */
const openSocket = (server: http.Server, { dataFolder }: Installation): Effect.Effect<() => void, ControlUnavailable> =>
  Effect.tryPromise({
    try: async () => {
      await removeLeftovers(dataFolder)
      const name = `-${MACHINE}-${randomBytes(4).toString("hex")}.sock`
      const [first, second] = placesOf(dataFolder).map(({ folder, prefix }) => Path.join(folder, prefix + name))
      return await listenAt(server, first!).catch(() => listenAt(server, second!))
    },
    catch: (cause) =>
      new ControlUnavailable({ message: `Cannot open a socket for commands on ${dataFolder}: ${String(cause)}` })
  })

/** Removes the sockets of killed services of this machine. Names are unique, so no running service uses one of them. */
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
 * Creates the socket in a folder that no other user can enter, sets its mode there, and moves it to its place in one
 * step: no other user can connect at any moment.
 */
const listenAt = async (server: http.Server, path: string): Promise<() => void> => {
  const folder = fs.mkdtempSync(Path.join(Path.dirname(path), ".till-"))
  try {
    const made = Path.join(folder, "s")
    if (Buffer.byteLength(path) > PATH_BYTES_MAX) throw new Error("the path is too long for a socket")
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject)
      // Exclusive: a cluster worker would otherwise share the socket with its siblings.
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

const WRONG_DATABASE = 421

const answer = async (
  request: http.IncomingMessage,
  { database, publicUrl }: Installation,
  run: (command: OperatorCommand) => Promise<Exit.Exit<Administered, AdministrationFailed | Unavailable>>
): Promise<JsonResponse> => {
  try {
    if (request.headers[DATABASE_HEADER] !== encodeURIComponent(database)) {
      return refusal(WRONG_DATABASE, "The service is running on another database.")
    }
    const chunks: Array<Buffer> = []
    let size = 0
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > COMMAND_BYTES_MAX) return refusal(400, "The command is too large.")
      chunks.push(chunk)
    }
    const body = parseJson(Buffer.concat(chunks).toString("utf8"))
    const command = await Effect.runPromiseExit(decodeCommand(body))
    if (Exit.isFailure(command)) return refusal(400, "The running service does not support this command.")
    const exit = await run(command.value)
    if (Exit.isSuccess(exit)) return success(addressed(exit.value, publicUrl))
    return refusalOf(Option.getOrUndefined(Cause.findErrorOption(exit.cause)))
  } catch {
    return refusal(400, "The command could not be read.")
  }
}

/** Adds the address to the answer's link. The service's public URL may differ from that of the command's process. */
const addressed = (answer: Administered, publicUrl: string): Administered =>
  answer.link === undefined ? answer : { ...answer, link: publicUrl + answer.link }

/** Runs the command in the service that is running on the installation; none if no service is. */
export const send = (
  installation: Installation,
  command: OperatorCommand
): Effect.Effect<Option.Option<Administered>, AdministrationFailed> =>
  Effect.gen(function* () {
    for (const path of trustedSocketsOf(installation.dataFolder)) {
      const reply = yield* Effect.promise(() => post(path, installation.database, command))
      if (reply !== undefined && reply.status !== WRONG_DATABASE) return Option.some(yield* readResponse(reply))
    }
    return Option.none()
  }).pipe(Effect.catchTag("Unavailable", ({ reason: message }) => new AdministrationFailed({ message })))

/** Lists the folder's sockets, without those that another user put into the system's temporary folder. */
const trustedSocketsOf = (dataFolder: string): ReadonlyArray<string> => {
  const folder = fs.statSync(dataFolder, { throwIfNoEntry: false })
  if (folder === undefined) return []
  return socketsOf(dataFolder).filter((path) => {
    const owner = fs.lstatSync(path, { throwIfNoEntry: false })?.uid
    return owner !== undefined && [process.geteuid?.(), folder.uid].includes(owner)
  })
}

/** Returns undefined if no service listens on the socket: then the command was not run. */
const post = async (
  socketPath: string,
  database: string,
  command: OperatorCommand
): Promise<JsonResponse | undefined> => {
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
    return refusal(503, "The running service did not answer. The command may have run: list the merchants or keys.")
  }
}
