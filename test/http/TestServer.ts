/**
 * The real routes on a real socket, over the engine in memory. One server per test file; each test can take a merchant
 * of its own.
 */
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer, ManagedRuntime, Redacted } from "effect"
import { HttpServer } from "effect/http"
import * as NodeServer from "../../src/http/NodeServer.ts"
import { Accounts } from "../../src/engine/Accounts.ts"
import * as Engine from "../../src/engine/Engine.ts"
import * as Faults from "../../src/engine/Faults.ts"
import { Journal } from "../../src/engine/Journal.ts"
import { textOf } from "../../src/engine/Record.ts"
import * as ViewsMemory from "../../src/engine/ViewsMemory.ts"
import type { HttpConfigShape } from "../../src/http/HttpConfig.ts"
import { HttpConfig } from "../../src/http/HttpConfig.ts"
import * as Routes from "../../src/http/Routes.ts"
import { answerUnreadable } from "../../src/http/UnreadableRequests.ts"
import { INSTALLATION } from "../../src/payments/AccountIds.ts"
import * as Merchants from "../../src/payments/Merchants.ts"
import { PaymentsConfig } from "../../src/payments/PaymentsConfig.ts"
import { Processor } from "../../src/payments/Processor.ts"
import * as Timers from "../../src/payments/Timers.ts"

export const DOCS_URL = "https://docs.example.test"
export const VERSION = "2026-03-09"

const engine = (faults: Faults.Faults) =>
  Engine.layer().pipe(
    Layer.provide(Timers.layer),
    Layer.provideMerge(Processor.layer),
    Layer.provide(Faults.layer(faults)),
    Layer.provide(ViewsMemory.layerMemory),
    Layer.provideMerge(Journal.layerMemory),
    Layer.provideMerge(
      Layer.succeed(PaymentsConfig, {
        publicUrl: "https://pay.example.test",
        authorizationHoldSeconds: 604_800,
        liveProcessor: null,
        currencies: null,
        fingerprintKey: Redacted.make(new Uint8Array(32).fill(7)),
        sealingKey: Redacted.make(new Uint8Array(32).fill(8)),
        webhookAllowPrivate: false
      })
    )
  )

const service = (faults: Faults.Faults, config: Partial<HttpConfigShape>, clock: Layer.Layer<never>) =>
  Routes.serve.pipe(
    Layer.provideMerge(
      NodeHttpServer.layer(() => answerUnreadable(NodeServer.create(), DOCS_URL), { port: 0, host: "127.0.0.1" })
    ),
    Layer.provide(Layer.succeed(HttpConfig, { docsUrl: DOCS_URL, ...config })),
    Layer.provideMerge(engine(faults)),
    Layer.provide(clock)
  )

/** A merchant's keys, in plain text. */
export interface Keys {
  readonly merchantId: string
  readonly secretTest: string
  readonly publishableTest: string
  readonly secretLive: string
  readonly publishableLive: string
}

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
  /** JSON to send; a string or bytes are sent as they are. */
  readonly body?: unknown
  /** Null sends no `Idempotency-Key`; left out, a POST gets a new one. */
  readonly idempotencyKey?: string | null
  readonly headers?: Readonly<Record<string, string>>
}

let counter = 0

export interface TestServer {
  readonly port: number
  readonly keys: Keys
  readonly accounts: Accounts["Service"]
  readonly merchant: () => Promise<Keys>
  /** Everything that the journal holds of an account. */
  readonly journal: (account: string) => Promise<string>
  readonly request: (method: string, path: string, options?: RequestOptions) => Promise<Reply>
  readonly close: () => Promise<void>
}

/** Starts a server with one merchant. `clock` is another clock than the system's. */
export const start = async (
  faults: Faults.Faults = () => Effect.void,
  config: Partial<HttpConfigShape> = {},
  clock: Layer.Layer<never> = Layer.empty
): Promise<TestServer> => {
  const runtime = ManagedRuntime.make(service(faults, config, clock))
  const { address } = await runtime.runPromise(HttpServer.HttpServer)
  if (!("port" in address)) throw new Error("The server does not listen on a port")
  const { port } = address
  const accounts = await runtime.runPromise(Accounts)
  const merchant = async (): Promise<Keys> => {
    const created = await runtime.runPromise(accounts.run(INSTALLATION, Merchants.createWithKeys("Merchant")))
    const { generated } = created
    return {
      merchantId: created.merchant.id,
      secretTest: Redacted.value(generated.secretTest!),
      publishableTest: Redacted.value(generated.publishableTest!),
      secretLive: Redacted.value(generated.secretLive!),
      publishableLive: Redacted.value(generated.publishableLive!)
    }
  }
  const keys = await merchant()
  const request = (method: string, path: string, options: RequestOptions = {}) =>
    send(`http://127.0.0.1:${port}${path}`, method, { key: keys.secretTest, ...options })
  const journal = async (account: string) => {
    const { read } = await runtime.runPromise(Journal)
    const rows = await runtime.runPromise(read(account, 0, 1_000_000))
    return rows.map(({ bytes }) => textOf(bytes)).join("\n")
  }
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
  return { status: response.status, headers: response.headers, text, body: text === "" ? undefined : JSON.parse(text) }
}

export const basic = (key: string): string => `Basic ${Buffer.from(`${key}:`).toString("base64")}`

/** An effect of a promise, for properties. */
export const eventually = <A>(promise: () => Promise<A>): Effect.Effect<A> => Effect.promise(promise)
