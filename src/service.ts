/**
 * The composition root of the service: the one place where its layers meet. Read it from the storage up to the server.
 *
 * Layers close in the reverse order of their building: first the server, which answers running requests; then the
 * engine, which flushes and projects; then the connections; then the embedded Postgres.
 *
 * Only commands that serve load this file: other commands start in two thirds of the time without it.
 */
import { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer, type LogLevel, Record, Redacted, Schema } from "effect"
import { HttpServer } from "effect/http"
import cluster from "node:cluster"
import * as ErasureList from "./backup/ErasureList.ts"
import { Cluster } from "./cluster/Cluster.ts"
import { runners } from "./cluster/Report.ts"
import { type Protocol, Sessions } from "./cluster/Sessions.ts"
import * as Config from "./config.ts"
import {
  dashboardRefusalOf,
  endOf,
  InvalidConfiguration,
  isForThisMachine,
  publicUrlOf,
  TillConfig,
  type TillConfigShape
} from "./config.ts"
import * as ControlSocket from "./control/ControlSocket.ts"
import * as SecretFile from "./domain/SecretFile.ts"
import { AccountNumbers } from "./engine/log/AccountNumbers.ts"
import { Unavailable } from "./engine/Accounts.ts"
import type { AccountId } from "./engine/log/Document.ts"
import * as Anchors from "./engine/verify/Anchors.ts"
import { OutcomeHandler } from "./engine/Deliveries.ts"
import * as Engine from "./engine/Engine.ts"
import { innermostMessage, Journal } from "./engine/log/Journal.ts"
import { ErasureKey } from "./engine/log/Erased.ts"
import * as Metrics from "./engine/process/Metrics.ts"
import * as ProcessMetrics from "./engine/process/ProcessMetrics.ts"
import { Placement } from "./engine/process/Placement.ts"
import { Projector } from "./engine/actor/Projector.ts"
import { FORMAT, JournalCorrupt } from "./engine/log/Record.ts"
import * as Scrub from "./engine/verify/Scrub.ts"
import { remakeOutdated, verifyAccount } from "./engine/verify/Verify.ts"
import * as OldEvents from "./engine/views/OldEvents.ts"
import { administerAnywhere } from "./http/forward/Calls.ts"
import * as Forwarder from "./http/forward/Forwarder.ts"
import * as RunnerTls from "./http/forward/RunnerTls.ts"
import * as NodeServer from "./server/NodeServer.ts"
import * as Readiness from "./http/Readiness.ts"
import * as RequestMetrics from "./http/RequestMetrics.ts"
import * as Routes from "./http/Routes.ts"
import * as Waiting from "./http/Waiting.ts"
import * as Server from "./server/Server.ts"
import { layerAnswerWriter } from "./http/IdempotentCommand.ts"
import { docsUrlOf, HttpConfig } from "./server/HttpConfig.ts"
import { answerUnreadable } from "./http/UnreadableRequests.ts"
import { AdministrationFailed } from "./payments/administration/Administration.ts"
import { INSTALLATION } from "./payments/shared/AccountIds.ts"
import * as Pages from "./pages/Pages.ts"
import * as BrandPreview from "./pages/checkout/BrandPreview.ts"
import { PagesConfig } from "./pages/checkout/Embedding.ts"
import * as Erasers from "./payments/erasure/Erasers.ts"
import * as Formats from "./payments/Formats.ts"
import { type ApiKeys, type ApiKeySlot, layerEventVersions } from "./payments/merchants/Merchants.ts"
import { Keyring } from "./payments/shared/Keyring.ts"
import { Outbox } from "./payments/mail/Mails.ts"
import { Passwords } from "./payments/team/Passwords.ts"
import * as PaymentMetrics from "./payments/PaymentMetrics.ts"
import { PaymentsConfig } from "./payments/shared/PaymentsConfig.ts"
import * as Resealing from "./payments/administration/Resealing.ts"
import { following, printsOf, requireOwnSecret } from "./payments/administration/SecretInForce.ts"
import * as Timers from "./payments/Timers.ts"
import * as UnpaidTests from "./payments/erasure/UnpaidTests.ts"
import * as WebhookEndpoints from "./payments/webhooks/WebhookEndpoints.ts"
import * as WebhookOutages from "./payments/webhooks/WebhookOutages.ts"
import * as OperationDispatcher from "./processors/Dispatcher.ts"
import * as Registry from "./processors/Registry.ts"
import * as Database from "./postgres/Database.ts"
import * as InstallationSecret from "./postgres/InstallationSecret.ts"
import { setMark } from "./postgres/embedded/Marks.ts"
import * as Migrations from "./postgres/Migrations.ts"
import * as RequestLogPostgres from "./postgres/RequestLogPostgres.ts"
import { storageReport } from "./postgres/StorageReport.ts"
import * as StorageMetrics from "./postgres/StorageMetrics.ts"
import * as Dashboard from "./dashboard/Dashboard.ts"
import { Streams } from "./dashboard/frame/Live.ts"
import { DashboardConfig } from "./dashboard/frame/DashboardConfig.ts"
import { InstallationReports } from "./dashboard/developers/InstallationReports.ts"
import * as Dispatcher from "./webhooks/Dispatcher.ts"
import { Sender } from "./webhooks/Sender.ts"
import {
  anchorStore,
  apiVersions,
  cannotListen,
  cannotListenAt,
  foreignSecret,
  freePortOf,
  installationOf,
  installationSecret,
  keyring,
  logging,
  paymentsConfig,
  serveConfig,
  type Settled,
  stores,
  tables,
  VERSION
} from "./app.ts"
import { logOf } from "./engine/process/Log.ts"

const log = logOf("service")

/** Versions that runners must share to work side by side (semantics runners.compatibility). */
const PROTOCOL: Protocol = {
  records: FORMAT,
  migration: Migrations.newest,
  // One more with each change to `http/forward` after which an older Till could not ask this one, or answer it.
  requests: 1
}

/** True if several processes may share the database: a configured one, but not an embedded one. */
const isShared = ({ databaseUrl }: TillConfigShape): boolean => databaseUrl !== undefined

const sessions = Layer.unwrap(
  Effect.gen(function* () {
    if (!isShared(yield* TillConfig)) return Sessions.layerNone
    const { all } = yield* Keyring
    return Sessions.layer(
      PROTOCOL,
      all.map(({ print }) => print)
    )
  })
).pipe(Layer.provide([keyring, installationSecret]))

/** The storage of a service, which looks for other processes before it touches a table. */
const storageShared = tables.pipe(
  Layer.provideMerge(sessions),
  Layer.provideMerge(Layer.unwrap(Effect.map(TillConfig, Database.layer)))
)

const accountNumbers = Layer.unwrap(
  Effect.map(InstallationSecret.InstallationSecret, (secret) =>
    AccountNumbers.layer(Formats.KINDS, SecretFile.lastingKeyOf(secret, "account numbers"))
  )
).pipe(Layer.provide(installationSecret))

const anchoring = Layer.unwrap(
  Effect.gen(function* () {
    const { position } = yield* Keyring
    const all = SecretFile.anchorKeysOf(yield* InstallationSecret.InstallationSecret)
    return Anchors.layer({ all, position }, INSTALLATION)
  })
).pipe(Layer.provide([anchorStore, keyring, installationSecret]))

const httpConfig = Layer.effect(
  HttpConfig,
  Effect.map(TillConfig, (config) => {
    const { rateLimit, trustedProxies } = config
    return { docsUrl: docsUrlOf(publicUrlOf(config)), rateLimit, trustedProxies }
  })
)

const pagesConfig = Layer.effect(
  PagesConfig,
  Effect.map(TillConfig, (config) => {
    return { embedOrigins: config.embedOrigins ?? null, isForThisMachine: isForThisMachine(config) }
  })
)

/** The account with the merchants and keys was altered in the database: no request can be authenticated. */
class InstallationDamaged extends Schema.TaggedError<InstallationDamaged>()("InstallationDamaged", {
  problem: Schema.String
}) {
  override get message() {
    return (
      `the installation's own account, with its merchants and keys, was changed in the database: ${this.problem}. ` +
      "`till rebuild` recreates the tables that are derived from its records; damaged records need a backup."
    )
  }
}

const orDamaged = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | InstallationDamaged, R> =>
  Effect.catchDefect(effect, (defect) =>
    defect instanceof JournalCorrupt
      ? Effect.fail(new InstallationDamaged({ problem: defect.message }))
      : Effect.die(defect)
  )

/**
 * Updates views that an older Till made before anything reads them: payers' links and the secret's fingerprint are
 * looked up there. A corrupt journal affects only its own account: requests to that account fail with the error.
 */
const viewsOfToday = remakeOutdated.pipe(
  Effect.catchTag("JournalCorrupt", (corrupt) => log.error("Views could not be updated", corrupt.message)),
  Effect.provide(Projector.layer)
)

const placement = Layer.unwrap(
  Effect.map(TillConfig, (config) => (isShared(config) ? Placement.layerShared : Placement.layerSole))
)

/**
 * The views of today, written with this installation's secret. Checked first: timers, webhooks and processors would use
 * the wrong secret from their first moment on.
 */
const ownViews = Layer.effectDiscard(
  Effect.andThen(viewsOfToday, orDamaged(Effect.catchTag(requireOwnSecret, "ForeignSecret", () => foreignSecret)))
)

/** The configured processors, read before the engine's first timer. */
const processors = Layer.effectContext(orDamaged(Effect.catchTag(Registry.start, "JournalCorrupt", Effect.die))).pipe(
  Layer.provide(ownViews),
  Layer.provide(Formats.layer)
)

/** The mail that this process is about to send: none without a mail server, and then its code is not loaded. */
const outbox = Layer.unwrap(
  Effect.flatMap(TillConfig, ({ mail }) =>
    mail === undefined
      ? Effect.succeed(Layer.succeed(Outbox, null))
      : Effect.map(
          Effect.promise(() => import("./mail/Postman.ts")),
          ({ layerTray }) => layerTray
        )
  )
)

/** Sends mail, if a mail server is configured. */
const mail = Layer.unwrap(
  Effect.flatMap(TillConfig, ({ mail }) =>
    mail === undefined
      ? Effect.succeed(Layer.empty)
      : Effect.map(
          Effect.promise(() => import("./mail/Postman.ts")),
          ({ layer }) => layer(mail)
        )
  )
)

const erasureKey = Layer.effect(
  ErasureKey,
  Effect.map(InstallationSecret.InstallationSecret, (secret) => SecretFile.lastingKeyOf(secret, "erasures"))
).pipe(Layer.provide(installationSecret))

/** The engine with the lifecycles' timers, and the services that commands need besides it. */
const engine = Engine.layer({ replicated: INSTALLATION }).pipe(
  Layer.provide(Timers.layer),
  Layer.provide(Layer.succeed(OutcomeHandler, WebhookOutages.note)),
  Layer.provide(ownViews),
  // Outside of the engine: the last anchor covers the engine's final state.
  Layer.provide(anchoring),
  Layer.provide([Formats.layer, accountNumbers, layerEventVersions]),
  Layer.provideMerge(layerAnswerWriter),
  Layer.provideMerge(apiVersions),
  Layer.provideMerge(Registry.layerProcessors),
  Layer.provideMerge(processors),
  // After the storage: a start that the database refuses makes no secret.
  Layer.provideMerge(Layer.merge(paymentsConfig, erasureKey)),
  Layer.provideMerge(placement),
  Layer.provideMerge(storageShared)
)

const keyTaken = (slot: ApiKeySlot) =>
  Effect.fail(
    new InvalidConfiguration({ variable: Config.KEY_VARIABLES[slot], problem: "is a key of another merchant" })
  )

/** Erases customers' data, gently beside the requests. */
const erasers = Layer.unwrap(
  Effect.map(TillConfig, ({ dataFolder }) =>
    Erasers.layer({
      pauses: () => Scrub.gently().pause,
      // Before the data is gone: an older backup must not bring it back.
      onBegin: (person) => Effect.sync(() => ErasureList.add(dataFolder, [person]))
    })
  )
).pipe(Layer.provide(Formats.layer))

/** Deletes what is past its retention, where there is one. */
const retention = Layer.unwrap(
  Effect.map(TillConfig, ({ eventsDays, unpaidTestDays }) =>
    Layer.merge(
      eventsDays === undefined ? Layer.empty : OldEvents.layer(eventsDays),
      unpaidTestDays === undefined ? Layer.empty : UnpaidTests.layer(unpaidTestDays)
    )
  )
).pipe(Layer.provide(Formats.layer))

const FOREIGN_SECRET =
  "A secret was put in force that is not in this process' file: it ends. Copy the new file here, and start it again"

/** Follows rolls of the secret, and seals what is left under the one before. */
const secretRolls = Layer.merge(
  Resealing.layer,
  following(
    Effect.andThen(
      log.error(FOREIGN_SECRET),
      Effect.sync(() => process.kill(process.pid, "SIGTERM"))
    )
  )
).pipe(Layer.provide(Formats.layer))

const webhooks = Dispatcher.layer.pipe(Layer.provide([WebhookEndpoints.layerEndpoints, Sender.layer()]))

const runnerTls = Effect.gen(function* () {
  const { position } = yield* Keyring
  const secret = yield* InstallationSecret.InstallationSecret
  return RunnerTls.make(SecretFile.keysOf(secret, "connections between runners"), position)
})

/** Forwards requests to the process that serves their account, and accepts forwarded ones. */
const forwarding = Layer.unwrap(
  Effect.gen(function* () {
    const config = yield* TillConfig
    if (!isShared(config)) return Layer.empty
    const { plainHttp: plain, runnerHost: host } = config
    // Processes that share one port have the same environment, and each needs a port of its own here.
    const port = cluster.isWorker ? 0 : config.runnerPort
    return Layer.catch(Forwarder.layer({ tls: yield* runnerTls, host, port, plain }), ({ cause }) =>
      Layer.effectContext(Effect.fail(cannotListenAt({ TILL_RUNNER_HOST: host, TILL_RUNNER_PORT: port }, cause)))
    )
  })
).pipe(Layer.provide([keyring, installationSecret]))

/** This process' membership in the cluster. A single process does not load the cluster's code. */
const membership = Layer.unwrap(
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const { url } = yield* Forwarder.Forwarder
    if (sessions === null || url === null) return Cluster.layerAlone
    const { handOverMillisMax } = endOf(yield* TillConfig)
    const { layer } = yield* Effect.promise(() => import("./cluster/Runner.ts"))
    return layer({ url, version: VERSION, sessions, handOverMillisMax, tls: (yield* runnerTls).client })
  })
).pipe(Layer.provide([keyring, installationSecret]))

/** Waits until every account is served by a process. */
const joined = Layer.effectDiscard(Effect.flatMap(Cluster, ({ ready }) => ready))

const server = Layer.unwrap(
  Effect.map(TillConfig, (config) =>
    Server.layer(
      () => answerUnreadable(NodeServer.create({ plain: config.plainHttp }), docsUrlOf(publicUrlOf(config))),
      {
        host: config.host,
        hostBeside: config.hostBeside,
        port: config.port,
        gracefulShutdownTimeout: endOf(config).answerMillisMax
      }
    ).pipe(Layer.catch((error) => Layer.effectContext(Effect.fail(cannotListen(config, error.cause)))))
  )
)

class FirstStart extends Context.Service<
  FirstStart,
  {
    readonly generated: ApiKeys
    readonly added: ReadonlyArray<ApiKeySlot>
    /** Path that signs the first owner in to the dashboard once; null unless the merchant was created now. */
    readonly link: string | null
  }
>()("till/FirstStart") {
  static readonly layer = Layer.effect(
    FirstStart,
    Effect.gen(function* () {
      const config = yield* TillConfig
      // Checked first: new keys are shown once the server listens, and would be lost if it could not. For a port that
      // several processes share, the process that started them has checked it.
      if (!cluster.isWorker) {
        yield* Effect.mapError(freePortOf(config), (cause) => cannotListen(config, cause))
      }
      const given = Object.fromEntries(
        Object.entries(config.defaultKeys).flatMap(([slot, key]) =>
          key === undefined ? [] : [[slot, Redacted.value(key)]]
        )
      )
      // If several processes start at the same time, the one that serves the installation's account creates the keys.
      const prints = printsOf((yield* PaymentsConfig).keyring)
      const command = { _tag: "EnsureDefault", prints, given } as const
      const { ensured } = yield* orDamaged(administerAnywhere(command))
      if (ensured?._tag === "ForeignSecret") return yield* foreignSecret
      if (ensured?._tag === "ApiKeyTaken") return yield* keyTaken(ensured.slot)
      const generated = Record.map((ensured?.generated ?? {}) as Readonly<Record<string, string>>, (key) =>
        Redacted.make(key)
      )
      return { generated, added: ensured?.added ?? [], link: ensured?.link ?? null }
    })
  )
}

/** Accepts commands on the installation while the service runs. */
const controlSocket = Layer.unwrap(
  Effect.map(TillConfig, (config) => {
    const refusal = dashboardRefusalOf(config)
    return ControlSocket.layer(installationOf(config), (command) =>
      // A link is useless while signing in is impossible.
      command._tag === "LinkToDashboard" && refusal !== null
        ? Effect.fail(new AdministrationFailed({ message: refusal }))
        : administerAnywhere(command)
    )
  })
)

/** Facts about a started service for the person who starts it. Available once the service accepts requests. */
export class Started extends Context.Service<
  Started,
  {
    readonly baseUrl: string
    /** Keys that were generated now; they cannot be shown again. */
    readonly generated: ApiKeys
    /** Slots of the environment's keys that were new to the installation. */
    readonly added: ReadonlyArray<ApiKeySlot>
    /** Signs the default merchant's owner in to the dashboard, once; null after the first start. */
    readonly dashboardLink: string | null
    /** Reason for which the first start has no link; null if it has one, or the dashboard is off. */
    readonly dashboardRefusal: string | null
    /** True if the environment sets the secret key of test mode. */
    readonly isKeySet: boolean
  }
>()("till/Started") {
  static readonly layer = Layer.effect(
    Started,
    Effect.gen(function* () {
      const http = yield* HttpServer.HttpServer
      const config = yield* TillConfig
      const port = "port" in http.address ? http.address.port : config.port
      const { added, generated, link } = yield* FirstStart
      const refusal = dashboardRefusalOf(config)
      const baseUrl = publicUrlOf({ ...config, port })
      return {
        generated,
        added,
        baseUrl,
        dashboardLink: link === null || refusal !== null ? null : baseUrl + link,
        dashboardRefusal: link === null || !config.dashboard ? null : refusal,
        isKeySet: config.defaultKeys.secretTest !== undefined
      }
    })
  )
}

const unknownVariables = Layer.effectDiscard(
  Effect.flatMap(Config.unknownVariables, (names) =>
    names.length === 0
      ? Effect.void
      : log.warning(`Set in the environment, but not read by Till: ${names.join(", ")}`, undefined, {
          cause: "unknown"
        })
  )
)

/** Checks an account over a connection of its own: the snapshot stays open for long, and would block the others. */
const checkAlone = Effect.gen(function* () {
  const server = yield* Database.Database
  const alone = Layer.fresh(stores).pipe(
    Layer.provide(PgClient.layerFrom(Database.connect(server, true))),
    Layer.provideMerge(Formats.layer)
  )
  return (account: AccountId) => Effect.provide(verifyAccount(account, Scrub.gently()), alone)
})

const scrubbing = Layer.effectDiscard(
  Effect.gen(function* () {
    const { dataFolder, scrubDays } = yield* TillConfig
    if (scrubDays === 0) return
    const { accounts } = yield* Journal
    const { isHere } = yield* Placement
    const onRound = (round: Scrub.Round) => setMark(dataFolder, "scrub", round)
    const period = scrubDays * 86_400_000
    yield* Effect.forkScoped(Scrub.forever({ period, accounts, isHere, check: yield* checkAlone, onRound }))
  })
)

/** The request log, or the deletion of its requests if it is turned off. */
const requestLog = Layer.unwrap(
  Effect.map(TillConfig, ({ requestLogDays }) =>
    requestLogDays === 0 ? RequestLogPostgres.layerOff() : RequestLogPostgres.layer(requestLogDays)
  )
)

/** The longest wait for the database in a report on the installation, in milliseconds. */
const REPORT_MILLIS_MAX = 2000

const installationReports = Layer.effect(
  InstallationReports,
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const clock = yield* Clock.Clock
    const withinLimit = <A>(report: Effect.Effect<A, unknown, PgClient.PgClient>): Effect.Effect<A, Unavailable> =>
      report.pipe(
        Effect.provideService(PgClient.PgClient, sql),
        Effect.timeout(REPORT_MILLIS_MAX),
        Effect.mapError((error) => new Unavailable({ reason: innermostMessage(error) }))
      )
    return {
      version: VERSION,
      standing: (account) => withinLimit(Effect.suspend(() => storageReport(account, clock.currentTimeMillisUnsafe()))),
      runners: withinLimit(runners)
    }
  })
)

/** Pages: those of payers, the documentation, and the dashboard unless it is turned off. */
const pages = Layer.unwrap(
  Effect.map(TillConfig, (config) => {
    if (!config.dashboard) return Pages.layer
    const settings = Layer.succeed(DashboardConfig, {
      refusal: dashboardRefusalOf(config),
      isForThisMachine: isForThisMachine(config)
    })
    return Layer.merge(
      Pages.layer,
      Layer.provide(Dashboard.layer, [settings, installationReports, BrandPreview.layer, Passwords.layer()])
    )
  })
)

const answeredRequests = Layer.unwrap(
  Effect.map(TillConfig, ({ accessLog }) => RequestMetrics.layer(accessLog ? process.stderr : undefined))
)

/** Ports that processes with one environment try for their metrics. */
const METRICS_PORTS_MAX = 64

/** Serves the metrics, or sends them to a collector, as far as the configuration says. */
const metrics = Layer.unwrap(
  Effect.gen(function* () {
    const { dataFolder, metricsHost, metricsPort, sendsMetrics } = yield* TillConfig
    if (metricsPort === undefined && !sendsMetrics) return Layer.empty
    const measured = Layer.merge(ProcessMetrics.layer(VERSION), StorageMetrics.layer(dataFolder))
    const sent = sendsMetrics
      ? (yield* Effect.promise(() => import("./server/OtlpMetrics.ts"))).layer(VERSION)
      : Layer.empty
    const served = metricsPort === undefined ? Layer.empty : serveMetrics(metricsHost, metricsPort)
    return Layer.merge(sent, served).pipe(Layer.provideMerge(measured))
  })
)

const traces = Layer.unwrap(
  Effect.gen(function* () {
    const { traceSampler } = yield* TillConfig
    if (traceSampler === undefined) return Layer.empty
    const { layer } = yield* Effect.promise(() => import("./server/OtlpTraces.ts"))
    return layer({ ...traceSampler, version: VERSION })
  })
)

const serveMetrics = (host: string, port: number) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { listen } = yield* Effect.promise(() => import("./server/MetricsServer.ts"))
      // A process among several on one port takes the first port that is free.
      const count = cluster.isWorker && port !== 0 ? METRICS_PORTS_MAX : 1
      const ports = Array.from({ length: count }, (_, i) => port + i)
      const url = yield* Effect.mapError(listen({ host, ports }), (cause) =>
        cannotListenAt({ TILL_METRICS_HOST: host, TILL_METRICS_PORT: port }, cause)
      )
      yield* log.info(`Metrics are served at ${url}`, undefined, { cause: "metrics" })
    })
  )

const serving = (impatience: Effect.Effect<void>) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { drainMillisMax, noticeMillis } = endOf(yield* TillConfig)
      const { leave } = yield* Cluster
      return Readiness.serving({ noticeMillis, handOver: leave, drainMillisMax, impatience })
    })
  )

export interface ServiceOptions {
  /** Takes precedence over the variable. */
  readonly level: LogLevel.LogLevel | undefined
  /** Ends when a second signal asks the service not to wait for other processes while it shuts down. */
  readonly impatience: Effect.Effect<void>
  /** Settings from the process that started several ones on one port. */
  readonly settled?: Settled
}

/** The whole service, running as long as the layer lives. */
export const service = ({ impatience, level, settled = {} }: ServiceOptions) =>
  Layer.mergeAll(Started.layer, unknownVariables, scrubbing, Layer.effectDiscard(Timers.logWaiting)).pipe(
    Layer.provideMerge(serving(impatience)),
    // Streams and waits end after balancers had time to notice, and before the server waits for running requests.
    Layer.provideMerge(Layer.merge(Streams.ending, Waiting.ending)),
    Layer.provideMerge(Routes.serveWith(pages)),
    Layer.provide([Streams.layer, Waiting.layer]),
    Layer.provide(Readiness.Readiness.layer),
    Layer.provide([requestLog, answeredRequests]),
    Layer.provide(controlSocket),
    Layer.provide(server),
    Layer.provide([httpConfig, pagesConfig]),
    Layer.provide(FirstStart.layer),
    Layer.provide(joined),
    Layer.provideMerge(membership),
    Layer.provide(forwarding),
    Layer.provide([erasers, retention, webhooks, mail, Registry.following, secretRolls, PaymentMetrics.layer, metrics]),
    Layer.provideMerge(OperationDispatcher.layer),
    Layer.provide(engine),
    Layer.provide([outbox, Metrics.layer, traces]),
    Layer.provide(logging(level)),
    Layer.provide(
      Layer.effect(
        TillConfig,
        Effect.map(TillConfig, (config) => ({ ...config, ...settled }))
      )
    ),
    Layer.provide(serveConfig)
  )
