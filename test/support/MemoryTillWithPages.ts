/**
 * A `MemoryTill` that also serves the pages and the dashboard. The addresses that Till hands out lead to its socket, so
 * that a browser can follow them. A file of its own, so that tests of the API load no pages.
 */
import { Effect, Layer, References } from "effect"
import { HttpRouter } from "effect/http"
import * as Dashboard from "../../src/dashboard/Dashboard.ts"
import { DashboardConfig } from "../../src/dashboard/frame/DashboardConfig.ts"
import { Streams } from "../../src/dashboard/frame/Live.ts"
import { Journal } from "../../src/engine/log/Journal.ts"
import { endpoints } from "../../src/http/ApiEndpoints.ts"
import * as Routes from "../../src/http/Routes.ts"
import type { SmtpOptions } from "../../src/mail/Smtp.ts"
import * as BrandPreview from "../../src/pages/checkout/BrandPreview.ts"
import { PagesConfig } from "../../src/pages/checkout/Embedding.ts"
import * as Pages from "../../src/pages/Pages.ts"
import { layerAnswerWriter } from "../../src/http/IdempotentCommand.ts"
import { Accounts } from "../../src/engine/Accounts.ts"
import type { AnswerWriter } from "../../src/payments/shared/AnswerWriter.ts"
import { ProcessorGate } from "../../src/payments/processing/ConfiguredProcessors.ts"
import {
  OperationDispatcher,
  type OperationDispatcherShape
} from "../../src/payments/lifecycles/OperationDispatcher.ts"
import * as OperationOutcomes from "../../src/payments/lifecycles/OperationOutcomes.ts"
import { Passwords } from "../../src/payments/team/Passwords.ts"
import { PaymentsConfig } from "../../src/payments/shared/PaymentsConfig.ts"
import { Processors, type ProcessorsShape } from "../../src/payments/processing/Processor.ts"
import type { Outcome } from "../../src/payments/processing/RemoteProcessor.ts"
import * as Exchange from "../../src/processors/Exchange.ts"
import { makeGate } from "../../src/processors/Registry.ts"
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
  /** Processors behind a network, with the dispatcher of their operations; the simulator unless given. */
  readonly processors?: ProcessorsShape
  /** Why the dashboard refuses to open; it opens unless given. */
  readonly refusal?: string
  /** The mail server; no mail is sent unless given. */
  readonly mail?: SmtpOptions
  /** The word of a processor that is asked about an operation. */
  readonly word?: () => Outcome
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

/** Checks gateways as the service does. */
const processorGate = Layer.effect(
  ProcessorGate,
  Effect.gen(function* () {
    const config = yield* PaymentsConfig
    return makeGate(config, yield* Exchange.make({ hosts: config.webhookHosts.live }))
  })
)

/** A processor that has carried out nothing by itself. */
const NOTHING_ELSEWHERE: Pick<OperationDispatcherShape, "adopt" | "reconcile"> = {
  adopt: () => Effect.succeed("nothing"),
  reconcile: () => Effect.succeed({ compared: 0, discrepancies: [], next: null })
}

/** Asks processors, which all have the same word. */
const askingFor = (word: () => Outcome) =>
  Layer.effect(
    OperationDispatcher,
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const services = yield* Effect.context<PaymentsConfig | Processors | AnswerWriter>()
      return {
        ...NOTHING_ELSEWHERE,
        look: (account, id, by) =>
          Effect.suspend(() =>
            Effect.as(
              accounts.run(account, Effect.provideContext(OperationOutcomes.conclude(id, word(), by), services)),
              true
            )
          )
      }
    })
  ).pipe(Layer.provide(layerAnswerWriter))

/** The layers that send mail. Their module is loaded only for tests of mail. */
const mailOf = (mail: SmtpOptions | undefined) => {
  if (mail === undefined) return { outbox: Layer.empty, postman: Layer.empty }
  const module = Effect.promise(() => import("../../src/mail/Postman.ts"))
  return {
    outbox: Layer.unwrap(Effect.map(module, ({ layerTray }) => layerTray)),
    postman: Layer.unwrap(
      Effect.map(module, ({ layer }) => Layer.provide(layer(mail), Layer.succeed(References.MinimumLogLevel, "None")))
    )
  }
}

const serviceOf = (routes: Array<Route>, options: PagesOptions) => {
  const { clock = Layer.empty, embedOrigins = null, faults, http, processors } = options
  const { isForThisMachine = false, liveProcessor = null, mail, refusal = null, requestLog = Layer.empty } = options
  const { word = () => ({ kind: "unknown", why: "No answer." }) } = options
  const { outbox, postman } = mailOf(mail)
  return Routes.serveWith(recordingRoutes(routes, Layer.merge(Pages.layer, Dashboard.layer))).pipe(
    Layer.provide([
      Layer.succeed(DashboardConfig, { refusal, isForThisMachine: true }),
      BrandPreview.layer,
      Passwords.layer(2 ** 10)
    ]),
    Layer.provideMerge(Layer.provideMerge(Streams.ending, Streams.layer)),
    Layer.provide(Layer.succeed(PagesConfig, { embedOrigins, isForThisMachine })),
    Layer.provide(
      Layer.effect(
        HttpConfig,
        Effect.map(addressOf, ({ url }) => ({ docsUrl: `${url}/docs`, requestMillisMax: 30_000, ...http }))
      )
    ),
    Layer.provide(requestLog),
    Layer.provide([processorGate, processors === undefined ? askingFor(word) : Layer.empty]),
    Layer.provide(postman),
    Layer.provideMerge(
      processors === undefined
        ? MemoryEngine.engine(faults)
        : MemoryEngine.engineWithOperations(Layer.succeed(Processors, processors), faults)
    ),
    Layer.provide(outbox),
    Layer.provideMerge(
      Layer.effect(
        PaymentsConfig,
        Effect.map(addressOf, ({ url }) =>
          paymentsConfig({ publicUrl: url, liveProcessor, sendsMail: mail !== undefined })
        )
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
