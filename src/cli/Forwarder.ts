/**
 * Receives webhooks on a loopback port and forwards them to an app: body and headers unchanged but for the signature,
 * which is made anew with a secret that stays the same (ListenSecret.ts). The app's status is returned to Till, which
 * repeats webhooks that the app did not accept.
 *
 * Only signed webhooks are forwarded, because any page in a browser can post to a port of this machine. The facts that
 * the command prints about a webhook are therefore signed, too.
 */
import { Data, Effect, Redacted, type Scope } from "effect"
import * as http from "node:http"
import * as https from "node:https"
import type { AddressInfo } from "node:net"
import { verifyWebhook, WEBHOOK_SIGNATURE_HEADER as SIGNATURE, type WebhookEvent } from "../client/index.ts"
import { signedAnew } from "./ListenSecret.ts"

/** The outcome of one webhook. */
export interface Forwarded {
  readonly event: WebhookEvent
  /** The number of Till's attempt, from 1. */
  readonly attempt: number
  /** The app's status, or the reason for which there is none. */
  readonly outcome: number | string
  readonly durationMillis: number
}

export interface ForwarderOptions {
  readonly forwardTo: URL
  /** The endpoint's current secret. A promise, because a webhook may arrive before the secret is known. */
  readonly secret: () => Promise<Redacted.Redacted>
  /** The secret with which the app verifies the webhooks. */
  readonly appSecret: Redacted.Redacted
  /** The value of `X-Till-Listen` in answers to GET, by which another `till listen` identifies this one. */
  readonly instance: string
  /** The app's time limit, in milliseconds; by default a second less than Till's. */
  readonly appMillisMax?: number
  /** Called for every webhook, once the app has answered. */
  readonly onForwarded: (forwarded: Forwarded) => void
}

/** No port could be opened. */
export class CannotListen extends Data.TaggedError("CannotListen")<{ readonly message: string }> {}

export const INSTANCE_HEADER = "x-till-listen"

/** Till's own limit is 30 s (spec: Delivery); a shorter one lets Till receive an answer. */
const APP_MILLIS_MAX = 29_000
/** Far larger than any event. */
const BODY_BYTES_MAX = 8 * 1024 * 1024

/** Headers of a connection and not of the message (RFC 9110, 7.6.1), and the receiver's name. */
const HOP_HEADERS = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade"
])

/** Listens as long as the scope lives. Returns the address for the webhooks. */
export const forwarder = (options: ForwarderOptions): Effect.Effect<URL, CannotListen, Scope.Scope> =>
  Effect.acquireRelease(listen(options), (server) =>
    Effect.sync(() => {
      server.close()
      server.closeAllConnections()
    })
  ).pipe(Effect.map((server) => new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)))

const listen = (options: ForwarderOptions): Effect.Effect<http.Server, CannotListen> =>
  Effect.callback((resume) => {
    const server = http.createServer((request, response) => {
      response.setHeader(INSTANCE_HEADER, options.instance)
      statusOf(request, response, options).then(
        (status) => response.writeHead(status).end(),
        () => response.destroy()
      )
    })
    server.once("error", ({ message }) => resume(Effect.fail(new CannotListen({ message }))))
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  })

/** Rejects if the request breaks off. */
const statusOf = async (
  request: http.IncomingMessage,
  response: http.ServerResponse,
  { appMillisMax = APP_MILLIS_MAX, appSecret, forwardTo, onForwarded, secret }: ForwarderOptions
): Promise<number> => {
  if (request.method !== "POST") return 200
  const body = await bodyOf(request)
  if (body === undefined) return 413
  // The app's own tests may sign as well.
  const event = eventOf(body, request, [await secret(), appSecret])
  if (event === undefined) return 400
  const gone = new AbortController()
  response.once("close", () => {
    if (!response.writableFinished) gone.abort(new Error("Till stopped waiting for the app"))
  })
  const start = performance.now()
  const signal = AbortSignal.any([gone.signal, AbortSignal.timeout(appMillisMax)])
  const signature = signedAnew(String(request.headers[SIGNATURE]), body, appSecret)
  const outcome = await answerOf(forwardTo, { request, body, signature }, signal).catch(descriptionOf)
  const durationMillis = Math.round(performance.now() - start)
  onForwarded({ event, attempt: Number(request.headers["x-webhook-attempt"] ?? 1), outcome, durationMillis })
  return typeof outcome === "number" ? outcome : 502
}

const bodyOf = async (request: http.IncomingMessage): Promise<Buffer | undefined> => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes <= BODY_BYTES_MAX) chunks.push(chunk)
  }
  return bytes <= BODY_BYTES_MAX ? Buffer.concat(chunks) : undefined
}

/** Undefined unless the body is signed with one of the secrets. */
const eventOf = (
  body: Buffer,
  request: http.IncomingMessage,
  secrets: ReadonlyArray<Redacted.Redacted>
): WebhookEvent | undefined => {
  try {
    return verifyWebhook({
      body,
      header: request.headers[SIGNATURE],
      secret: secrets.map((one) => Redacted.value(one))
    })
  } catch {
    return undefined
  }
}

/** A webhook to forward. */
interface Webhook {
  readonly request: http.IncomingMessage
  readonly body: Buffer
  /** The signature for the app. */
  readonly signature: string
}

/** Returns the app's status. The body that follows it is dropped. */
const answerOf = (
  forwardTo: URL,
  { body, request: { rawHeaders }, signature }: Webhook,
  signal: AbortSignal
): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers: Record<string, string | number> = { "content-length": body.length }
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = rawHeaders[index]!
      const isSignature = name.toLowerCase() === SIGNATURE
      if (!HOP_HEADERS.has(name.toLowerCase())) headers[name] = isSignature ? signature : rawHeaders[index + 1]!
    }
    const { request } = forwardTo.protocol === "https:" ? https : http
    const forwarded = request(forwardTo, { method: "POST", headers, signal, agent: false }, (response) => {
      // Reads to the end, or until the signal.
      response.once("error", () => undefined).resume()
      resolve(response.statusCode!)
    })
    forwarded.on("error", reject)
    forwarded.end(body)
  })

/** Describes a failure: `ECONNREFUSED`, or in words. */
const descriptionOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  if (error.name === "AbortError" && error.cause instanceof Error) return descriptionOf(error.cause)
  if (error.name === "TimeoutError") return "no answer in time"
  return "code" in error && typeof error.code === "string" ? error.code : error.message
}
