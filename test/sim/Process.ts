/**
 * A process of the whole service but its sockets and its Postgres: the real pipeline, engine and payments, on storage
 * that outlives it, in a time of the test's own. It can be killed at any moment. No `MemoryTill`: the simulation needs
 * virtual time and a network of its own, so the process has no sockets.
 */
import { Context, Effect, Exit, Layer, Option, Redacted, References, Scope } from "effect"
import { ApiVersions } from "../../src/domain/ApiVersions.ts"
import { Accounts, type AccountsShape } from "../../src/engine/Accounts.ts"
import * as Engine from "../../src/engine/Engine.ts"
import { ErasureStore } from "../../src/engine/Erasures.ts"
import { ErasureKey } from "../../src/engine/log/Erased.ts"
import { Placement, type PlacementShape } from "../../src/engine/process/Placement.ts"
import { AdmissionTime } from "../../src/http/Admission.ts"
import { RequestIds } from "../../src/http/RequestContext.ts"
import * as Forwarder from "../../src/http/forward/Forwarder.ts"
import type { ForwardedIncoming } from "../../src/http/forward/Listener.ts"
import { HttpConfig } from "../../src/server/HttpConfig.ts"
import type { Incoming } from "../../src/server/Incoming.ts"
import { layerAnswerWriter } from "../../src/http/IdempotentCommand.ts"
import * as Pipeline from "../../src/http/Pipeline.ts"
import { endpoints } from "../../src/http/ApiEndpoints.ts"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import * as Erasers from "../../src/payments/erasure/Erasers.ts"
import * as Formats from "../../src/payments/Formats.ts"
import { PaymentsConfig } from "../../src/payments/shared/PaymentsConfig.ts"
import {
  OperationDispatcher,
  type OperationDispatcherShape
} from "../../src/payments/lifecycles/OperationDispatcher.ts"
import { Processors, type ProcessorsShape } from "../../src/payments/processing/Processor.ts"
import * as Simulator from "../../src/payments/processing/Simulator.ts"
import * as Dispatcher from "../../src/processors/Dispatcher.ts"
import { guarded } from "../../src/processors/Guard.ts"
import { buildAlone, type Storage } from "../engine/Harness.ts"
import * as Faults from "../engine/storage/Faults.ts"
import { clockOf } from "../support/SettableClock.ts"
import { createMerchant, type Keys } from "../support/fixtures/Merchants.ts"
import { lifecycles } from "../support/MemoryEngine.ts"
import { paymentsConfig } from "../support/PaymentsConfig.ts"

export interface Request {
  readonly method: string
  readonly url: string
  readonly key: string
  readonly idempotencyKey: string | undefined
  readonly body: object | undefined
}

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

export interface Process {
  /** Sends a request; undefined if the process is killed before its response. */
  readonly request: (request: Request) => Promise<Answer | undefined>
  readonly merchant: Effect.Effect<Keys>
  readonly accounts: AccountsShape
  readonly look: OperationDispatcherShape["look"]
  readonly reconcile: OperationDispatcherShape["reconcile"]
  readonly placement: PlacementShape
  /** Receives a forwarded request. */
  readonly receive: (incoming: ForwardedIncoming) => void
  readonly stop: Effect.Effect<void>
  /** Kills the process: from then on, nothing of it reaches the storage or its clients. */
  readonly kill: () => void
}

class Received implements Incoming {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly arrivedAt = 0
  readonly isWhole = true
  readonly rawHeaders: ReadonlyArray<string>
  readonly remoteAddress = "127.0.0.1"
  isGone = false
  readonly answered = Promise.withResolvers<Answer | undefined>()
  readonly #body: Buffer

  constructor({ body, idempotencyKey, key, method, url }: Request) {
    this.method = method
    this.url = url
    this.#body = Buffer.from(body === undefined ? "" : JSON.stringify(body))
    this.headers = {
      host: "till.example",
      authorization: `Basic ${Buffer.from(`${key}:`).toString("base64")}`,
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey })
    }
    this.rawHeaders = Object.entries(this.headers).flat()
  }

  isRepeated(): boolean {
    return false
  }

  readBody(): Exit.Exit<Buffer> {
    return Exit.succeed(this.#body)
  }

  countFor(): void {}

  onGone(): void {}

  answer(status: number, headers: Readonly<Record<string, string>>, text: string): void {
    this.answered.resolve({ status, headers, text })
  }
}

class Service extends Context.Service<Service, { readonly answer: (incoming: Incoming) => void }>()("test/Service") {}

const service = Layer.effect(Service, Pipeline.make(endpoints))

/** The processors as a process of the service calls them. */
const layerGuarded = (processors: ProcessorsShape): Layer.Layer<Processors> =>
  Layer.effect(
    Processors,
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const runFork = Effect.runForkWith(yield* Effect.context<never>())
      return guarded(processors, { fork: (question) => void runFork(Effect.forkIn(question, scope)) })
    })
  )

/** The key that signs erasures. */
export const ERASURE_KEY: ErasureKey = Redacted.make(new Uint8Array(32).fill(5))

/** The context of one of several processes. */
export interface Among {
  readonly placement: Layer.Layer<Placement>
  /** Open unless the process is frozen. */
  readonly gate: Effect.Effect<void>
  /** How it reaches others, and where they reach it. */
  readonly forwarding?: { readonly url: string; readonly links: Forwarder.Senders }
  /** The processors, before their guard; the simulator by default. The effect waits while the process may not run. */
  readonly processors?: (alive: Effect.Effect<void>) => ProcessorsShape
}

const ALONE: Among = { placement: Placement.layerSole, gate: Effect.void }

/** Starts a process with the clock `now`. Its waits depend on the test clock. */
export const start = Effect.fnUntraced(function* (
  storage: Storage,
  now: () => number,
  faults: Faults.Faults,
  { forwarding, gate, placement, processors }: Among = ALONE
): Effect.fn.Return<Process> {
  let isDead = false
  const dying = Effect.andThen(
    gate,
    Effect.suspend(() => (isDead ? Effect.never : Effect.void))
  )
  const at: Faults.Faults = (point) => Effect.andThen(dying, Effect.andThen(faults(point), dying))
  const stored = Faults.layer(at).pipe(Layer.provide(Layer.succeedContext(storage)))
  const engine = Engine.layer({ replicated: INSTALLATION }).pipe(
    Layer.provide(lifecycles),
    Layer.provideMerge(ApiVersions.layer()),
    Layer.provideMerge(processors === undefined ? Simulator.layer : layerGuarded(processors(dying))),
    Layer.provideMerge(placement),
    Layer.provideMerge(stored)
  )
  const erasures = Context.getOption(storage, ErasureStore)
  const erasers = Option.isNone(erasures)
    ? Layer.empty
    : Erasers.layer({ pauses: () => Effect.void, onBegin: () => Effect.void }).pipe(
        Layer.provide([Formats.layer, Layer.succeed(ErasureStore, Faults.erasures(erasures.value, at))])
      )
  const forwarder =
    forwarding === undefined
      ? Layer.empty
      : Layer.effect(
          Forwarder.Forwarder,
          Forwarder.makeOver(forwarding.links, {}, { url: forwarding.url, serve: () => Effect.void })
        )
  const layer = Layer.mergeAll(service, erasers, Dispatcher.layer.pipe(Layer.provide(layerAnswerWriter))).pipe(
    Layer.provide(forwarder),
    Layer.provideMerge(engine),
    Layer.provide([RequestIds.layer, Layer.succeed(HttpConfig, { docsUrl: "https://till.example/docs" })]),
    Layer.provideMerge(Layer.succeed(PaymentsConfig, paymentsConfig())),
    Layer.provide(Layer.succeed(ErasureKey, ERASURE_KEY)),
    Layer.provide(clockOf(now, gate)),
    // Requests are admitted immediately, so the speed of the machine has no effect.
    Layer.provide(Layer.succeed(AdmissionTime, { now: () => 0, atTurnsEnd: setImmediate })),
    Layer.provide(Layer.succeed(References.MinimumLogLevel, "None"))
  )
  const scope = yield* Scope.make()
  const services = yield* Effect.provideService(buildAlone(layer, scope), References.MinimumLogLevel, "None")
  const { answer } = Context.get(services, Service)
  const shown = Context.get(services, Placement)
  const inside = <A, E>(effect: Effect.Effect<A, E>) => Effect.provide(effect, clockOf(now, gate))
  const waiting = new Set<Received>()
  return {
    request: async (request) => {
      await Effect.runPromise(gate)
      const received = new Received(request)
      if (isDead) return undefined
      waiting.add(received)
      answer(received)
      const answered = await received.answered.promise.finally(() => waiting.delete(received))
      await Effect.runPromise(gate)
      return isDead ? undefined : answered
    },
    receive: answer,
    accounts: Context.get(services, Accounts),
    look: (...asked) => inside(Context.get(services, OperationDispatcher).look(...asked)),
    reconcile: (...step) => inside(Context.get(services, OperationDispatcher).reconcile(...step)),
    placement: {
      ...shown,
      acquire: (partition) => inside(shown.acquire(partition)),
      release: (one) => inside(shown.release(one))
    },
    merchant: Effect.provideService(createMerchant("Merchant"), Accounts, Context.get(services, Accounts)),
    stop: Scope.close(scope, Exit.void),
    kill: () => {
      isDead = true
      for (const { answered } of waiting) answered.resolve(undefined)
      Effect.runFork(Scope.close(scope, Exit.void))
    }
  }
})
