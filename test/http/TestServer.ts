/**
 * The real routes on a real socket, over the engine in memory. One server per test file; each test can use a merchant
 * of its own.
 */
import { Effect, Layer, ManagedRuntime } from "effect"
import { HttpServer } from "effect/http"
import type { Version } from "../../src/domain/ApiVersions.ts"
import { Accounts } from "../../src/engine/Accounts.ts"
import type { Placement } from "../../src/engine/process/Placement.ts"
import type { HttpConfigShape } from "../../src/server/HttpConfig.ts"
import { HttpConfig } from "../../src/server/HttpConfig.ts"
import * as NodeServer from "../../src/server/NodeServer.ts"
import * as Routes from "../../src/http/Routes.ts"
import { answerUnreadable } from "../../src/http/UnreadableRequests.ts"
import { parseJson } from "../../src/json/JsonParse.ts"
import * as Documentation from "../../src/pages/docs/Documentation.ts"
import { PaymentsConfig } from "../../src/payments/PaymentsConfig.ts"
import type * as Faults from "../engine/storage/Faults.ts"
import type { Keys } from "../support/MemoryService.ts"
import * as MemoryService from "../support/MemoryService.ts"
import { paymentsConfig } from "../support/PaymentsConfig.ts"

export const DOCS_URL = "https://docs.example.test"
export const VERSION = "2026-03-09"

const service = (
  faults: Faults.Faults,
  config: Partial<HttpConfigShape>,
  clock: Layer.Layer<never>,
  versions: ReadonlyArray<Version> | undefined,
  requestLog: Layer.Layer<never, never, Placement>
) =>
  Routes.serveWith(Documentation.layer).pipe(
    Layer.provideMerge(
      MemoryService.listening(() => answerUnreadable(NodeServer.create({ plain: MemoryService.PLAIN_HTTP }), DOCS_URL))
    ),
    Layer.provide(Layer.succeed(HttpConfig, { docsUrl: DOCS_URL, ...config })),
    Layer.provide(requestLog),
    Layer.provideMerge(MemoryService.engine(faults, versions)),
    Layer.provideMerge(Layer.succeed(PaymentsConfig, paymentsConfig({ publicUrl: "https://pay.example.test" }))),
    Layer.provide(clock)
  )

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into whatever came back
  readonly body: any
}

export interface RequestOptions {
  /** Null sends no `Authorization`. */
  readonly key?: string | null
  /** JSON to send; a string or bytes are sent unchanged. */
  readonly body?: unknown
  /** Null sends no `Idempotency-Key`; undefined sends a new one with a POST. */
  readonly idempotencyKey?: string | null
  readonly headers?: Readonly<Record<string, string>>
}

let counter = 0

export interface TestServer {
  readonly port: number
  readonly keys: Keys
  readonly accounts: Accounts["Service"]
  readonly merchant: () => Promise<Keys>
  /** All records of an account in the journal. */
  readonly journal: (account: string) => Promise<string>
  readonly request: (method: string, path: string, options?: RequestOptions) => Promise<Reply>
  readonly close: () => Promise<void>
}

/**
 * Starts a server with one merchant. `clock` replaces the system's clock, `versions` the published versions; requests
 * are logged in `requestLog`, if it is given.
 */
export const start = async (
  faults: Faults.Faults = () => Effect.void,
  config: Partial<HttpConfigShape> = {},
  clock: Layer.Layer<never> = Layer.empty,
  versions?: ReadonlyArray<Version>,
  requestLog: Layer.Layer<never, never, Placement> = Layer.empty
): Promise<TestServer> => {
  const runtime = ManagedRuntime.make(service(faults, config, clock, versions, requestLog))
  const { address } = await runtime.runPromise(HttpServer.HttpServer)
  if (!("port" in address)) throw new Error("The server does not listen on a port")
  const { port } = address
  const accounts = await runtime.runPromise(Accounts)
  const merchant = () => runtime.runPromise(MemoryService.merchant("Merchant"))
  const keys = await merchant()
  const request = (method: string, path: string, options: RequestOptions = {}) =>
    send(`http://127.0.0.1:${port}${path}`, method, { key: keys.secretTest, ...options })
  const journal = (account: string) => runtime.runPromise(MemoryService.journalText(account))
  return { port, keys, accounts, merchant, journal, request, close: () => runtime.dispose() }
}

const send = async (url: string, method: string, options: RequestOptions): Promise<Reply> => {
  const headers = new Headers()
  if (options.key != null) headers.set("authorization", basic(options.key))
  if (options.body !== undefined) headers.set("content-type", "application/json")
  if (method === "POST" && options.idempotencyKey !== null) {
    headers.set("idempotency-key", options.idempotencyKey ?? `test-${++counter}`)
  }
  for (const [name, value] of Object.entries(options.headers ?? {})) headers.set(name, value)
  const { body } = options
  const response = await fetch(url, {
    method,
    headers,
    redirect: "manual",
    ...(body !== undefined && {
      body: typeof body === "string" || body instanceof Uint8Array ? (body as BodyInit) : JSON.stringify(body)
    })
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: text === "" ? undefined : parseJson(text) }
}

export const basic = (key: string): string => `Basic ${Buffer.from(`${key}:`).toString("base64")}`

/** Makes an effect from a promise, for properties. */
export const eventually = <A>(promise: () => Promise<A>): Effect.Effect<A> => Effect.promise(promise)
