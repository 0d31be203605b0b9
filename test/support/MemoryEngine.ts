/**
 * The layers of the engine over storage in memory, with the timers and formats of the lifecycles. No starter of Till:
 * `MemoryTill` and `MemoryFleet` build on these layers, and tests of single lifecycles provide them directly.
 */
import { Effect, Layer, Redacted } from "effect"
import { ApiVersions, type Version, VERSIONS } from "../../src/domain/ApiVersions.ts"
import { AccountNumbers } from "../../src/engine/log/AccountNumbers.ts"
import * as Engine from "../../src/engine/Engine.ts"
import { Journal } from "../../src/engine/log/Journal.ts"
import { Placement } from "../../src/engine/process/Placement.ts"
import { layerAnswerWriter } from "../../src/http/IdempotentCommand.ts"
import { textOf } from "../../src/engine/log/Record.ts"
import * as Formats from "../../src/payments/Formats.ts"
import * as Merchants from "../../src/payments/merchants/Merchants.ts"
import type { Processors } from "../../src/payments/processing/Processor.ts"
import * as Simulator from "../../src/payments/processing/Simulator.ts"
import * as Timers from "../../src/payments/Timers.ts"
import * as Dispatcher from "../../src/processors/Dispatcher.ts"
import * as Faults from "../engine/storage/Faults.ts"
import * as JournalMemory from "../engine/storage/JournalMemory.ts"
import * as ViewsMemory from "../engine/storage/ViewsMemory.ts"

const numbers = AccountNumbers.layer(Formats.KINDS, Redacted.make(new Uint8Array(32).fill(9)))

/** The lifecycles as the engine needs them: timers, document formats, account numbers, event versions. */
export const lifecycles = Layer.mergeAll(Timers.layer, Formats.layer, numbers, Merchants.layerEventVersions).pipe(
  Layer.provide(layerAnswerWriter)
)

/** An engine that is the only process, with the simulator as its processor. */
export const engine = (faults?: Faults.Faults, versions?: ReadonlyArray<Version>) =>
  engineWith(Simulator.layer, faults, versions)

/** The same engine with other processors. */
export const engineWith = <E, R>(
  processor: Layer.Layer<Processors, E, R>,
  faults: Faults.Faults = () => Effect.void,
  versions: ReadonlyArray<Version> = VERSIONS,
  placement: Layer.Layer<Placement> = Placement.layerSole
) =>
  Engine.layer().pipe(
    Layer.provide(lifecycles),
    Layer.provideMerge(ApiVersions.layer(versions)),
    Layer.provideMerge(processor),
    Layer.provideMerge(placement),
    Layer.provide(Faults.layer(faults)),
    Layer.provideMerge(ViewsMemory.layerMemory),
    Layer.provideMerge(JournalMemory.layerMemory)
  )

/** An engine whose processor is behind a network, with the dispatcher of its operations. */
export const engineWithOperations = <E, R>(
  processor: Layer.Layer<Processors, E, R>,
  faults?: Faults.Faults,
  placement?: Layer.Layer<Placement>
) =>
  Dispatcher.layer.pipe(
    Layer.provide(layerAnswerWriter),
    Layer.provideMerge(engineWith(processor, faults, VERSIONS, placement))
  )

/** The text of all journal records of an account. */
export const journalText = (account: string): Effect.Effect<string, never, Journal> =>
  Journal.use((journal) => journal.read(account, 0, 1_000_000)).pipe(
    Effect.orDie,
    Effect.map((rows) => rows.map(({ bytes }) => textOf(bytes)).join("\n"))
  )
