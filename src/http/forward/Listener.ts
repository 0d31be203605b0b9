/**
 * The listener for other processes of the installation: it takes what they forward, and what they ask of this process
 * itself, over connections on which they have proved to be one (`RunnerTls.ts`; semantics 9.51).
 */
import type { Scope } from "effect"
import { Data, Effect, Exit } from "effect"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import * as http from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { isIPv6 } from "node:net"
import { parseJson } from "../../json/JsonParse.ts"
import { RequestTooLarge } from "../../server/HttpErrors.ts"
import { Unavailable } from "../../engine/Accounts.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import type { Incoming } from "../../server/Incoming.ts"
import { NodeIncoming } from "../../server/NodeIncoming.ts"
import * as NodeServer from "../../server/NodeServer.ts"
import { makeReadBody } from "../../server/RequestBody.ts"
import type { Reply as CallReply } from "../../payments/AdministrationWire.ts"
import type { Said } from "./SignedRequest.ts"
import { ACCOUNT, ANSWER, clientsOwn, CONNECTION, saidIn } from "./SignedRequest.ts"
import type { RunnerTls } from "./RunnerTls.ts"
import { makeWarning } from "./RunnerTls.ts"

/** Header lines of a client, and what is said with them. */
const HEAD_BYTES_MAX = 65_536
/** A close waits so long for what is under way. */
const CLOSE_MILLIS = 1000

/** A request that was forwarded here. */
export interface ForwardedIncoming extends Incoming {
  /** Refuses it: the account is not here. */
  readonly elsewhere: (account: AccountId) => void
}

export interface Handlers {
  readonly api: (incoming: ForwardedIncoming) => void
  /** Takes what is not of the API. */
  readonly page: (request: IncomingMessage, response: ServerResponse) => void
  /** Answers by the path; undefined if the account is not here. */
  readonly call: (path: string, body: unknown) => Effect.Effect<CallReply | undefined>
}

/** The listener cannot be opened. */
export class CannotListen extends Data.TaggedError("CannotListen")<{ readonly cause: unknown }> {}

export interface Options {
  readonly tls: RunnerTls
  readonly host: string
  /** 0 stands for a free one. */
  readonly port: number
  /** False if node's parser is to read all requests. */
  readonly plain?: boolean
}

export interface Listener {
  /** Where others reach it. */
  readonly url: string
  readonly serve: (handlers: Handlers) => Effect.Effect<void, never, Scope.Scope>
}

const tooLarge = Exit.fail(new RequestTooLarge())
const unread = Exit.fail(new Unavailable({ reason: "The body was not read where the request came to." }))
const tooMany = Exit.fail(new Unavailable({ reason: "Too many long requests are being sent." }))

/** A request of a client as the process that has forwarded it has read it. */
class Forwarded implements ForwardedIncoming {
  readonly #inner: Incoming
  readonly #said: Said
  readonly #body: Buffer
  readonly method: string
  readonly isWhole = true

  constructor(inner: Incoming, said: Said, body: Buffer) {
    this.#inner = inner
    this.#said = said
    this.#body = body
    this.method = said.kind === "head" ? "HEAD" : inner.method
  }

  get url(): string {
    return this.#inner.url
  }

  get headers(): Incoming["headers"] {
    return this.#inner.headers
  }

  get rawHeaders(): Incoming["rawHeaders"] {
    return this.#inner.rawHeaders
  }

  isRepeated(name: string): boolean {
    return this.#inner.isRepeated(name)
  }

  get arrivedAt(): number {
    return this.#inner.arrivedAt
  }

  readBody(): Exit.Exit<Buffer, RequestTooLarge | Unavailable> {
    switch (this.#said.kind) {
      case "too_large":
        return tooLarge
      case "too_many":
        return tooMany
      case "unread":
        // It was to be refused without it, and since then its key or the contract have changed.
        return unread
      default:
        return Exit.succeed(this.#body)
    }
  }

  get remoteAddress(): string | undefined {
    return this.#said.remoteAddress
  }

  get isGone(): boolean {
    return this.#inner.isGone
  }

  onGone(listener: () => void): void {
    this.#inner.onGone(listener)
  }

  /** What it says of the client's connection is not for the one by which it came. */
  answer(status: number, headers: Readonly<Record<string, string>>, body: string): void {
    const { connection, ...others } = headers
    const said = connection === undefined ? others : { ...others, [CONNECTION]: connection }
    this.#inner.answer(status, { ...said, [ANSWER]: "carried" }, body)
  }

  elsewhere(account: AccountId): void {
    this.#inner.answer(NOT_HERE, { [ANSWER]: "elsewhere", [ACCOUNT]: account }, "")
  }
}

const NOT_HERE = 421
const REFUSED = 403

/** What was said with a page's request that was forwarded here. */
const said = new WeakMap<IncomingMessage, Said>()

/** What was said with a request that came through another process; undefined if it came from its client. */
export const saidWith = (request: IncomingMessage): Said | undefined => said.get(request)

/** Headers of an answer by which a forwarded request is refused, because the account is not here. */
export const elsewhereHeaders = (account: AccountId): Record<string, string> => ({
  [ANSWER]: "elsewhere",
  [ACCOUNT]: account
})

/** Listens as long as the scope lives. */
export const listen = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Listener, CannotListen, Scope.Scope> {
  const { host, plain, port, tls } = options
  const server = NodeServer.create({
    headBytesMax: HEAD_BYTES_MAX,
    allowHalfOpen: false,
    tls: tls.server,
    ...(plain !== undefined && { plain })
  })
  server.maxHeadersCount = 0
  const warn = yield* makeWarning
  server.on("tlsClientError", (error: Error, socket: Socket) => warn(`${UNPROVEN} ${socket.remoteAddress}`, error))
  let handlers: Handlers | undefined
  take(server, () => handlers, Effect.runForkWith(yield* Effect.context<never>()))
  yield* Effect.acquireRelease(open(server, host, port), () => Effect.promise(() => close(server)))
  const { port: opened } = server.address() as AddressInfo
  return {
    url: `https://${isIPv6(host) ? `[${host}]` : host}:${opened}`,
    serve: (own) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => {
            handlers = own
          }),
          () =>
            Effect.sync(() => {
              handlers = undefined
            })
        )
      )
  }
})

const UNPROVEN =
  "A connection to TILL_RUNNER_PORT was refused, because the other side did not prove that it has the installation's " +
  "secret: it is no process of this service, or its TILL_SECRET_FILE is another one. It came from"

const open = (server: Server, host: string, port: number): Effect.Effect<void, CannotListen> =>
  Effect.callback((resume) => {
    server.once("error", (cause) => resume(Effect.fail(new CannotListen({ cause }))))
    // Processes that share a port would be given the same free one.
    server.listen({ port, host, exclusive: true }, () => resume(Effect.void))
  })

const close = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    const impatient = setTimeout(() => server.closeAllConnections(), CLOSE_MILLIS)
    server.close(() => {
      clearTimeout(impatient)
      resolve()
    })
  })

type RunFork = <A, E>(
  effect: Effect.Effect<A, E>
) => { readonly addObserver: (then: (exit: Exit.Exit<A, E>) => void) => unknown }

/** Has the server take requests. Before there are handlers, and after them, no account is here. */
const take = (server: Server, handlers: () => Handlers | undefined, runFork: RunFork): void => {
  const readBody = makeReadBody()

  const refuse = (incoming: Incoming): void => incoming.answer(REFUSED, {}, "")

  const takeApi = (incoming: Incoming): void => {
    const head = saidIn(incoming.headers)
    if (head === undefined || head.kind === "call") return refuse(incoming)
    const go = (body: Exit.Exit<Buffer, unknown>): void => {
      if (Exit.isFailure(body)) return refuse(incoming)
      const forwarded = new Forwarded(incoming, head, body.value)
      const api = handlers()?.api
      if (api === undefined) forwarded.elsewhere("")
      else api(forwarded)
    }
    const body = incoming.readBody()
    if (Exit.isExit(body)) go(body as Exit.Exit<Buffer, unknown>)
    else runFork(body).addObserver(go)
  }

  NodeServer.setApi(server, {
    plain: takeApi,
    request: (source, response) => takeApi(new NodeIncoming(source, response, readBody))
  })

  server.on("request", (source: IncomingMessage, response: ServerResponse) => {
    const incoming = new NodeIncoming(source, response, readBody)
    const head = saidIn(source.headers)
    if (head === undefined) return refuse(incoming)
    runFork(incoming.readBody()).addObserver((body) => {
      if (Exit.isFailure(body)) return refuse(incoming)
      const own = handlers()
      if (own === undefined) return void response.writeHead(NOT_HERE, elsewhereHeaders("")).end()
      if (head.kind !== "call") {
        response.setHeader(ANSWER, "carried")
        return own.page(replayed(source, head, body.value), response)
      }
      runFork(Effect.suspend(() => own.call(source.url!, parseJson(body.value.toString())))).addObserver((exit) => {
        if (Exit.isFailure(exit)) return void response.destroy()
        if (exit.value === undefined) return void response.writeHead(NOT_HERE, elsewhereHeaders("")).end()
        response.setHeader(ANSWER, "carried")
        answerJson(response, exit.value.status, exit.value.body)
      })
    })
  })
}

const answerJson = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" })
  response.end(JSON.stringify(body))
}

/** The client's request, for those who read its body themselves. */
const replayed = (source: IncomingMessage, head: Said, body: Buffer): IncomingMessage => {
  const request = new http.IncomingMessage(source.socket)
  request.method = head.kind === "head" ? "HEAD" : source.method!
  request.url = source.url!
  request.httpVersion = source.httpVersion
  request.httpVersionMajor = source.httpVersionMajor
  request.httpVersionMinor = source.httpVersionMinor
  request.rawHeaders = clientsOwn(source.rawHeaders)
  request.headers = source.headers
  if (body.length > 0) request.push(body)
  request.push(null)
  request.complete = true
  said.set(request, head)
  return request
}
