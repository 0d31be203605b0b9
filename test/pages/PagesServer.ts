/**
 * The pages and the API on a real socket, over the engine in memory. Addresses that Till hands out lead to this socket,
 * so that a browser can follow them.
 */
import { Effect, Layer, ManagedRuntime } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import * as Dashboard from "../../src/dashboard/Dashboard.ts"
import { Streams } from "../../src/dashboard/frame/Live.ts"
import { DashboardConfig } from "../../src/dashboard/frame/DashboardConfig.ts"
import { Accounts } from "../../src/engine/Accounts.ts"
import { Journal } from "../../src/engine/log/Journal.ts"
import type { Placement } from "../../src/engine/process/Placement.ts"
import { HttpConfig } from "../../src/server/HttpConfig.ts"
import * as NodeServer from "../../src/server/NodeServer.ts"
import { endpoints } from "../../src/http/ApiEndpoints.ts"
import * as Routes from "../../src/http/Routes.ts"
import { answerUnreadable } from "../../src/http/UnreadableRequests.ts"
import * as Pages from "../../src/pages/Pages.ts"
import { PagesConfig } from "../../src/pages/checkout/Embedding.ts"
import { Passwords } from "../../src/payments/Passwords.ts"
import { PaymentsConfig } from "../../src/payments/PaymentsConfig.ts"
import type * as Faults from "../engine/storage/Faults.ts"
import { basic } from "../http/TestServer.ts"
import type { Keys } from "../support/MemoryService.ts"
import * as MemoryService from "../support/MemoryService.ts"
import { paymentsConfig } from "../support/PaymentsConfig.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- tests look into whatever came back
export type Answer = any

export interface Route {
  readonly method: string
  readonly path: string
}

/** Notes the routes that a layer adds to the router. */
const noting = <E, R>(
  routes: Array<Route>,
  layer: Layer.Layer<never, E, R>
): Layer.Layer<never, E, R | HttpRouter.HttpRouter> =>
  Layer.provide(
    layer,
    Layer.effect(
      HttpRouter.HttpRouter,
      Effect.map(HttpRouter.HttpRouter, (router): HttpRouter.HttpRouter => ({
        ...router,
        add: (method, path, ...rest) => {
          routes.push({ method, path })
          return router.add(method, path, ...rest)
        }
      }))
    )
  )

export interface PagesServer extends Keys {
  /** `http://127.0.0.1:<port>` */
  readonly url: string
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
  /** Everything that the journal holds of all accounts, the installation's included. */
  readonly journalOfAll: () => Promise<string>
  /** What the server answers: the routes of its router, and those of the API. */
  readonly routes: ReadonlyArray<Route>
  /** How many pages of the dashboard listen to what changes. */
  readonly openStreams: () => number
  readonly close: () => Promise<void>
}

const addressOf = Effect.map(HttpServer.HttpServer, ({ address }) => {
  if (!("port" in address)) throw new Error("The server does not listen on a port")
  return `http://127.0.0.1:${address.port}`
})

const service = (
  routes: Array<Route>,
  faults: Faults.Faults,
  requestMillisMax: number,
  embedOrigins: ReadonlySet<string> | null,
  liveProcessor: "simulator" | null,
  refusal: string | null,
  requestLog: Layer.Layer<never, never, Placement>
) =>
  Routes.serveWith(noting(routes, Layer.merge(Pages.layer, Dashboard.layer))).pipe(
    Layer.provide([Layer.succeed(DashboardConfig, { refusal, isForThisMachine: true }), Passwords.layer(2 ** 10)]),
    Layer.provideMerge(Layer.provideMerge(Streams.ending, Streams.layer)),
    Layer.provide(Layer.succeed(PagesConfig, { embedOrigins })),
    Layer.provide(
      Layer.effect(
        HttpConfig,
        Effect.map(addressOf, (url) => ({ docsUrl: `${url}/docs`, requestMillisMax }))
      )
    ),
    Layer.provide(requestLog),
    Layer.provideMerge(MemoryService.engine(faults)),
    Layer.provideMerge(
      Layer.effect(
        PaymentsConfig,
        Effect.map(addressOf, (publicUrl) => paymentsConfig({ publicUrl, liveProcessor }))
      )
    ),
    Layer.provideMerge(
      MemoryService.listening(() => answerUnreadable(NodeServer.create({ plain: MemoryService.PLAIN_HTTP }), "/docs"))
    )
  )

/** Starts a server with one merchant. */
export const start = async (
  merchantName = "Lumen Coffee",
  faults: Faults.Faults = () => Effect.void,
  requestMillisMax: number = 30_000,
  embedOrigins: ReadonlySet<string> | null = null,
  liveProcessor: "simulator" | null = null,
  refusal: string | null = null,
  requestLog: Layer.Layer<never, never, Placement> = Layer.empty,
  clock: Layer.Layer<never> = Layer.empty
): Promise<PagesServer> => {
  const routes: Array<Route> = [...endpoints, { method: "GET", path: "/healthz" }, { method: "GET", path: "/readyz" }]
  const runtime = ManagedRuntime.make(
    service(routes, faults, requestMillisMax, embedOrigins, liveProcessor, refusal, requestLog).pipe(
      Layer.provide(clock)
    )
  )
  const url = await runtime.runPromise(addressOf)
  const accounts = await runtime.runPromise(Accounts)
  const keys = await runtime.runPromise(MemoryService.merchant(merchantName))
  const streams = await runtime.runPromise(Streams)
  let counter = 0
  return {
    url,
    ...keys,
    accounts,
    post: async (path, body, { key = keys.secretTest, status = 200 } = {}) => {
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
    get: async (path, key = keys.secretTest) =>
      (await fetch(url + path, { headers: { authorization: basic(key) } })).json(),
    journal: () => runtime.runPromise(MemoryService.journalText(`${keys.merchantId}:test`)),
    journalOfAll: () =>
      runtime.runPromise(
        Effect.flatMap(Effect.orDie(Journal.use(({ accounts }) => accounts)), (accounts) =>
          Effect.map(Effect.forEach(accounts, MemoryService.journalText), (texts) => texts.join("\n"))
        )
      ),
    routes,
    openStreams: () => streams.size,
    close: () => runtime.dispose()
  }
}
