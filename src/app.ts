/** The composition root of commands on an installation; service.ts has that of the service. Read it upwards. */
import { Clock, Effect, Layer, Logger, type LogLevel, Record, Redacted, References } from "effect"
import { createHmac } from "node:crypto"
import * as Path from "node:path"
import * as Backup from "./backup/Backup.ts"
import { type Mode, SECRET } from "./backup/Manifest.ts"
import * as Restore from "./backup/Restore.ts"
import { report } from "./cluster/Report.ts"
import * as Config from "./config.ts"
import { InvalidConfiguration, publicUrlOf, TillConfig, type TillConfigShape } from "./config.ts"
import { Administration } from "./control/Administration.ts"
import * as ControlSocket from "./control/ControlSocket.ts"
import { ApiVersions } from "./domain/ApiVersions.ts"
import { PUBLIC_ONLY } from "./domain/WebhookHosts.ts"
import { AccountNumbers } from "./engine/log/AccountNumbers.ts"
import { Accounts } from "./engine/Accounts.ts"
import { WakeUp } from "./engine/process/WakeUp.ts"
import * as Anchors from "./engine/verify/Anchors.ts"
import { CommitFeed } from "./engine/views/CommitFeed.ts"
import { innermostMessage } from "./engine/log/Journal.ts"
import { Placement } from "./engine/process/Placement.ts"
import { RunningTime } from "./engine/actor/RunningTime.ts"
import { Projector } from "./engine/actor/Projector.ts"
import * as Scrub from "./engine/verify/Scrub.ts"
import { SWIFTLY, verify } from "./engine/verify/Verify.ts"
import * as DataFolder from "./postgres/embedded/DataFolder.ts"
import * as EmbeddedPostgres from "./postgres/embedded/EmbeddedPostgres.ts"
import { attempt } from "./postgres/embedded/EmbeddedPostgresError.ts"
import { freePortOfBoth } from "./postgres/embedded/FreePort.ts"
import { isLive } from "./payments/AccountIds.ts"
import * as Formats from "./payments/Formats.ts"
import { layerEventVersions } from "./payments/Merchants.ts"
import { PaymentsConfig } from "./payments/PaymentsConfig.ts"
import { requireOwnSecret } from "./payments/Sealing.ts"
import * as Timers from "./payments/Timers.ts"
import * as AnchorsPostgres from "./postgres/AnchorsPostgres.ts"
import * as Database from "./postgres/Database.ts"
import { DatabaseUnavailable } from "./postgres/Database.ts"
import * as InstallationSecret from "./postgres/InstallationSecret.ts"
import * as JournalPostgres from "./postgres/JournalPostgres.ts"
import * as Migrations from "./postgres/Migrations.ts"
import * as RestoreTarget from "./postgres/RestoreTarget.ts"
import * as SnapshotPostgres from "./postgres/SnapshotPostgres.ts"
import * as ViewsPostgres from "./postgres/ViewsPostgres.ts"
import * as WritingPostgres from "./postgres/WritingPostgres.ts"

// The command line uses these. It imports no layer but this file and the client.
export { BackupFailed } from "./backup/BackupFailed.ts"
export type { Mode as BackupMode } from "./backup/Manifest.ts"
export { databaseUrlOf, endOf, KEY_VARIABLES, layer as configuration, publicUrlOf, TillConfig } from "./config.ts"
export { Administration } from "./control/Administration.ts"
export { API_KEY_GRACE_SECONDS_MAX } from "./domain/ApiKey.ts"
export { API_VERSIONS } from "./domain/ApiVersion.ts"
export type { BrandSetting } from "./domain/Brand.ts"
export { BRAND_SETTING_NAMES } from "./domain/Brand.ts"
export type { RecipeInput } from "./domain/TriggerRecipes.ts"
export { TRIGGER_RECIPES } from "./domain/TriggerRecipes.ts"
export { Progress } from "./engine/process/Progress.ts"
export { watchEventLoop } from "./engine/process/Watchdog.ts"
export { rebuild } from "./engine/verify/Verify.ts"
export type { Administered, Command } from "./payments/Administration.ts"
export { Announcement } from "./postgres/embedded/Announcement.ts"
export { NothingThere, requireAlone } from "./postgres/Database.ts"

export { VERSION } from "./version.ts"

export const stores = Layer.mergeAll(
  JournalPostgres.layer,
  SnapshotPostgres.layer,
  ViewsPostgres.layer,
  WritingPostgres.layer
)
export const tables = Layer.provideMerge(stores, Migrations.layer)

/** The journal and the views, on the configured Postgres, with their tables up to date. */
export const storage = Layer.provideMerge(tables, Layer.unwrap(Effect.map(TillConfig, Database.layer)))

/** The storage of an existing installation, read-only; its service may be running. */
const storageReading = stores.pipe(
  Layer.provide(Layer.effectDiscard(Migrations.requireToday)),
  Layer.provideMerge(Layer.unwrap(Effect.map(TillConfig, Database.layerReading)))
)

/** The storage of an existing installation. Fails if there is none. */
const existingStorage = Layer.provideMerge(tables, Layer.unwrap(Effect.map(TillConfig, Database.layerOfExisting)))

export const deriveKey = (secret: Redacted.Redacted<Uint8Array>, purpose: string): Redacted.Redacted<Uint8Array> =>
  Redacted.make(createHmac("sha256", Redacted.value(secret)).update(purpose).digest())

// The data folder must exist even if the secret lies elsewhere: it contains the control socket and the anchors' mark.
export const installationSecret = Layer.unwrap(
  Effect.flatMap(TillConfig, ({ dataFolder, secretFile }) =>
    Effect.as(DataFolder.prepare(dataFolder), InstallationSecret.layer(secretFile))
  )
)

export const paymentsConfig = Layer.effect(
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
      webhookHosts: {
        test: { httpsOnly: false, besidePublic: config.webhookTestHosts, keepsPrivateAnswers: config.isLocal },
        live: { httpsOnly: true, besidePublic: config.webhookAllowPrivate ? ("any" as const) : PUBLIC_ONLY }
      }
    }
  })
).pipe(Layer.provide(installationSecret))

const manifestKeyOf = (file: string, secret: Redacted.Redacted) =>
  Effect.map(InstallationSecret.secretOf(file, Redacted.value(secret)), (bytes) => deriveKey(bytes, "backup manifests"))

export const anchorKeyOf = (secret: Redacted.Redacted<Uint8Array>) => deriveKey(secret, "anchors")

export const anchorStore = Layer.unwrap(Effect.map(TillConfig, ({ dataFolder }) => AnchorsPostgres.layer(dataFolder)))

export const foreignSecret = Effect.flatMap(TillConfig, ({ dataFolder, secretFile }) => {
  const isInFolder = secretFile === Path.join(dataFolder, "secret")
  return Effect.fail(
    new InvalidConfiguration({
      variable: isInFolder ? "TILL_DATA_DIR" : "TILL_SECRET_FILE",
      problem:
        `${isInFolder ? "its file `secret`" : "it"} is not the one that this database was written with; put that one ` +
        "back. Without it, the secrets of webhook endpoints cannot be read"
    })
  )
})

export const apiVersions = ApiVersions.layer()

/** Returns an error that names the variable which keeps the server from listening. */
export const cannotListen = ({ host, hostBeside, port }: TillConfigShape, cause: unknown): InvalidConfiguration => {
  const isBeside = hostBeside !== undefined && (cause as { readonly address?: unknown }).address === hostBeside
  return cannotListenAt({ HOST: isBeside ? hostBeside : host, PORT: port }, cause)
}

/** Returns the same for any pair of variables: the first for the address, the second for the port. */
export const cannotListenAt = (
  variables: Readonly<Record<string, string | number>>,
  cause: unknown
): InvalidConfiguration => {
  const [[hostVariable, host], [portVariable, port]] = Object.entries(variables) as [[string, string], [string, number]]
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined
  const onPort = (problem: string) => new InvalidConfiguration({ variable: portVariable, problem })
  switch (code) {
    case "EADDRINUSE":
      return onPort(`${port} on ${host} is in use by another process`)
    case "EACCES":
      return onPort(`${port} on ${host} may not be used by this user`)
    default:
      return new InvalidConfiguration({
        variable: hostVariable,
        problem: `cannot listen on ${host} (${String(code ?? cause)})`
      })
  }
}

export const installationOf = (config: TillConfigShape): ControlSocket.Installation => {
  const { databaseUrl, dataFolder, isEmbedded } = config
  return {
    dataFolder,
    database: databaseUrl === undefined || isEmbedded ? "the embedded database" : Database.nameOf(databaseUrl),
    publicUrl: publicUrlOf(config)
  }
}

/** Logs JSON lines to standard error. Standard output is for messages to the person who starts the service. */
export const logging = (level: LogLevel.LogLevel | undefined) =>
  Layer.unwrap(
    Effect.map(TillConfig, ({ logLevel }) =>
      Layer.mergeAll(
        Logger.layer([Logger.withConsoleError(Logger.formatJson)]),
        Layer.succeed(References.MinimumLogLevel, level ?? logLevel)
      )
    )
  )

/** Returns the configured port, or a free one for 0. Fails with the reason for which the server cannot listen on it. */
export const freePortOf = ({ host, hostBeside, port }: TillConfigShape) => freePortOfBoth(host, hostBeside, port)

/** The configuration of a service. `PORT=0` is replaced by a free port here, because links contain the port. */
export const serveConfig = Layer.effect(
  TillConfig,
  Effect.gen(function* () {
    const config = yield* Config.load
    if (config.port !== 0) return config
    // The server reports the reason if it cannot listen.
    return { ...config, port: yield* Effect.orElseSucceed(freePortOf(config), () => 0) }
  })
)

/** Settings that are the same in all processes on one port. */
export type Settled = Partial<Pick<TillConfigShape, "port" | "databaseUrl" | "isEmbedded">>

/** The settings that processes on one port share. Runs the embedded Postgres for them if no other is configured. */
export const settle = (processes: number) =>
  Effect.gen(function* () {
    const config = yield* TillConfig
    yield* Effect.mapError(freePortOf(config), (cause) => cannotListen(config, cause))
    const databaseUrl = config.databaseUrl ?? (yield* EmbeddedPostgres.make({ ...config, processes })).url
    return { port: config.port, databaseUrl, isEmbedded: config.isEmbedded } satisfies Settled
  })

/** Writes a new file into the data folder, readable by its owner alone. Returns the file's path. */
export const keepInFolder = Effect.fnUntraced(function* (dataFolder: string, name: string, text: string) {
  const folder = yield* DataFolder.prepare(dataFolder)
  const file = Path.join(folder, `${name}-${Math.floor((yield* Clock.currentTimeMillis) / 1000)}`)
  yield* attempt(`write ${file}`, () => DataFolder.writeAtomically(file, text))
  return file
})

/** Ends the embedded Postgres of a data folder whose supervising process was killed. */
export const endEmbedded: (dataFolder: string) => void = EmbeddedPostgres.endAbandoned

/** Accounts for commands on the installation, without background work: no timers fire, no requests arrive. */
export const accountsAlone = Accounts.layer().pipe(
  // No document of the installation's own account is looked up by its id alone.
  Layer.provide([WakeUp.layer, CommitFeed.layer, Placement.layerSole, RunningTime.layer, Timers.layerInstallation]),
  Layer.provide([AccountNumbers.layerNone, Layer.provide(layerEventVersions, apiVersions)]),
  Layer.provide(Projector.layer),
  Layer.provide(Formats.layer)
)

/** Requires that no service runs: it would go on with the state in its memory. */
const accountsInPlace = Layer.provide(accountsAlone, Layer.effectDiscard(Database.requireAlone))

/** Runs commands on the installation of this process' environment, whether its service is running or not. */
export const administration = Layer.unwrap(
  Effect.map(TillConfig, (config) =>
    Administration.layer(installationOf(config), {
      ofExisting: accountsInPlace.pipe(
        Layer.provide(existingStorage),
        Layer.provide(Layer.succeed(TillConfig, config))
      ),
      ofAny: accountsInPlace.pipe(Layer.provide(storage), Layer.provide(Layer.succeed(TillConfig, config)))
    })
  )
).pipe(Layer.provide(Config.layer))

/** The journal, the views and a projector of an existing installation, for a rebuild. */
export const maintenance = Projector.layer.pipe(
  Layer.provideMerge(Formats.layer),
  Layer.provideMerge(existingStorage),
  Layer.provide(Config.layer)
)

const inspection = Layer.mergeAll(Formats.layer, anchorStore).pipe(
  Layer.provideMerge(storageReading),
  Layer.provideMerge(Config.layer)
)

export const clusterReport = Effect.catchTag(report, "SqlError", (error) =>
  Effect.fail(new DatabaseUnavailable({ message: innermostMessage(error) }))
).pipe(Effect.provide(inspection))

/** Checks an existing installation, also while it is served. `gently` leaves time to other work on the machine. */
export const verification = (pace: "swiftly" | "gently") =>
  Effect.gen(function* () {
    const secret = yield* InstallationSecret.find((yield* TillConfig).secretFile)
    const anchors = secret === undefined ? undefined : yield* Anchors.anchored(anchorKeyOf(secret))
    const report = yield* verify(pace === "swiftly" ? SWIFTLY : Scrub.gently(), anchors?.heads)
    return {
      ...report,
      problems: anchors?.problem == null ? report.problems : [anchors.problem, ...report.problems],
      /** Time of the newest anchor; null if there is none, undefined if it cannot be determined here. */
      newestAnchor: anchors && (anchors.newest === null ? null : Anchors.timeOf(anchors.newest))
    }
  }).pipe(Effect.provide(inspection))

export const backup = (folder: string, mode: Mode) =>
  Effect.gen(function* () {
    const migration = yield* Migrations.requireToday
    const { secretFile } = yield* TillConfig
    const secret = yield* InstallationSecret.existing(secretFile)
    const manifestKey = yield* manifestKeyOf(secretFile, secret)
    yield* requireOwnSecret.pipe(
      Effect.provide([paymentsConfig, Formats.layer]),
      Effect.catchTag("ForeignSecret", () => foreignSecret)
    )
    const installation = { secret, manifestKey, migration }
    const holds = (account: string) => mode === "all" || !isLive(account)
    return yield* Backup.backup({ folder, mode, installation, holds })
  }).pipe(Effect.provide(storageReading), Effect.provide(Config.layer))

/** An empty installation that is a restore's alone until it is given free. */
const restoreTarget = ({ secret }: Restore.Checked) =>
  Projector.layer.pipe(
    Layer.provide(Formats.layer),
    Layer.provideMerge(stores),
    Layer.provideMerge(Migrations.layerRestoring),
    Layer.provide(
      Layer.effectDiscard(
        Effect.gen(function* () {
          yield* Database.requireAlone
          yield* RestoreTarget.claim
          yield* InstallationSecret.put((yield* TillConfig).secretFile, secret)
        })
      )
    ),
    Layer.provideMerge(Layer.unwrap(Effect.map(TillConfig, Database.layer)))
  )

/** Restores a backup to the installation of this process' environment, or to its data folder with another database. */
export const restore = (folder: string, until: number | undefined, into: Redacted.Redacted | undefined) =>
  Effect.gen(function* () {
    const { databaseUrl, ...config } = yield* TillConfig
    const { secretFile } = config
    const isSecretKnown = (yield* InstallationSecret.find(secretFile)) !== undefined
    const keyOf = (secret: Redacted.Redacted) =>
      Effect.andThen(
        // A secret file that exists takes precedence over the backup's.
        InstallationSecret.requireFree(secretFile, secret),
        manifestKeyOf(Path.join(folder, SECRET), secret)
      )
    const checked = yield* Restore.check({ folder, until, migration: Migrations.newest, keyOf })
    const loaded = Restore.load(checked).pipe(
      // Backups contain no anchors; the service makes new ones.
      Effect.andThen(AnchorsPostgres.forget(config.dataFolder)),
      Effect.andThen(RestoreTarget.release)
    )
    yield* loaded.pipe(
      Effect.provide(restoreTarget(checked)),
      Effect.provideService(TillConfig, { ...config, databaseUrl: into ?? databaseUrl })
    )
    const { at, records, versions } = checked
    return { accounts: versions.size, records, at, secretFile: isSecretKnown ? secretFile : null }
  }).pipe(Effect.provide(Config.layer))
