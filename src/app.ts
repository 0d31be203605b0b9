/**
 * The composition root: the one place where layers meet. Reads from the storage up to the server.
 *
 * Layers close in the reverse order of their building: first the server, which answers what is under way; then the
 * engine, which flushes and projects; then the connections; then the embedded Postgres.
 */
import { NodeHttpServer } from "@effect/platform-node"
import { Clock, Console, Context, Effect, Layer, Logger, type LogLevel, Option, Redacted, References } from "effect"
import { HttpServer } from "effect/http"
import { createHmac } from "node:crypto"
import { isIPv6 } from "node:net"
import * as Path from "node:path"
import type { TillConfigShape } from "./config.ts"
import * as Config from "./config.ts"
import { InvalidConfiguration, TillConfig } from "./config.ts"
import { AccountNumbers } from "./engine/AccountNumbers.ts"
import { Accounts } from "./engine/Accounts.ts"
import { Alarm } from "./engine/Alarm.ts"
import { DeliveryFeed } from "./engine/DeliveryFeed.ts"
import * as Engine from "./engine/Engine.ts"
import { Projector } from "./engine/Projector.ts"
import * as Verify from "./engine/Verify.ts"
import * as AdministrationDoor from "./http/Administration.ts"
import * as NodeServer from "./http/NodeServer.ts"
import * as Routes from "./http/Routes.ts"
import { freePort } from "./http/FreePort.ts"
import { HttpConfig } from "./http/HttpConfig.ts"
import { answerUnreadable } from "./http/UnreadableRequests.ts"
import { INSTALLATION } from "./payments/AccountIds.ts"
import * as Pages from "./pages/Pages.ts"
import { PagesConfig } from "./pages/PagesConfig.ts"
import * as Administration from "./payments/Administration.ts"
import { WEBHOOK_ENDPOINT } from "./payments/Documents.ts"
import { render as renderEvent } from "./payments/Events.ts"
import * as Formats from "./payments/Formats.ts"
import type { ApiKeys, ApiKeySlot } from "./payments/Merchants.ts"
import { ensureDefault, layerEventVersions } from "./payments/Merchants.ts"
import { PaymentsConfig } from "./payments/PaymentsConfig.ts"
import { Processor } from "./payments/Processor.ts"
import { keepPrint, requireOwnSecret } from "./payments/SecretPrint.ts"
import * as Timers from "./payments/Timers.ts"
import { logWaiting } from "./payments/WaitingPayments.ts"
import type { WebhookEndpointDocument } from "./payments/WebhookEndpoints.ts"
import { destinationOf } from "./payments/WebhookEndpoints.ts"
import * as Database from "./postgres/Database.ts"
import * as InstallationSecret from "./postgres/InstallationSecret.ts"
import * as JournalPostgres from "./postgres/JournalPostgres.ts"
import * as Migrations from "./postgres/Migrations.ts"
import * as ViewsPostgres from "./postgres/ViewsPostgres.ts"
import * as Dispatcher from "./webhooks/Dispatcher.ts"
import { Endpoints } from "./webhooks/Endpoints.ts"
import { Sender } from "./webhooks/Sender.ts"

// What the command line says about the domain, which it does not import.
export { API_KEY_GRACE_SECONDS_MAX } from "./domain/ApiKey.ts"
export { API_VERSIONS } from "./domain/ApiVersion.ts"
export type { Answer } from "./payments/Administration.ts"

/** How long a shutdown waits for requests under way. */
const GRACE_MILLIS = 4000

/** What the commands that use the API know of it from the environment, where the service has the same one. */
export interface ClientDefaults {
  readonly baseUrl: string
  readonly apiKey: Redacted.Redacted | undefined
  readonly authorizationHoldSeconds: number
}

export const clientDefaults: Effect.Effect<ClientDefaults, InvalidConfiguration> = Effect.map(
  Config.load,
  (config) => ({
    baseUrl: publicUrlOf(config),
    apiKey: config.apiKey ?? config.defaultKeys.secretTest,
    authorizationHoldSeconds: config.authorizationHoldSeconds
  })
)

const tables = Layer.provideMerge(Layer.mergeAll(JournalPostgres.layer, ViewsPostgres.layer), Migrations.layer)

/** The journal and the views, on the configured Postgres, with their tables up to date. */
export const storage = Layer.provideMerge(tables, Layer.unwrap(Effect.map(TillConfig, Database.layer)))

/** The same of an installation that is there already. */
const existingStorage = Layer.provideMerge(tables, Layer.unwrap(Effect.map(TillConfig, Database.layerOfExisting)))

/** With a projector, for maintenance. */
const maintenance = Projector.layer.pipe(Layer.provideMerge(existingStorage))

/** What a browser on this machine calls an address that it can reach as `localhost`, or any address at all. */
const LOCAL: ReadonlySet<string> = new Set(["127.0.0.1", "::1", "0.0.0.0", "::"])

const publicUrlOf = ({ host, port, publicUrl }: TillConfigShape): string => {
  const name = LOCAL.has(host) ? "localhost" : isIPv6(host) ? `[${host}]` : host
  return publicUrl ?? `http://${name}:${port}`
}

const docsUrlOf = (config: TillConfigShape): string => `${publicUrlOf(config)}/docs`

/** A key for one purpose, derived from the installation's secret. */
const deriveKey = (secret: Redacted.Redacted<Uint8Array>, purpose: string): Redacted.Redacted<Uint8Array> =>
  Redacted.make(createHmac("sha256", Redacted.value(secret)).update(purpose).digest())

const installationSecret = Layer.unwrap(
  Effect.map(TillConfig, ({ dataFolder }) => InstallationSecret.layer(dataFolder))
)

const paymentsConfig = Layer.effect(
  PaymentsConfig,
  Effect.gen(function* () {
    const config = yield* TillConfig
    const secret = yield* InstallationSecret.InstallationSecret
    return {
      publicUrl: publicUrlOf(config),
      authorizationHoldSeconds: config.authorizationHoldSeconds,
      liveProcessor: config.liveProcessor ?? null,
      currencies: config.currencies ?? null,
      fingerprintKey: deriveKey(secret, "card fingerprints"),
      sealingKey: deriveKey(secret, "sealed secrets"),
      webhookAllowPrivate: config.webhookAllowPrivate
    }
  })
).pipe(Layer.provide(installationSecret))

const accountNumbers = Layer.unwrap(
  Effect.map(InstallationSecret.InstallationSecret, (secret) =>
    AccountNumbers.layer(Formats.KINDS, deriveKey(secret, "account numbers"))
  )
).pipe(Layer.provide(installationSecret))

const httpConfig = Layer.effect(
  HttpConfig,
  Effect.map(TillConfig, (config) => ({ docsUrl: docsUrlOf(config), rateLimit: config.rateLimit }))
)

const pagesConfig = Layer.effect(
  PagesConfig,
  Effect.map(TillConfig, ({ embedOrigins }) => ({ embedOrigins: embedOrigins ?? null }))
)

const foreignSecret = Effect.fail(
  new InvalidConfiguration({
    variable: "TILL_DATA_DIR",
    problem:
      "its file `secret` is not the one that this database was written with; put that one back. Without it, the secrets " +
      "of webhook endpoints cannot be read"
  })
)

/** The engine with the lifecycles' timers, and what commands need besides it. */
export const engine = Engine.layer().pipe(
  Layer.provide(Timers.layer),
  // Timers and webhooks would work with the wrong secret from the first moment on.
  Layer.provide(Layer.effectDiscard(Effect.catchTag(requireOwnSecret, "ForeignSecret", () => foreignSecret))),
  Layer.provide([Formats.layer, accountNumbers, layerEventVersions]),
  Layer.provideMerge(Processor.layer),
  Layer.provideMerge(paymentsConfig),
  Layer.provideMerge(storage)
)

const keyTaken = (slot: ApiKeySlot) =>
  Effect.fail(
    new InvalidConfiguration({ variable: Config.KEY_VARIABLES[slot], problem: "is a key of another merchant" })
  )

/** What the dispatcher of webhooks knows of merchants. */
const endpoints = Layer.effect(
  Endpoints,
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const config = yield* PaymentsConfig
    const clock = yield* Clock.Clock
    return {
      resolve: (account, id) =>
        Effect.map(accounts.read(account, id), (entry) =>
          entry === undefined || entry.deleted || entry.kind !== WEBHOOK_ENDPOINT.name
            ? undefined
            : destinationOf(config, account, entry as WebhookEndpointDocument, clock.currentTimeMillisUnsafe())
        ),
      // It goes out as it was when the event happened (semantics W8).
      body: (account, event) => renderEvent(event, { account, pendingWebhooks: event.deliveries })
    }
  })
)

/** The service's webhooks, as long as the layer lives. */
const webhooks = Dispatcher.layer.pipe(Layer.provide([endpoints, Sender.layer()]))

/** What keeps the server from listening, by the variable that says where. */
const cannotListen = ({ host, port }: TillConfigShape, cause: unknown): InvalidConfiguration => {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined
  switch (code) {
    case "EADDRINUSE":
      return new InvalidConfiguration({ variable: "PORT", problem: `${port} on ${host} is in use by another process` })
    case "EACCES":
      return new InvalidConfiguration({ variable: "PORT", problem: `${port} on ${host} may not be used by this user` })
    default:
      return new InvalidConfiguration({
        variable: "HOST",
        problem: `cannot listen on ${host} (${String(code ?? cause)})`
      })
  }
}

const server = Layer.unwrap(
  Effect.map(TillConfig, (config) =>
    NodeHttpServer.layer(() => answerUnreadable(NodeServer.create(), docsUrlOf(config)), {
      host: config.host,
      port: config.port,
      gracefulShutdownTimeout: GRACE_MILLIS
    }).pipe(Layer.catch((error) => Layer.effectContext(Effect.fail(cannotListen(config, error.cause)))))
  )
)

/** The default merchant and its keys; those generated now, which only this start can show. */
class FirstStart extends Context.Service<
  FirstStart,
  { readonly generated: ApiKeys; readonly added: ReadonlyArray<ApiKeySlot> }
>()("till/FirstStart") {
  static readonly layer = Layer.effect(
    FirstStart,
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const config = yield* TillConfig
      // Keys that are made now are shown once the server listens; if it cannot, nobody would ever see them.
      yield* Effect.mapError(freePort(config.host, config.port), (cause) => cannotListen(config, cause))
      const given = Object.fromEntries(
        Object.entries(config.defaultKeys).filter(([, key]) => key !== undefined)
      ) as ApiKeys
      const print = keepPrint(yield* PaymentsConfig)
      return yield* accounts.run(INSTALLATION, Effect.andThen(print, ensureDefault(given)))
    }).pipe(Effect.catchTags({ ForeignSecret: () => foreignSecret, ApiKeyTaken: ({ slot }) => keyTaken(slot) }))
  )
}

const administrationFile = ({ dataFolder }: TillConfigShape): string => Path.join(dataFolder, "administration.json")

const databaseName = ({ databaseUrl }: TillConfigShape): string =>
  databaseUrl === undefined ? "the embedded database" : Database.nameOf(databaseUrl)

const administration = Layer.unwrap(
  Effect.map(TillConfig, (config) => AdministrationDoor.layer(administrationFile(config), databaseName(config)))
)

const greeting = Layer.effectDiscard(
  Effect.gen(function* () {
    const { added, generated } = yield* FirstStart
    const http = yield* HttpServer.HttpServer
    const config = yield* TillConfig
    const port = "port" in http.address ? http.address.port : config.port
    yield* Console.log(
      greetingOf(publicUrlOf({ ...config, port }), generated, config.defaultKeys.secretTest !== undefined)
    )
    if (added.length > 0) yield* Console.log(`\n${additionOf(added)}`)
  })
)

const KEY_NAMES: Readonly<Record<ApiKeySlot, string>> = {
  secretTest: "Secret key, test mode",
  publishableTest: "Publishable key, test mode",
  secretLive: "Secret key, live mode",
  publishableLive: "Publishable key, live mode"
}

/** Whoever replaces a key in the environment may think that the former one is worth nothing any more. */
const additionOf = (added: ReadonlyArray<ApiKeySlot>): string =>
  `New from the environment: ${added.map((slot) => KEY_NAMES[slot].toLowerCase()).join("; ")}.\n` +
  "The keys that were there before stay valid: `till keys list` names them, `till keys roll key_… --expires-in 0` ends one."

const greetingOf = (baseUrl: string, generated: ApiKeys, keyIsSet: boolean): string => {
  const lines = [`Till listens on ${baseUrl}`]
  const slots = (Object.keys(KEY_NAMES) as Array<ApiKeySlot>).filter((slot) => generated[slot] !== undefined)
  if (slots.length > 0) {
    lines.push("", "These keys are shown this once; only their hashes are stored:")
    for (const slot of slots) lines.push(`  ${KEY_NAMES[slot].padEnd(27)} ${Redacted.value(generated[slot]!)}`)
  }
  const key = generated.secretTest
  if (key !== undefined || keyIsSet) {
    lines.push(
      "",
      "Try it:",
      `  curl ${baseUrl}/v1/payment_intents -u ${key === undefined ? "$TILL_SK_TEST" : Redacted.value(key)}: \\`,
      `    -H 'Content-Type: application/json' -H 'Idempotency-Key: first' \\`,
      `    -d '{"amount": 2000, "currency": "usd", "payment_method": "pm_card_visa", "confirm": true}'`
    )
  }
  return lines.join("\n")
}

const unknownVariables = Layer.effectDiscard(
  Effect.flatMap(Config.unknownVariables, (names) =>
    names.length === 0
      ? Effect.void
      : Effect.logWarning(`Set in the environment, but not read by Till: ${names.join(", ")}`)
  )
)

/** The whole service. */
const app = Layer.mergeAll(greeting, unknownVariables, Layer.effectDiscard(logWaiting)).pipe(
  Layer.provideMerge(Routes.serveWith(Pages.layer)),
  Layer.provide(administration),
  Layer.provide(server),
  Layer.provide(httpConfig),
  Layer.provide(pagesConfig),
  Layer.provide(FirstStart.layer),
  Layer.provide(webhooks),
  Layer.provide(engine)
)

/** JSON lines on standard error; standard output has what the service says to the person who starts it. */
const logging = (level: LogLevel.LogLevel | undefined) =>
  Layer.unwrap(
    Effect.map(TillConfig, ({ logLevel }) =>
      Layer.mergeAll(
        Logger.layer([Logger.withConsoleError(Logger.formatJson)]),
        Layer.succeed(References.MinimumLogLevel, level ?? logLevel)
      )
    )
  )

/** The configuration to serve by. For `PORT=0` a port is chosen now, because links carry it. */
export const serveConfig = Layer.effect(
  TillConfig,
  Effect.gen(function* () {
    const config = yield* Config.load
    if (config.port !== 0) return config
    // What cannot be listened on is the server's to say.
    return { ...config, port: yield* Effect.orElseSucceed(freePort(config.host, 0), () => 0) }
  })
)

/**
 * Runs the service until it is interrupted, and then closes everything in order. A level that is given counts more than the
 * variable.
 */
export const serve = (level: LogLevel.LogLevel | undefined) =>
  Layer.launch(app.pipe(Layer.provide(logging(level)), Layer.provide(serveConfig)))

/** Accounts without what runs by itself, for commands on the installation: nobody is woken, no request is taken. */
export const accountsAlone = Accounts.layer().pipe(
  // Nothing that the installation's own account holds is found by its id alone.
  Layer.provide([Alarm.layer, DeliveryFeed.layer, Formats.layer, Timers.layerInstallation]),
  Layer.provide([AccountNumbers.layerNone, layerEventVersions]),
  Layer.provide(Projector.layer)
)

/** Carries out a command on the installation: through the running service, or, where none is running, in its place. */
export const administer = Effect.fnUntraced(function* (command: Administration.Command) {
  const config = yield* TillConfig
  const answered = yield* AdministrationDoor.ask(administrationFile(config), databaseName(config), command)
  if (Option.isSome(answered)) return answered.value
  const administered = Administration.administer(command).pipe(
    Effect.catchTag("Unavailable", ({ reason: message }) => new Administration.AdministrationFailed({ message })),
    Effect.provide(accountsAlone)
  )
  // A service that runs there would go on with what it knows.
  return yield* Effect.andThen(Database.requireAlone, administered).pipe(
    // A merchant may be made before the first start; everything else is about what is there.
    Effect.provide(command._tag === "CreateMerchant" ? storage : existingStorage)
  )
}, Effect.provide(Config.layer))

/** Checks the installation's journal, and the views against it. */
export const verify = Verify.verify().pipe(
  // Every installation that was started has records.
  Effect.filterOrFail(
    ({ problems, records }) => records > 0 || problems.length > 0,
    () => new Database.NothingThere()
  ),
  Effect.provide(maintenance),
  Effect.provide(Config.layer)
)

/** Rebuilds the installation's views from the journal, and says of how many accounts. Nobody else may write meanwhile. */
export const rebuild = Effect.andThen(Database.requireAlone, Verify.rebuild).pipe(
  Effect.filterOrFail(
    (accounts) => accounts > 0,
    () => new Database.NothingThere()
  ),
  Effect.provide(maintenance),
  Effect.provide(Config.layer)
)
