/**
 * A `MemoryTill` that also serves the pages and the dashboard. The addresses that Till hands out lead to its socket, so
 * that a browser can follow them. A file of its own, so that tests of the API load no pages.
 */
import { Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import * as Dashboard from "../../src/dashboard/Dashboard.ts"
import { DashboardConfig } from "../../src/dashboard/frame/DashboardConfig.ts"
import { Streams } from "../../src/dashboard/frame/Live.ts"
import { Journal } from "../../src/engine/log/Journal.ts"
import { endpoints } from "../../src/http/ApiEndpoints.ts"
import * as Routes from "../../src/http/Routes.ts"
import { PagesConfig } from "../../src/pages/checkout/Embedding.ts"
import * as Pages from "../../src/pages/Pages.ts"
import { Passwords } from "../../src/payments/Passwords.ts"
import { PaymentsConfig } from "../../src/payments/PaymentsConfig.ts"
import { HttpConfig } from "../../src/server/HttpConfig.ts"
import type { Keys } from "./fixtures/Merchants.ts"
import { basic } from "./HttpExchange.ts"
import * as MemoryEngine from "./MemoryEngine.ts"
import { addressOf, launch, layerSocket, type MemoryTill, type MemoryTillOptions } from "./MemoryTill.ts"
import { paymentsConfig } from "./PaymentsConfig.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- tests read fields of every kind of object
export type Answer = any

export interface Route {
  readonly method: string
  readonly path: string
}

/** Records the routes that a layer adds to the router. */
const recordingRoutes = <E, R>(
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

export interface PagesOptions extends Omit<MemoryTillOptions, "versions" | "waits"> {
  /** True if only this machine reaches Till; its home page then creates a checkout. */
  readonly isForThisMachine?: boolean
  /** Origins that may embed the checkout page; unless given, every origin may embed pages of test mode. */
  readonly embedOrigins?: ReadonlySet<string>
  readonly liveProcessor?: "simulator"
  /** Why the dashboard refuses to open; it opens unless given. */
  readonly refusal?: string
}

export interface MemoryTillWithPages extends MemoryTill, Keys {
  /** A POST with the test secret key (or another one), whose answer has to be `status` (200). */
  readonly post: (
    path: string,
    body: unknown,
    options?: { readonly key?: string; readonly status?: number }
  ) => Promise<Answer>
  readonly get: (path: string, key?: string) => Promise<Answer>
  /** The text of all journal records of all accounts, the installation's included. */
  readonly journalOfAll: () => Promise<string>
  /** The routes of the router and of the API. */
  readonly routes: ReadonlyArray<Route>
  /** Number of dashboard pages that listen for changes. */
  readonly openStreams: () => number
}

const serviceOf = (routes: Array<Route>, options: PagesOptions) => {
  const { clock = Layer.empty, embedOrigins = null, faults, http } = options
  const { isForThisMachine = false, liveProcessor = null, refusal = null, requestLog = Layer.empty } = options
  return Routes.serveWith(recordingRoutes(routes, Layer.merge(Pages.layer, Dashboard.layer))).pipe(
    Layer.provide([Layer.succeed(DashboardConfig, { refusal, isForThisMachine: true }), Passwords.layer(2 ** 10)]),
    Layer.provideMerge(Layer.provideMerge(Streams.ending, Streams.layer)),
    Layer.provide(Layer.succeed(PagesConfig, { embedOrigins, isForThisMachine })),
    Layer.provide(
      Layer.effect(
        HttpConfig,
        Effect.map(addressOf, ({ url }) => ({ docsUrl: `${url}/docs`, requestMillisMax: 30_000, ...http }))
      )
    ),
    Layer.provide(requestLog),
    Layer.provideMerge(MemoryEngine.engine(faults)),
    Layer.provideMerge(
      Layer.effect(
        PaymentsConfig,
        Effect.map(addressOf, ({ url }) => paymentsConfig({ publicUrl: url, liveProcessor }))
      )
    ),
    Layer.provideMerge(layerSocket("/docs")),
    Layer.provide(clock)
  )
}

/** Starts a Till that serves the API, the pages and the dashboard. */
export const start = async (options: PagesOptions = {}): Promise<MemoryTillWithPages> => {
  const routes: Array<Route> = [...endpoints, { method: "GET", path: "/healthz" }, { method: "GET", path: "/readyz" }]
  const { runtime, till } = await launch(serviceOf(routes, options), options.merchantName ?? "Lumen Coffee")
  const streams = await runtime.runPromise(Streams)
  const { keys, request, url } = till
  return {
    ...till,
    ...keys,
    post: async (path, body, { key = keys.secretTest, status = 200 } = {}) => {
      const answer = await request("POST", path, { key, body })
      if (answer.status !== status) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`)
      return answer.body
    },
    get: async (path, key = keys.secretTest) =>
      (await fetch(url + path, { headers: { authorization: basic(key) } })).json(),
    journalOfAll: () =>
      runtime.runPromise(
        Effect.flatMap(Effect.orDie(Journal.use(({ accounts }) => accounts)), (accounts) =>
          Effect.map(Effect.forEach(accounts, MemoryEngine.journalText), (texts) => texts.join("\n"))
        )
      ),
    routes,
    openStreams: () => streams.size
  }
}
