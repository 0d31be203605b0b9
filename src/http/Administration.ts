/**
 * How commands of administration reach a running service: it alone has the installation in its hands, and what it has in
 * memory must change with them.
 *
 * The service listens on a port of its own, on loopback only, and asks for a token that is new at every start. Port and
 * token lie in a file that only the owner of the data folder can read; so whoever can administer a running installation
 * could administer it as well while it is stopped. The file goes away with the service; one that a killed service left
 * leads nowhere, and its token opens nothing.
 */
import { Cause, Effect, Exit, Layer, Option, Schema } from "effect"
import { randomBytes, timingSafeEqual } from "node:crypto"
import * as fs from "node:fs"
import * as http from "node:http"
import * as Path from "node:path"
import { Unavailable } from "../engine/Accounts.ts"
import type { Accounts } from "../engine/Accounts.ts"
import type { Answer } from "../payments/Administration.ts"
import { AdministrationFailed, administer, Command } from "../payments/Administration.ts"

/** Where a running service takes commands. */
interface Address {
  readonly port: number
  readonly token: string
  /** Which installation it has. */
  readonly installation: string
}

/** The service could not open its door for administration. */
export class AdministrationUnavailable extends Schema.TaggedError<AdministrationUnavailable>()(
  "AdministrationUnavailable",
  {
    message: Schema.String
  }
) {}

/** What only this door says, so that nobody else is taken for it. */
const SIGN = { "till-administration": "1" }

const BODY_BYTES_MAX = 65_536
const ANSWER_MILLIS_MAX = 30_000
/** How long closing waits for commands under way, and for whoever holds a connection without a word. */
const CLOSE_MILLIS = 1000

/** The same file in the copy of a folder, or beside another database, is of another installation. */
const installationOf = (file: string, database: string): string =>
  `${database} of ${fs.realpathSync(Path.dirname(file))}`

/** Takes commands as long as the layer lives, and tells where in `file`. `database` names the one in use. */
export const layer = (file: string, database: string): Layer.Layer<never, AdministrationUnavailable, Accounts> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const run = Effect.runPromiseExitWith(yield* Effect.context<Accounts>())
      const token = randomBytes(32).toString("hex")
      const server = http.createServer((request, response) => {
        void answer(request, token, (command) => run(administer(command))).then(({ body, status }) => {
          response.writeHead(status, { ...SIGN, "content-type": "application/json", connection: "close" })
          response.end(JSON.stringify(body))
        })
      })
      const port = yield* Effect.acquireRelease(listen(server), () => Effect.promise(() => close(server)))
      yield* Effect.acquireRelease(
        Effect.try({
          try: () => publish(file, { port, token, installation: installationOf(file, database) }),
          catch: (cause) => new AdministrationUnavailable({ message: `Cannot write ${file}: ${String(cause)}` })
        }),
        // Another process on the same folder may have put its own in place.
        () => Effect.sync(() => addressIn(file)?.token === token && fs.rmSync(file, { force: true }))
      )
    })
  )

const listen = (server: http.Server): Effect.Effect<number, AdministrationUnavailable> =>
  Effect.callback((resume) => {
    server.once("error", (cause) =>
      resume(Effect.fail(new AdministrationUnavailable({ message: `No free port on 127.0.0.1: ${cause.message}` })))
    )
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

const close = (server: http.Server): Promise<void> =>
  new Promise((resolve) => {
    const impatient = setTimeout(() => server.closeAllConnections(), CLOSE_MILLIS)
    server.close(() => {
      clearTimeout(impatient)
      resolve()
    })
    server.closeIdleConnections()
  })

/** The file appears whole, and is its owner's alone from the beginning. */
const publish = (file: string, address: Address): void => {
  const temporary = `${file}.${randomBytes(6).toString("hex")}`
  fs.writeFileSync(temporary, JSON.stringify(address), { mode: 0o600, flag: "wx" })
  fs.renameSync(temporary, file)
}

interface Reply {
  readonly status: number
  readonly body: unknown
}

const answer = async (
  request: http.IncomingMessage,
  token: string,
  run: (command: Command) => Promise<Exit.Exit<Answer, AdministrationFailed | Unavailable>>
): Promise<Reply> => {
  try {
    if (!isEqual(request.headers.authorization ?? "", `Bearer ${token}`)) return refusal(401, "Not allowed.")
    const chunks: Array<Buffer> = []
    let size = 0
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > BODY_BYTES_MAX) return refusal(400, "The command is too large.")
      chunks.push(chunk)
    }
    const command = Schema.decodeUnknownExit(Command)(JSON.parse(Buffer.concat(chunks).toString("utf8")))
    if (Exit.isFailure(command)) return refusal(400, "The running service does not know this command.")
    const exit = await run(command.value)
    if (Exit.isSuccess(exit)) return { status: 200, body: exit.value }
    const failure = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
    if (failure instanceof AdministrationFailed) return refusal(400, failure.message)
    return refusal(503, failure instanceof Unavailable ? failure.reason : "The service failed.")
  } catch {
    return refusal(400, "The command could not be read.")
  }
}

const refusal = (status: number, message: string): Reply => ({ status, body: { message } })

const isEqual = (given: string, expected: string): boolean => {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}

/** The answer of the service that is running on `file` and `database`; none if no service is. */
export const ask = (
  file: string,
  database: string,
  command: Command
): Effect.Effect<Option.Option<Answer>, AdministrationFailed> =>
  Effect.gen(function* () {
    const address = addressIn(file)
    if (address === undefined || address.installation !== installationOf(file, database)) return Option.none()
    const reply = yield* Effect.promise(() => post(address, command))
    // 401: another service got the port of a killed one.
    if (reply === undefined || reply.status === 401) return Option.none()
    if (reply.status === 200) return Option.some(reply.body as Answer)
    const message = (reply.body as { readonly message?: unknown } | null)?.message
    return yield* new AdministrationFailed({ message: typeof message === "string" ? message : "The service failed." })
  })

const addressIn = (file: string): Address | undefined => {
  try {
    const { installation, port, token } = JSON.parse(fs.readFileSync(file, "utf8")) as Partial<Address>
    if (typeof port !== "number" || typeof token !== "string" || typeof installation !== "string") return undefined
    return { installation, port, token }
  } catch {
    return undefined
  }
}

/** Nothing if nothing can have been done: nobody is there, or somebody else. */
const post = async ({ port, token }: Address, command: Command): Promise<Reply | undefined> => {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(command),
      signal: AbortSignal.timeout(ANSWER_MILLIS_MAX)
    })
    if (!response.headers.has(Object.keys(SIGN)[0]!)) return undefined
    return { status: response.status, body: await response.json() }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.cause : undefined
    const isRefused = reason instanceof Error && "code" in reason && reason.code === "ECONNREFUSED"
    if (isRefused || (reason instanceof Error && reason.name === "HTTPParserError")) return undefined
    return { status: 503, body: { message: "The running service did not answer; list the merchants or keys to see." } }
  }
}
