/**
 * Several runners of one Till in the test's own process: each has the real routes and pages, an engine, and a listener
 * for the other runners; all share one journal and one set of views in memory. The test decides which runner serves
 * which account.
 */
import { Effect, Layer, ManagedRuntime, Redacted } from "effect"
import { ApiVersions } from "../../src/domain/ApiVersions.ts"
import { Accounts } from "../../src/engine/Accounts.ts"
import * as Engine from "../../src/engine/Engine.ts"
import type { AccountId } from "../../src/engine/log/Document.ts"
import { partitionOf, PARTITIONS, Placement, type PlacementShape } from "../../src/engine/process/Placement.ts"
import { Forwarder } from "../../src/http/forward/Forwarder.ts"
import * as Forward from "../../src/http/forward/Forwarder.ts"
import * as RunnerTls from "../../src/http/forward/RunnerTls.ts"
import * as Routes from "../../src/http/Routes.ts"
import * as Waiting from "../../src/http/Waiting.ts"
import { PagesConfig } from "../../src/pages/checkout/Embedding.ts"
import * as Pages from "../../src/pages/Pages.ts"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import { PaymentsConfig } from "../../src/payments/shared/PaymentsConfig.ts"
import type { Processors } from "../../src/payments/processing/Processor.ts"
import * as Simulator from "../../src/payments/processing/Simulator.ts"
import { HttpConfig, type HttpConfigShape } from "../../src/server/HttpConfig.ts"
import { type Storage, storageInMemory } from "../engine/Harness.ts"
import { createMerchant, type Keys } from "./fixtures/Merchants.ts"
import { lifecycles } from "./MemoryEngine.ts"
import { addressOf, DOCS_URL, layerSocket, PLAIN_HTTP } from "./MemoryTill.ts"
import { paymentsConfig } from "./PaymentsConfig.ts"

export const TLS = RunnerTls.make([Redacted.make(new Uint8Array(32).fill(7))])

/** Well below the time for which a placement counts as confirmed. */
const CONFIRM_MILLIS = 500

export interface Runner {
  readonly port: number
  /** Address for the other runners. */
  readonly url: string
  readonly placement: PlacementShape
  readonly accounts: Accounts["Service"]
  readonly run: <A, E>(effect: Effect.Effect<A, E, Accounts>) => Promise<A>
  readonly stop: () => Promise<void>
}

export interface MemoryFleet {
  readonly all: ReadonlyArray<Runner>
  /** Moves a partition, or the one of an account, to a runner, in the steps in which a cluster does it. */
  readonly move: (what: AccountId | number, to: number) => Promise<void>
  /** The index of the runner that serves an account. */
  readonly ownerOf: (account: AccountId) => number
  readonly merchant: () => Promise<Keys>
  readonly close: () => Promise<void>
}

/** Pages that a test adds to those of the service. */
export type MorePages = typeof Pages.layer

const routes = (
  storage: Storage,
  { http = {}, pages = Layer.empty, processors = Simulator.layer }: MemoryFleetOptions
) => {
  const engine = Engine.layer({ replicated: INSTALLATION }).pipe(
    Layer.provide(lifecycles),
    Layer.provideMerge(ApiVersions.layer()),
    Layer.provideMerge(processors),
    Layer.provide(Layer.succeedContext(storage))
  )
  return Waiting.ending.pipe(
    Layer.provideMerge(Routes.serveWith(Layer.merge(Pages.layer, pages))),
    Layer.provide(Waiting.layer),
    Layer.provideMerge(layerSocket(DOCS_URL)),
    Layer.provide(Layer.succeed(PagesConfig, { embedOrigins: null, isForThisMachine: false })),
    Layer.provide(Layer.succeed(HttpConfig, { docsUrl: DOCS_URL, ...http })),
    Layer.provideMerge(engine),
    Layer.provideMerge(Layer.succeed(PaymentsConfig, paymentsConfig({ publicUrl: "https://pay.example.test" }))),
    Layer.provideMerge(Forward.layer({ tls: TLS, host: "127.0.0.1", port: 0, plain: PLAIN_HTTP })),
    Layer.provideMerge(Placement.layerShared)
  )
}

const startRunner = async (storage: Storage, options: MemoryFleetOptions): Promise<Runner> => {
  const runtime = ManagedRuntime.make(routes(storage, options))
  const { accounts, placement, port, url } = await runtime.runPromise(
    Effect.gen(function* () {
      const { port } = yield* addressOf
      const { url } = yield* Forwarder
      return { accounts: yield* Accounts, placement: yield* Placement, port, url: url! }
    })
  )
  placement.confirm(performance.now())
  const timer = setInterval(() => placement.confirm(performance.now()), CONFIRM_MILLIS)
  return {
    port,
    url,
    placement,
    accounts,
    run: (effect) => runtime.runPromise(effect),
    stop: () => {
      clearInterval(timer)
      return runtime.dispose()
    }
  }
}

export interface MemoryFleetOptions {
  /** HTTP settings that differ from the defaults. */
  readonly http?: Partial<HttpConfigShape>
  readonly pages?: MorePages
  /** The simulator unless given. */
  readonly processors?: Layer.Layer<Processors, never, PaymentsConfig>
}

/** Starts runners and deals the partitions out to them in turn. */
export const start = async (count: number, options: MemoryFleetOptions = {}): Promise<MemoryFleet> => {
  const storage = await Effect.runPromise(storageInMemory)
  const all = await Promise.all(Array.from({ length: count }, () => startRunner(storage, options)))
  const owners = new Map<number, number>()
  const move = async (what: AccountId | number, to: number): Promise<void> => {
    const partition = typeof what === "number" ? what : partitionOf(what)
    const from = owners.get(partition)
    if (from === to) return
    if (from !== undefined) {
      await Effect.runPromise(all[from]!.placement.release(partition))
      for (const { placement } of all) placement.setPlace(partition, null)
    }
    owners.set(partition, to)
    await Effect.runPromise(all[to]!.placement.acquire(partition))
    for (const [index, { placement }] of all.entries()) if (index !== to) placement.setPlace(partition, all[to]!.url)
  }
  for (let partition = 0; partition < PARTITIONS; partition++) await move(partition, partition % count)
  const ownerOf = (account: AccountId) => owners.get(partitionOf(account))!
  return {
    all,
    move,
    ownerOf,
    merchant: () => all[ownerOf(INSTALLATION)]!.run(createMerchant("Merchant")),
    close: async () => {
      await Promise.all(all.map(({ stop }) => stop()))
    }
  }
}
