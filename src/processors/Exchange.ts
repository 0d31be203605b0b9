/**
 * One HTTP POST to a processor, over undici (semantics gateways.exchange).
 *
 * - Never fails and never repeats a request: a caller that repeats one chooses its idempotency key itself.
 * - `not_sent` is certain: not a byte of the request was written. Everything else without a whole answer is `lost`,
 *   since the processor may have carried out the request.
 * - One deadline covers everything: look-up, connecting, TLS, waiting for a free connection, and the whole answer.
 * - https leads to the addresses that webhooks of live mode may go to, http to this machine alone. Redirects are not
 *   followed, and an answer has at most 256 KiB.
 */
import { Effect, Exit, type Scope } from "effect"
import { Agent, type Dispatcher } from "undici"
import { urlComplaint } from "../domain/GatewayUrl.ts"
import type { WebhookHosts } from "../domain/WebhookHosts.ts"
import { networksOf } from "../domain/Networks.ts"
import * as GuardedDial from "../webhooks/GuardedDial.ts"
import { CALLS_MAX } from "./Guard.ts"

const DEADLINE_MILLIS = 40_000
const CONNECT_MILLIS = 5000
export const ANSWER_BYTES_MAX = 262_144
const HEADERS_MAX_BYTES = 16_384
/** Connections to one processor: one for each call that runs at once, and some for questions, which have no limit. */
const CONNECTIONS_MAX = CALLS_MAX + 128
/** Less than the 5 s after which many servers close an idle connection: the next request could be on its way then. */
const KEEP_ALIVE_MILLIS = 4000

export interface Answered {
  readonly kind: "answered"
  readonly status: number
  /** By lower-case names, without headers that are repeated. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Buffer
}

/** The result of a request. `why` is a sentence without anything from the URL or the request. */
export type Reply =
  | Answered
  | { readonly kind: "not_sent"; readonly why: string }
  | { readonly kind: "lost"; readonly why: string }

export interface PostRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

export interface Exchange {
  /** An interruption cuts the request off. */
  readonly post: (request: PostRequest) => Effect.Effect<Reply>
}

export interface Options {
  /** Hosts for https. */
  readonly hosts: WebhookHosts
  readonly deadlineMillis?: number
  readonly connectMillis?: number
  /** Replaces the system's look-up. */
  readonly resolve?: GuardedDial.Resolve
  /** Certificates to trust instead of Node's, in PEM format. */
  readonly certificates?: string
}

const LOOPBACK: WebhookHosts = {
  httpsOnly: false,
  besidePublic: { names: new Set(), networks: networksOf("127.0.0.0/8,::1")! }
}

/** Makes an exchange whose connections close with the scope. */
export const make = (options: Options): Effect.Effect<Exchange, never, Scope.Scope> =>
  Effect.gen(function* () {
    const resolve = GuardedDial.sharing(options.resolve ?? GuardedDial.resolveBySystem)
    const agentFor = (hosts: WebhookHosts) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const connect = GuardedDial.makeConnector({
            hosts,
            connectMillis: options.connectMillis ?? CONNECT_MILLIS,
            resolve,
            certificates: options.certificates
          })
          return new Agent({
            connect,
            allowH2: false,
            connections: CONNECTIONS_MAX,
            keepAliveTimeout: KEEP_ALIVE_MILLIS,
            keepAliveMaxTimeout: KEEP_ALIVE_MILLIS,
            maxHeaderSize: HEADERS_MAX_BYTES,
            // `Attempt` has one deadline, for all phases.
            headersTimeout: 0,
            bodyTimeout: 0
          })
        }),
        (agent) => Effect.promise(() => agent.destroy())
      )
    const agents = {
      "https:": yield* agentFor({ ...options.hosts, httpsOnly: true }),
      "http:": yield* agentFor(LOOPBACK)
    }
    const deadlineMillis = options.deadlineMillis ?? DEADLINE_MILLIS
    return {
      post: (request) =>
        Effect.callback<Reply>((resume) => {
          const report = (reply: Reply) => resume(Exit.succeed(reply))
          const complaint = urlComplaint(request.url)
          if (complaint !== undefined) return report({ kind: "not_sent", why: `The URL ${complaint}.` })
          const target = new URL(request.url)
          const attempt = new Attempt(deadlineMillis, report)
          attempt.begin(agents[target.protocol as keyof typeof agents], dispatchOf(request, target))
          return Effect.sync(() => attempt.giveUp("The call was cut off."))
        })
    }
  })

const dispatchOf = ({ body, headers }: PostRequest, target: URL): Dispatcher.DispatchOptions => ({
  origin: target.origin,
  path: `${target.pathname}${target.search}`,
  method: "POST",
  headers: { "content-type": "application/json", "user-agent": "Till/1", ...headers },
  body
})

/** The reason for which an attempt ends its exchange early. */
class CutOff extends Error {}

/** One request and its answer, reported by undici. */
class Attempt implements Dispatcher.DispatchHandler {
  #report: ((reply: Reply) => void) | null
  #controller: Dispatcher.DispatchController | null = null
  readonly #timer: NodeJS.Timeout
  /** Undici writes the request's first byte directly after it has called `onRequestStart`. */
  #mayBeSent = false
  #status = 0
  #headers: Record<string, string | undefined> = {}
  readonly #chunks: Array<Buffer> = []
  #bytes = 0

  constructor(deadlineMillis: number, report: (reply: Reply) => void) {
    this.#report = report
    this.#timer = setTimeout(() => this.giveUp("No whole answer came in time."), deadlineMillis)
  }

  begin(agent: Agent, options: Dispatcher.DispatchOptions): void {
    try {
      agent.dispatch(options, this)
    } catch (error) {
      this.onResponseError(null, error as Error)
    }
  }

  /** Ends the attempt in any phase. */
  giveUp(why: string): void {
    this.#settle({ kind: this.#mayBeSent ? "lost" : "not_sent", why })
    this.#controller?.abort(new CutOff(why))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    // The attempt was given up while it waited for a connection, or the request would be sent a second time.
    if (this.#report === null || this.#mayBeSent) {
      controller.abort(new CutOff("given up"))
      return
    }
    this.#mayBeSent = true
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | Array<string> | undefined>
  ): void {
    this.#status = status
    this.#headers = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [
        name.toLowerCase(),
        typeof value === "string" ? value : undefined
      ])
    )
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes > ANSWER_BYTES_MAX) return this.giveUp("The answer is longer than 256 KiB.")
    this.#chunks.push(chunk)
  }

  onResponseEnd(): void {
    this.#settle({
      kind: "answered",
      status: this.#status,
      headers: this.#headers,
      body: Buffer.concat(this.#chunks)
    })
  }

  onResponseError(_controller: unknown, error: Error): void {
    const code = "code" in error && typeof error.code === "string" ? ` (${error.code})` : ""
    this.#settle(
      this.#mayBeSent
        ? { kind: "lost", why: `The connection ended before the whole answer had arrived${code}.` }
        : { kind: "not_sent", why: `No connection could be opened${code}.` }
    )
  }

  #settle(reply: Reply): void {
    const report = this.#report
    if (report === null) return
    this.#report = null
    clearTimeout(this.#timer)
    report(reply)
  }
}
