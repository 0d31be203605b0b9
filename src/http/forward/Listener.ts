/**
 * The listener for other processes of the installation: accepts forwarded requests and calls, over connections whose
 * other side has proved its membership (`RunnerTls.ts`; semantics runners.trust).
 */
import { Data, Effect, Exit, type Scope } from "effect"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import * as http from "node:http"
import { type AddressInfo, isIPv6, type Socket } from "node:net"
import { parseJson } from "../../json/JsonParse.ts"
import { RequestTooLarge } from "../../server/HttpErrors.ts"
import { Unavailable } from "../../engine/Accounts.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import type { Incoming } from "../../server/Incoming.ts"
import { NodeIncoming } from "../../server/NodeIncoming.ts"
import * as NodeServer from "../../server/NodeServer.ts"
import { makeReadBody } from "../../server/RequestBody.ts"
import type { JsonResponse } from "../../payments/administration/AdministrationWire.ts"
import {
  ACCOUNT,
  ANSWER,
  clientLinesOf,
  CONNECTION,
  type Envelope,
  parseEnvelope,
  type Sender
} from "./SignedRequest.ts"
import { makeWarning, type RunnerTls } from "./RunnerTls.ts"

/** The largest header section: a client's lines and the envelope, in bytes. */
const HEAD_BYTES_MAX = 65_536
/** Time for running requests when the listener closes, in milliseconds. */
const CLOSE_MILLIS = 1000

/** A request that another process forwarded. */
export interface ForwardedIncoming extends Incoming {
  /** Refuses the request because the account is not served here. */
  readonly elsewhere: (account: AccountId) => void
  /** Frees the connection if the answer can be sent later. */
  readonly later: () => void
}

/** An answer to a forwarded request that is sent as a call. */
export interface LaterAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export type SendLater = (to: Sender, answer: LaterAnswer) => void

export interface Handlers {
  readonly api: (incoming: ForwardedIncoming) => void
  /** Handles requests that are not the API's. */
  readonly page: (request: IncomingMessage, response: ServerResponse) => void
  /** Handles a call by its path. Returns undefined if the account is not served here. */
  readonly call: (path: string, body: unknown) => Effect.Effect<JsonResponse | undefined>
}

/** The listener cannot be opened. */
export class CannotListen extends Data.TaggedError("CannotListen")<{ readonly cause: unknown }> {}

export interface Options {
  readonly tls: RunnerTls
  readonly host: string
  /** 0 means any free port. */
  readonly port: number
  /** False if Node's parser should read all requests. */
  readonly plain?: boolean
}

export interface Listener {
  /** Address for other processes. */
  readonly url: string
  readonly serve: (handlers: Handlers, sendLater: SendLater) => Effect.Effect<void, never, Scope.Scope>
}

const tooLarge = Exit.fail(new RequestTooLarge())
const unread = Exit.fail(new Unavailable({ reason: "The forwarding process did not read the body." }))
const tooMany = Exit.fail(new Unavailable({ reason: "Too many long requests are being sent." }))

/** A client's request, as read by the forwarding process. */
class Forwarded implements ForwardedIncoming {
  readonly #incoming: Incoming
  readonly #envelope: Envelope
  readonly #body: Buffer
  readonly #sendLater: SendLater
  /** Where the answer goes, once the connection is free. */
  #sender: Sender | undefined
  readonly method: string
  readonly isWhole = true

  constructor(inner: Incoming, envelope: Envelope, body: Buffer, sendLater: SendLater) {
    this.#incoming = inner
    this.#envelope = envelope
    this.#body = body
    this.#sendLater = sendLater
    this.method = envelope.kind === "head" ? "HEAD" : inner.method
  }

  get url(): string {
    return this.#incoming.url
  }

  get headers(): Incoming["headers"] {
    return this.#incoming.headers
  }

  get rawHeaders(): Incoming["rawHeaders"] {
    return this.#incoming.rawHeaders
  }

  isRepeated(name: string): boolean {
    return this.#incoming.isRepeated(name)
  }

  get arrivedAt(): number {
    return this.#incoming.arrivedAt
  }

  readBody(): Exit.Exit<Buffer, RequestTooLarge | Unavailable> {
    switch (this.#envelope.kind) {
      case "too_large":
        return tooLarge
      case "too_many":
        return tooMany
      case "unread":
        // The forwarding process expected a refusal without the body; the key or the API's endpoints have changed
        // since.
        return unread
      default:
        return Exit.succeed(this.#body)
    }
  }

  /** A connection between processes carries requests of all accounts. */
  countFor(): void {}

  get remoteAddress(): string | undefined {
    return this.#envelope.remoteAddress
  }

  get isGone(): boolean {
    return this.#sender === undefined && this.#incoming.isGone
  }

  onGone(listener: () => void): void {
    this.#incoming.onGone(() => (this.#sender === undefined ? listener() : undefined))
  }

  later(): void {
    const { sender } = this.#envelope
    if (sender === undefined || this.#sender !== undefined) return
    this.#incoming.answer(202, { [ANSWER]: "later" }, "")
    this.#sender = sender
  }

  /** Passes `Connection` on in a header of its own, because it is for the client's connection and not for this one. */
  answer(status: number, headers: Readonly<Record<string, string>>, body: string): void {
    const { connection, ...others } = headers
    const sent = connection === undefined ? others : { ...others, [CONNECTION]: connection }
    if (this.#sender !== undefined) return this.#sendLater(this.#sender, { status, headers: sent, body })
    this.#incoming.answer(status, { ...sent, [ANSWER]: "carried" }, body)
  }

  elsewhere(account: AccountId): void {
    // The sender finds the account's new process by itself.
    if (this.#sender !== undefined) return
    this.#incoming.answer(NOT_HERE, { [ANSWER]: "elsewhere", [ACCOUNT]: account }, "")
  }
}

const NOT_HERE = 421
const REFUSED = 403

/** Envelopes of forwarded requests for pages. */
const envelopes = new WeakMap<IncomingMessage, Envelope>()

/** Returns the envelope of a forwarded request; undefined if the request came from its client. */
export const envelopeOf = (request: IncomingMessage): Envelope | undefined => envelopes.get(request)

/** Returns the headers of an answer by which a forwarded request is refused, because the account is not here. */
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
  const warn = yield* makeWarning("unproven client")
  server.on("tlsClientError", (error: Error, socket: Socket) => warn(`${UNPROVEN} ${socket.remoteAddress}`, error))
  let serving: Serving | undefined
  acceptRequests(server, () => serving, Effect.runForkWith(yield* Effect.context<never>()))
  yield* Effect.acquireRelease(openServer(server, host, port), () => Effect.promise(() => closeServer(server)))
  const { port: opened } = server.address() as AddressInfo
  return {
    url: `https://${isIPv6(host) ? `[${host}]` : host}:${opened}`,
    serve: (handlers, sendLater) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => {
            serving = { handlers, sendLater }
          }),
          () =>
            Effect.sync(() => {
              serving = undefined
            })
        )
      )
  }
})

interface Serving {
  readonly handlers: Handlers
  readonly sendLater: SendLater
}

const UNPROVEN =
  "A connection to TILL_RUNNER_PORT was refused, because the other side did not prove that it has the installation's " +
  "secret: it is not a process of this service, or its TILL_SECRET_FILE is a different one. Its address is"

const openServer = (server: Server, host: string, port: number): Effect.Effect<void, CannotListen> =>
  Effect.callback((resume) => {
    server.once("error", (cause) => resume(Effect.fail(new CannotListen({ cause }))))
    // Exclusive, because processes that share a port would be given the same free one.
    server.listen({ port, host, exclusive: true }, () => resume(Effect.void))
  })

const closeServer = (server: Server): Promise<void> =>
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

/** Makes the server accept requests. Without handlers, every account is elsewhere. */
const acceptRequests = (server: Server, serving: () => Serving | undefined, runFork: RunFork): void => {
  const readBody = makeReadBody()

  const refuse = (incoming: Incoming): void => incoming.answer(REFUSED, {}, "")

  const takeApi = (incoming: Incoming): void => {
    const envelope = parseEnvelope(incoming.headers)
    if (envelope === undefined || envelope.kind === "call") return refuse(incoming)
    const go = (body: Exit.Exit<Buffer, unknown>): void => {
      if (Exit.isFailure(body)) return refuse(incoming)
      const own = serving()
      const forwarded = new Forwarded(incoming, envelope, body.value, own?.sendLater ?? (() => {}))
      if (own === undefined) forwarded.elsewhere("")
      else own.handlers.api(forwarded)
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
    const envelope = parseEnvelope(source.headers)
    if (envelope === undefined) return refuse(incoming)
    runFork(incoming.readBody()).addObserver((body) => {
      if (Exit.isFailure(body)) return refuse(incoming)
      const own = serving()?.handlers
      if (own === undefined) return void response.writeHead(NOT_HERE, elsewhereHeaders("")).end()
      if (envelope.kind !== "call") {
        response.setHeader(ANSWER, "carried")
        return own.page(replayed(source, envelope, body.value), response)
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

/** Rebuilds the client's request for handlers that read its body themselves. */
const replayed = (source: IncomingMessage, envelope: Envelope, body: Buffer): IncomingMessage => {
  const request = new http.IncomingMessage(source.socket)
  request.method = envelope.kind === "head" ? "HEAD" : source.method!
  request.url = source.url!
  request.httpVersion = source.httpVersion
  request.httpVersionMajor = source.httpVersionMajor
  request.httpVersionMinor = source.httpVersionMinor
  request.rawHeaders = clientLinesOf(source.rawHeaders)
  request.headers = source.headers
  if (body.length > 0) request.push(body)
  request.push(null)
  request.complete = true
  envelopes.set(request, envelope)
  return request
}
