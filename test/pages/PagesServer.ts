/**
 * The pages and the API on a real socket, over the engine in memory. Addresses that Till hands out lead to this socket,
 * so that a browser can follow them.
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
import { HttpConfig } from "../../src/http/HttpConfig.ts"
import * as Routes from "../../src/http/Routes.ts"
import * as Pages from "../../src/pages/Pages.ts"
import { PagesConfig } from "../../src/pages/PagesConfig.ts"
import { INSTALLATION } from "../../src/payments/AccountIds.ts"
import * as Merchants from "../../src/payments/Merchants.ts"
import { PaymentsConfig } from "../../src/payments/PaymentsConfig.ts"
import { Processor } from "../../src/payments/Processor.ts"
import * as Timers from "../../src/payments/Timers.ts"
import { basic } from "../http/TestServer.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- tests look into whatever came back
export type Answer = any

export interface PagesServer {
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  readonly merchantId: string
  readonly secretTest: string
  readonly publishableTest: string
  readonly secretLive: string
  readonly accounts: Accounts["Service"]
  /** A POST with the test secret key (or another one), whose answer has to be `status` (200). */
  readonly post: (
    path: string,
    body: unknown,
    options?: { readonly key?: string; readonly status?: number }
  ) => Promise<Answer>
  readonly get: (path: string, key?: string) => Promise<Answer>
  /** Everything that the journal holds of the test account. */
  readonly journal: () => Promise<string>
  readonly close: () => Promise<void>
}

const addressOf = Effect.map(HttpServer.HttpServer, ({ address }) => {
  if (!("port" in address)) throw new Error("The server does not listen on a port")
  return `http://127.0.0.1:${address.port}`
})

const paymentsConfig = Layer.effect(
  PaymentsConfig,
  Effect.map(addressOf, (publicUrl) => ({
    publicUrl,
    authorizationHoldSeconds: 604_800,
    liveProcessor: null,
    currencies: null,
    fingerprintKey: Redacted.make(new Uint8Array(32).fill(7)),
    sealingKey: Redacted.make(new Uint8Array(32).fill(8)),
    webhookAllowPrivate: false
  }))
)

const service = (faults: Faults.Faults, requestMillisMax: number, embedOrigins: ReadonlySet<string> | null) =>
  Routes.serveWith(Pages.layer).pipe(
    Layer.provide(Layer.succeed(PagesConfig, { embedOrigins })),
    Layer.provide(
      Layer.effect(
        HttpConfig,
        Effect.map(addressOf, (url) => ({ docsUrl: `${url}/docs`, requestMillisMax }))
      )
    ),
    Layer.provideMerge(
      Engine.layer().pipe(
        Layer.provide(Timers.layer),
        Layer.provideMerge(Processor.layer),
        Layer.provide(Faults.layer(faults)),
        Layer.provide(ViewsMemory.layerMemory),
        Layer.provideMerge(Journal.layerMemory)
      )
    ),
    Layer.provideMerge(paymentsConfig),
    Layer.provideMerge(NodeHttpServer.layer(() => NodeServer.create(), { port: 0, host: "127.0.0.1" }))
  )

/** Starts a server with one merchant. */
export const start = async (
  merchantName = "Lumen Coffee",
  faults: Faults.Faults = () => Effect.void,
  requestMillisMax: number = 30_000,
  embedOrigins: ReadonlySet<string> | null = null
): Promise<PagesServer> => {
  const runtime = ManagedRuntime.make(service(faults, requestMillisMax, embedOrigins))
  const url = await runtime.runPromise(addressOf)
  const accounts = await runtime.runPromise(Accounts)
  const { generated, merchant } = await runtime.runPromise(
    accounts.run(INSTALLATION, Merchants.createWithKeys(merchantName))
  )
  const secretTest = Redacted.value(generated.secretTest!)
  let counter = 0
  return {
    url,
    merchantId: merchant.id,
    secretTest,
    publishableTest: Redacted.value(generated.publishableTest!),
    secretLive: Redacted.value(generated.secretLive!),
    accounts,
    post: async (path, body, { key = secretTest, status = 200 } = {}) => {
      const response = await fetch(url + path, {
        method: "POST",
        headers: {
          authorization: basic(key),
          "content-type": "application/json",
          "idempotency-key": `pages-${++counter}`
        },
        body: JSON.stringify(body)
      })
      const answer = await response.json()
      if (response.status !== status) throw new Error(`POST ${path}: ${response.status} ${JSON.stringify(answer)}`)
      return answer
    },
    get: async (path, key = secretTest) => (await fetch(url + path, { headers: { authorization: basic(key) } })).json(),
    journal: async () => {
      const { read } = await runtime.runPromise(Journal)
      const rows = await runtime.runPromise(read(`${merchant.id}:test`, 0, 1_000_000))
      return rows.map(({ bytes }) => textOf(bytes)).join("\n")
    },
    close: () => runtime.dispose()
  }
}
