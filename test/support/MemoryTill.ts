/**
 * A whole Till in the test's own process: the API and its documentation on a real socket, over the engine in memory.
 * `MemoryTillWithPages` serves the pages and the dashboard, too; `MemoryFleet` is several runners on one storage.
 * A test file starts one server; each test can create a merchant for itself.
 */
import { Effect, Layer, ManagedRuntime } from "effect"
import { HttpServer } from "effect/http"
import type { Version } from "../../src/domain/ApiVersions.ts"
import { Accounts } from "../../src/engine/Accounts.ts"
import { Journal } from "../../src/engine/log/Journal.ts"
import type { Placement } from "../../src/engine/process/Placement.ts"
import { layerAnswerWriter } from "../../src/http/IdempotentCommand.ts"
import { Readiness } from "../../src/http/Readiness.ts"
import * as Routes from "../../src/http/Routes.ts"
import { answerUnreadable } from "../../src/http/UnreadableRequests.ts"
import * as Waiting from "../../src/http/Waiting.ts"
import { parseJson } from "../../src/json/JsonParse.ts"
import * as Documentation from "../../src/pages/docs/Documentation.ts"
import { PaymentsConfig } from "../../src/payments/shared/PaymentsConfig.ts"
import { Processors, type ProcessorsShape } from "../../src/payments/processing/Processor.ts"
import * as Dispatcher from "../../src/processors/Dispatcher.ts"
import { HttpConfig, type HttpConfigShape } from "../../src/server/HttpConfig.ts"
import * as NodeServer from "../../src/server/NodeServer.ts"
import * as Server from "../../src/server/Server.ts"
import type * as Faults from "../engine/storage/Faults.ts"
import { createMerchant, type Keys } from "./fixtures/Merchants.ts"
import { basic } from "./HttpExchange.ts"
import * as MemoryEngine from "./MemoryEngine.ts"
import { paymentsConfig } from "./PaymentsConfig.ts"

export const DOCS_URL = "https://docs.example.test"
export const VERSION = "2026-03-09"

/** False if the environment turns the parser for plain requests off for the service, and so for tests. */
export const PLAIN_HTTP = process.env["TILL_PLAIN_HTTP"] !== "off"

/** Readiness of a process that is neither starting nor ending. */
const serving = Layer.effectDiscard(Effect.map(Readiness, ({ enter }) => enter("serving"))).pipe(
  Layer.provideMerge(Readiness.layer)
)

/** Till's HTTP server on a free port of 127.0.0.1, ready for requests. */
export const layerSocket = (docsUrl: string) =>
  Layer.merge(
    serving,
    Server.layer(() => answerUnreadable(NodeServer.create({ plain: PLAIN_HTTP }), docsUrl), {
      port: 0,
      host: "127.0.0.1"
    })
  )

export interface Address {
  readonly port: number
  /** `http://127.0.0.1:<port>` */
  readonly url: string
}

export const addressOf: Effect.Effect<Address, never, HttpServer.HttpServer> = Effect.map(
  HttpServer.HttpServer,
  ({ address }) => {
    if (!("port" in address)) throw new Error("The server does not listen on a port")
    return { port: address.port, url: `http://127.0.0.1:${address.port}` }
  }
)

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read fields of every kind of object
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

export interface MemoryTillOptions {
  /** Name of the merchant that is created at the start. */
  readonly merchantName?: string
  /** Faults of the storage. */
  readonly faults?: Faults.Faults
  /** HTTP settings that differ from the defaults. */
  readonly http?: Partial<HttpConfigShape>
  /** The system's clock unless given. */
  readonly clock?: Layer.Layer<never>
  /** The published versions of the API unless given. */
  readonly versions?: ReadonlyArray<Version>
  /** Requests are not logged unless given. */
  readonly requestLog?: Layer.Layer<never, never, Placement>
  /** True if requests may wait for news; otherwise they are answered at once. */
  readonly waits?: boolean
  /** Processors behind a network in place of the simulator. */
  readonly processors?: ProcessorsShape
}

export interface MemoryTill extends Address {
  /** Keys of the merchant that was created at the start; `request` sends its secret test key unless told otherwise. */
  readonly keys: Keys
  readonly accounts: Accounts["Service"]
  /** Creates another merchant. */
  readonly merchant: () => Promise<Keys>
  /** The text of all journal records of an account; of the first merchant's test account unless given. */
  readonly journal: (account?: string) => Promise<string>
  readonly request: (method: string, path: string, options?: RequestOptions) => Promise<Reply>
  readonly close: () => Promise<void>
}

type Services = Accounts | Journal | HttpServer.HttpServer

/** Starts a Till of these layers, with one merchant. The runtime is for what else a starter reads of the layers. */
export const launch = async <R, E>(
  layer: Layer.Layer<R | Services, E>,
  merchantName = "Merchant"
): Promise<{ readonly till: MemoryTill; readonly runtime: ManagedRuntime.ManagedRuntime<R | Services, E> }> => {
  const runtime = ManagedRuntime.make(layer)
  const address = await runtime.runPromise(addressOf)
  const accounts = await runtime.runPromise(Accounts)
  const keys = await runtime.runPromise(createMerchant(merchantName))
  const till: MemoryTill = {
    ...address,
    keys,
    accounts,
    merchant: () => runtime.runPromise(createMerchant("Merchant")),
    journal: (account = `${keys.merchantId}:test`) => runtime.runPromise(MemoryEngine.journalText(account)),
    request: (method, path, options = {}) => send(address.url + path, method, { key: keys.secretTest, ...options }),
    close: () => runtime.dispose()
  }
  return { till, runtime }
}

/** Starts a Till that serves the API and its documentation. */
export const start = async (options: MemoryTillOptions = {}): Promise<MemoryTill> => {
  const { clock = Layer.empty, faults, http, merchantName, requestLog = Layer.empty, versions, waits = false } = options
  const { processors } = options
  const engine =
    processors === undefined
      ? MemoryEngine.engine(faults, versions)
      : Layer.provideMerge(
          Layer.provide(Dispatcher.layer, layerAnswerWriter),
          MemoryEngine.engineWith(Layer.succeed(Processors, processors), faults, versions)
        )
  const service = (waits ? Waiting.ending : Layer.empty).pipe(
    Layer.provideMerge(Routes.serveWith(Documentation.layer)),
    Layer.provide(waits ? Waiting.layer : Layer.empty),
    Layer.provideMerge(layerSocket(DOCS_URL)),
    Layer.provide(Layer.succeed(HttpConfig, { docsUrl: DOCS_URL, ...http })),
    Layer.provide(requestLog),
    Layer.provideMerge(engine),
    Layer.provideMerge(Layer.succeed(PaymentsConfig, paymentsConfig({ publicUrl: "https://pay.example.test" }))),
    Layer.provide(clock)
  )
  return (await launch(service, merchantName)).till
}

let counter = 0

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

/** An effect of a promise, for properties. */
export const eventually = <A>(promise: () => Promise<A>): Effect.Effect<A> => Effect.promise(promise)
