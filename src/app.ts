/** The composition root of commands on an installation; service.ts has that of the service. Read it upwards. */
import { PgClient } from "@effect/sql-pg"
import { Clock, Effect, Layer, Logger, type LogLevel, Record, Redacted, References } from "effect"
import * as Path from "node:path"
import * as Backup from "./backup/Backup.ts"
import * as ErasureList from "./backup/ErasureList.ts"
import { type Mode, SECRET } from "./backup/Manifest.ts"
import { BackupFailed } from "./backup/BackupFailed.ts"
import * as Restore from "./backup/Restore.ts"
import { report } from "./cluster/Report.ts"
import { haveSecret } from "./cluster/Sessions.ts"
import * as Config from "./config.ts"
import { InvalidConfiguration, publicUrlOf, TillConfig, type TillConfigShape } from "./config.ts"
import { Administration } from "./control/Administration.ts"
import * as ControlSocket from "./control/ControlSocket.ts"
import { ApiVersions } from "./domain/ApiVersions.ts"
import { examine } from "./doctor/Doctor.ts"
import * as SecretFile from "./domain/SecretFile.ts"
import { PUBLIC_ONLY } from "./domain/WebhookHosts.ts"
import { AccountNumbers } from "./engine/log/AccountNumbers.ts"
import { Accounts } from "./engine/Accounts.ts"
import * as Log from "./engine/process/Log.ts"
import { WakeUp } from "./engine/process/WakeUp.ts"
import { ErasureStore } from "./engine/Erasures.ts"
import { ErasureKey } from "./engine/log/Erased.ts"
import * as Anchors from "./engine/verify/Anchors.ts"
import { CommitFeed } from "./engine/views/CommitFeed.ts"
import { innermostMessage } from "./engine/log/Journal.ts"
import { Placement } from "./engine/process/Placement.ts"
import { RunningTime } from "./engine/actor/RunningTime.ts"
import { Projector } from "./engine/actor/Projector.ts"
import * as Scrub from "./engine/verify/Scrub.ts"
import { SWIFTLY, verify } from "./engine/verify/Verify.ts"
import { Views } from "./engine/views/Views.ts"
import * as DataFolder from "./postgres/embedded/DataFolder.ts"
import * as EmbeddedPostgres from "./postgres/embedded/EmbeddedPostgres.ts"
import { setMark } from "./postgres/embedded/Marks.ts"
import { attempt } from "./postgres/embedded/EmbeddedPostgresError.ts"
import { freePortOfBoth } from "./postgres/embedded/FreePort.ts"
import { isLive } from "./payments/shared/AccountIds.ts"
import { AdministrationFailed, holdProcessors } from "./payments/administration/Administration.ts"
import * as Formats from "./payments/Formats.ts"
import { layerEventVersions } from "./payments/merchants/Merchants.ts"
import { inForce, isRolling, Keyring, ofFile as keyringOf } from "./payments/shared/Keyring.ts"
import { PaymentsConfig } from "./payments/shared/PaymentsConfig.ts"
import * as Resealing from "./payments/administration/Resealing.ts"
import { answersEndAt, isOwn, printsOf, readPrint, requireOwnSecret } from "./payments/administration/SecretInForce.ts"
import * as Timers from "./payments/Timers.ts"
import * as AnchorsPostgres from "./postgres/AnchorsPostgres.ts"
import * as Database from "./postgres/Database.ts"
import { DatabaseUnavailable, NothingThere } from "./postgres/Database.ts"
import * as ErasuresPostgres from "./postgres/ErasuresPostgres.ts"
import * as InstallationSecret from "./postgres/InstallationSecret.ts"
import * as JournalPostgres from "./postgres/JournalPostgres.ts"
import * as Migrations from "./postgres/Migrations.ts"
import * as RestoreTarget from "./postgres/RestoreTarget.ts"
import * as SnapshotPostgres from "./postgres/SnapshotPostgres.ts"
import * as ViewsPostgres from "./postgres/ViewsPostgres.ts"
import * as WritingPostgres from "./postgres/WritingPostgres.ts"

// The command line uses these. It imports no layer but this file and the client.
export { BackupFailed }
export type { Mode as BackupMode } from "./backup/Manifest.ts"
export { databaseUrlOf, endOf, KEY_VARIABLES, layer as configuration, publicUrlOf, TillConfig } from "./config.ts"
export { Administration } from "./control/Administration.ts"
export { API_KEY_GRACE_SECONDS_MAX } from "./domain/ApiKey.ts"
export { API_VERSIONS } from "./domain/ApiVersion.ts"
export type { BrandSetting } from "./domain/Brand.ts"
export { BRAND_SETTING_NAMES } from "./domain/Brand.ts"
export type { Finding } from "./doctor/Finding.ts"
export type { RecipeInput } from "./domain/TriggerRecipes.ts"
export { TRIGGER_RECIPES } from "./domain/TriggerRecipes.ts"
export { logOf } from "./engine/process/Log.ts"
export { Progress } from "./engine/process/Progress.ts"
export { watchEventLoop } from "./engine/process/Watchdog.ts"
export { rebuild } from "./engine/verify/Verify.ts"
export type { Administered, OperatorCommand } from "./payments/administration/Administration.ts"
export { Announcement } from "./postgres/embedded/Announcement.ts"
export { requireAlone } from "./postgres/Database.ts"
export { NothingThere }

export { VERSION } from "./version.ts"

export const stores = Layer.mergeAll(
  ErasuresPostgres.layer,
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

// The data folder must exist even if the secret lies elsewhere: it contains the control socket and the anchors' mark.
export const installationSecret = Layer.unwrap(
  Effect.flatMap(TillConfig, ({ dataFolder, secretFile }) =>
    Effect.as(DataFolder.prepare(dataFolder), InstallationSecret.layer(secretFile))
  )
)

/** The keys of the configured secret, which all parts of a process share, so that all notice a roll. */
export const keyring = Layer.effect(Keyring, Effect.map(InstallationSecret.InstallationSecret, keyringOf)).pipe(
  Layer.provide(installationSecret)
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
      fingerprintKey: SecretFile.lastingKeyOf(secret, "card fingerprints"),
      saltKey: SecretFile.lastingKeyOf(secret, "password salts"),
      keyring: yield* Keyring,
      sendsMail: config.mail !== undefined,
      webhookHosts: {
        test: { httpsOnly: false, besidePublic: config.webhookTestHosts, keepsPrivateAnswers: config.isLocal },
        live: { httpsOnly: true, besidePublic: config.webhookAllowPrivate ? ("any" as const) : PUBLIC_ONLY }
      }
    }
  })
).pipe(Layer.provide([keyring, installationSecret]))

const manifestKeysOf = (file: string, secret: Redacted.Redacted) =>
  Effect.map(InstallationSecret.secretOf(file, Redacted.value(secret)), (parsed) =>
    SecretFile.keysOf(parsed, "backup manifests")
  )

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

/**
 * Logs JSON lines to standard error. Standard output is for messages to the person who starts the service. A level from
 * the command line is that of all parts.
 */
export const logging = (level: LogLevel.LogLevel | undefined) =>
  Layer.unwrap(
    Effect.map(TillConfig, ({ logLevel, logLevels }) =>
      Layer.mergeAll(
        Logger.layer([Logger.withConsoleError(Logger.formatJson)]),
        Layer.succeed(References.MinimumLogLevel, level ?? logLevel),
        Log.layer(level === undefined ? logLevels : undefined)
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

/** Examines an installation and its machine, also while it is served. */
export const diagnosis = examine({
  freePort: (config) => Effect.mapError(freePortOf(config), (cause) => cannotListen(config, cause)),
  secretRoll: (config) =>
    Effect.flatMap(existingSecret, secretState).pipe(
      Effect.catchTag("NothingThere", () => Effect.succeed({ stage: "settled" as const, rolledAt: null, left: {} })),
      Effect.provide([Formats.layer, stores]),
      Effect.provideService(TillConfig, config)
    )
})

/** Checks an existing installation, also while it is served. `gently` leaves time to other work on the machine. */
export const verification = (pace: "swiftly" | "gently") =>
  Effect.gen(function* () {
    const secret = yield* InstallationSecret.find((yield* TillConfig).secretFile)
    const anchors = secret && (yield* Anchors.anchored({ all: SecretFile.anchorKeysOf(secret) }))
    const report = yield* Effect.provideService(
      verify(pace === "swiftly" ? SWIFTLY : Scrub.gently(), anchors?.heads),
      ErasureKey,
      secret === undefined ? null : SecretFile.lastingKeyOf(secret, "erasures")
    )
    return {
      ...report,
      problems: anchors?.problem == null ? report.problems : [anchors.problem, ...report.problems],
      /** Time of the newest anchor; null if there is none, undefined if it cannot be determined here. */
      newestAnchor: anchors && (anchors.newest === null ? null : Anchors.timeOf(anchors.newest))
    }
  }).pipe(Effect.provide(inspection))

/** Removes the remains of erased data from the files of the database. No service may run. */
export const purge = Effect.gen(function* () {
  const { databaseUrl, dataFolder } = yield* TillConfig
  const inTables = PgClient.PgClient.use((sql) =>
    Effect.andThen(
      Database.requireAlone,
      Effect.forEach(ErasuresPostgres.PURGING, (statement) => sql.unsafe(statement), { discard: true })
    )
  )
  yield* inTables.pipe(
    Effect.provide(existingStorage),
    Effect.catchTag("SqlError", (error) => Effect.fail(new DatabaseUnavailable({ message: innermostMessage(error) })))
  )
  // Statistics of catalogs hold values, too; only the superuser of the embedded database may write them anew.
  if (databaseUrl === undefined) yield* EmbeddedPostgres.purge(dataFolder, ["VACUUM (FULL) pg_statistic"])
  return { isEmbedded: databaseUrl === undefined }
}).pipe(Effect.provide(Config.layer))

export const backup = (folder: string, mode: Mode) =>
  Effect.gen(function* () {
    const migration = yield* Migrations.requireToday
    const { dataFolder, secretFile } = yield* TillConfig
    const secret = yield* InstallationSecret.existing(secretFile)
    const manifestKeys = yield* manifestKeysOf(secretFile, secret)
    yield* requireOwnSecret.pipe(
      Effect.provide([paymentsConfig, Formats.layer]),
      Effect.catchTag("ForeignSecret", () => foreignSecret)
    )
    const installation = { secret, manifestKeys, migration }
    const holds = (account: string) => mode === "all" || !isLive(account)
    const listed = yield* attempt(`read ${dataFolder}`, () => ErasureList.ofDataFolder(dataFolder))
    const erasures = ErasureList.union(listed, yield* (yield* ErasureStore).people)
    const done = yield* Backup.backup({ folder, mode, installation, erasures, holds })
    if (mode === "all") setMark(dataFolder, "backup", { at: done.at, folder: Path.resolve(folder) })
    return done
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

/** The secrets in the configured file, which must exist. */
const existingSecret = Effect.gen(function* () {
  const { secretFile } = yield* TillConfig
  return yield* InstallationSecret.secretOf(secretFile, Redacted.value(yield* InstallationSecret.existing(secretFile)))
})

/**
 * The stages of a roll: `settled` without one; `prepared` while the new secret is in the file but not in force;
 * `rewriting` while stored secrets are under the old one; `waiting` while answers to requests are; then `complete`.
 */
export type SecretStage = "settled" | "prepared" | "rewriting" | "waiting" | "complete"

const secretState = Effect.fnUntraced(function* (file: SecretFile.SecretFile) {
  const ring = keyringOf(file)
  const known = yield* readPrint
  if (known === undefined) return yield* new NothingThere()
  if (!isOwn(printsOf(ring), known)) return yield* foreignSecret
  ring.follow(known.print)
  const runningAt = yield* Effect.flatMap(Views, ({ runningTime }) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => runningTime(now))
  )
  const left = isRolling(ring) ? yield* Resealing.countLeft({ keyring: ring }) : {}
  const answersEndIn = isRolling(ring) ? Math.max(answersEndAt(known) - runningAt, 0) : 0
  const stageOfRoll = Object.keys(left).length > 0 ? "rewriting" : answersEndIn > 0 ? "waiting" : "complete"
  const stage: SecretStage = ring.all.length === 1 ? "settled" : isRolling(ring) ? stageOfRoll : "prepared"
  return {
    stage,
    rolledAt: known.rolled?.at ?? null,
    /** Whether all runners have read the newest secret. */
    isEverywhere: yield* haveSecret(ring.all[0]!.print),
    /** The number of documents with a text under the old secret, by their kinds. */
    left,
    /** How long answers under the old secret can still be repeated, in milliseconds of running time. */
    answersEndIn,
    command: { _tag: "RollSecret", from: inForce(ring).print, to: ring.all[0]!.print, runningAt } as const
  }
})
export type SecretState = Effect.Success<ReturnType<typeof secretState>>

const readSecretState = Effect.flatMap(existingSecret, secretState).pipe(Effect.provide(inspection))

/** Returns the stage of a roll, and what is left to do. */
export const secretStatus = Effect.map(readSecretState, (state) => ({ done: null, state }))

/** Takes the next step of a roll, if it can be taken. `target` is the file for a changed secret. */
export const rollSecret = (target: string | undefined) =>
  Effect.gen(function* () {
    const { secretFile } = yield* TillConfig
    const file = yield* existingSecret
    const state = yield* readSecretState
    const write = (changed: SecretFile.SecretFile) => InstallationSecret.replace(target ?? secretFile, changed)
    switch (state.stage) {
      case "settled":
        yield* write(SecretFile.withNewSecret(file))
        return { done: "added" as const, state: { ...state, stage: "prepared" as const } }
      case "prepared": {
        if (!state.isEverywhere) {
          return yield* new AdministrationFailed({
            message: "A process of this installation has not read the new secret: copy the file there, and restart it."
          })
        }
        yield* Effect.provide(
          Administration.use(({ carryOut }) => carryOut(state.command)),
          administration
        )
        return { done: "rolled" as const, state: yield* readSecretState }
      }
      case "complete":
        yield* write(SecretFile.withoutOldSecret(file))
        return { done: "removed" as const, state: { ...state, stage: "settled" as const } }
      default:
        return { done: null, state }
    }
  }).pipe(Effect.provide(Config.layer))

/** The restored state is from before a roll, and the secret of that time is no longer in the file. */
const rolledSince = (at: number, secretFile: string) =>
  new BackupFailed({
    message:
      `What was stored until ${new Date(at).toISOString()} is sealed with a secret that was rolled later. Put that secret ` +
      `into ${secretFile}, as a second line below the one of the backup, and restore again.`
  })

export interface RestoreOptions {
  /** The time up to which to restore; undefined for all. */
  readonly until: number | undefined
  /** Another database than the configured one. */
  readonly into: Redacted.Redacted | undefined
  /** A newer backup, or the list of a data folder. */
  readonly erasures: string | undefined
}

/** Restores a backup to the installation of this process' environment, or to its data folder with another database. */
export const restore = (folder: string, { erasures: listed, into, until }: RestoreOptions) =>
  Effect.gen(function* () {
    const { databaseUrl, ...config } = yield* TillConfig
    const { secretFile } = config
    const isSecretKnown = (yield* InstallationSecret.find(secretFile)) !== undefined
    const keysOf = (secret: Redacted.Redacted) =>
      Effect.andThen(
        // A secret file that exists takes precedence over the backup's.
        InstallationSecret.requireFree(secretFile, secret),
        manifestKeysOf(Path.join(folder, SECRET), secret)
      )
    const checked = yield* Restore.check({ folder, until, migration: Migrations.newest, keysOf })
    const keys = yield* manifestKeysOf(Path.join(folder, SECRET), checked.secret)
    const erasures = yield* attempt("read the list of erasures", () =>
      ErasureList.union(
        checked.manifest.erasures ?? [],
        ErasureList.ofDataFolder(config.dataFolder),
        listed === undefined ? [] : ErasureList.at(listed, keys)
      )
    )
    const secret = yield* InstallationSecret.secretOf(Path.join(folder, SECRET), Redacted.value(checked.secret))
    const erased = Effect.gen(function* () {
      if (erasures.length === 0 && until === undefined) return 0
      const { eraseAgain } = yield* Effect.promise(() => import("./payments/RestoredErasures.ts"))
      return yield* eraseAgain({
        people: erasures,
        isCut: until !== undefined,
        key: SecretFile.lastingKeyOf(secret, "erasures")
      })
    })
    const ownSecret = requireOwnSecret.pipe(
      Effect.provide([paymentsConfig, Formats.layer]),
      Effect.catchTag("ForeignSecret", () => rolledSince(checked.at, secretFile))
    )
    const loaded = Restore.load(checked).pipe(
      Effect.andThen(ownSecret),
      Effect.andThen(Effect.provide(erased, paymentsConfig)),
      Effect.tap(() => Effect.provide(holdProcessors(checked.at), accountsAlone)),
      Effect.tap(() => attempt(`write to ${config.dataFolder}`, () => ErasureList.add(config.dataFolder, erasures))),
      // Backups contain no anchors; the service makes new ones.
      Effect.tap(() => AnchorsPostgres.forget(config.dataFolder)),
      Effect.tap(() => RestoreTarget.release)
    )
    const people = yield* loaded.pipe(
      Effect.provide(restoreTarget(checked)),
      Effect.provideService(TillConfig, { ...config, databaseUrl: into ?? databaseUrl })
    )
    const { at, records, versions } = checked
    return { accounts: versions.size, records, at, erased: people, secretFile: isSecretKnown ? secretFile : null }
  }).pipe(Effect.provide(Config.layer))
