/** The service over the engine in memory, as tests start it: its layers, its merchants, and its journal's text. */
import { Effect, Layer, Redacted } from "effect"
import type { Server } from "node:http"
import type { Version } from "../../src/domain/ApiVersions.ts"
import { ApiVersions, VERSIONS } from "../../src/domain/ApiVersions.ts"
import { AccountNumbers } from "../../src/engine/log/AccountNumbers.ts"
import { Accounts } from "../../src/engine/Accounts.ts"
import * as Engine from "../../src/engine/Engine.ts"
import { Journal } from "../../src/engine/log/Journal.ts"
import { Placement } from "../../src/engine/process/Placement.ts"
import { textOf } from "../../src/engine/log/Record.ts"
import { Readiness } from "../../src/http/Readiness.ts"
import * as HttpServer from "../../src/server/Server.ts"
import { INSTALLATION } from "../../src/payments/AccountIds.ts"
import * as Formats from "../../src/payments/Formats.ts"
import * as Merchants from "../../src/payments/Merchants.ts"
import type { Processor } from "../../src/payments/Processor.ts"
import * as Simulator from "../../src/payments/Simulator.ts"
import * as Timers from "../../src/payments/Timers.ts"
import * as Faults from "../engine/storage/Faults.ts"
import * as JournalMemory from "../engine/storage/JournalMemory.ts"
import * as ViewsMemory from "../engine/storage/ViewsMemory.ts"

export const numbers = AccountNumbers.layer(Formats.KINDS, Redacted.make(new Uint8Array(32).fill(9)))

/** The engine with the lifecycles' timers, and the versions of the API. */
export const engine = (faults?: Faults.Faults, versions?: ReadonlyArray<Version>) =>
  engineWith(Simulator.layer, faults, versions)

/** The same with other processors. */
export const engineWith = <E, R>(
  processor: Layer.Layer<Processor, E, R>,
  faults: Faults.Faults = () => Effect.void,
  versions: ReadonlyArray<Version> = VERSIONS
) =>
  Engine.layer().pipe(
    Layer.provide([Timers.layer, Formats.layer, numbers, Merchants.layerEventVersions]),
    Layer.provideMerge(ApiVersions.layer(versions)),
    Layer.provideMerge(processor),
    Layer.provideMerge(Placement.layerSole),
    Layer.provide(Faults.layer(faults)),
    Layer.provide(ViewsMemory.layerMemory),
    Layer.provideMerge(JournalMemory.layerMemory)
  )

/** Tests go without the parser for plain requests if the service would. */
export const PLAIN_HTTP = process.env["TILL_PLAIN_HTTP"] !== "off"

/** A process that is neither about to start nor to end. */
const ready = Layer.effectDiscard(Effect.map(Readiness, ({ enter }) => enter("serving"))).pipe(
  Layer.provideMerge(Readiness.layer)
)

/** A free port of this machine. */
export const listening = (make: () => Server) =>
  Layer.merge(ready, HttpServer.layer(make, { port: 0, host: "127.0.0.1" }))

/** A merchant's keys, in plain text. */
export interface Keys {
  readonly merchantId: string
  readonly secretTest: string
  readonly publishableTest: string
  readonly secretLive: string
  readonly publishableLive: string
}

export const merchant = (name: string): Effect.Effect<Keys, never, Accounts> =>
  Accounts.use((accounts) => accounts.run(INSTALLATION, Merchants.createWithKeys(name))).pipe(
    Effect.orDie,
    Effect.map(({ generated, merchant }) => ({
      merchantId: merchant.id,
      secretTest: Redacted.value(generated.secretTest!),
      publishableTest: Redacted.value(generated.publishableTest!),
      secretLive: Redacted.value(generated.secretLive!),
      publishableLive: Redacted.value(generated.publishableLive!)
    }))
  )

/** Everything that the journal holds of an account. */
export const journalText = (account: string): Effect.Effect<string, never, Journal> =>
  Journal.use((journal) => journal.read(account, 0, 1_000_000)).pipe(
    Effect.orDie,
    Effect.map((rows) => rows.map(({ bytes }) => textOf(bytes)).join("\n"))
  )
