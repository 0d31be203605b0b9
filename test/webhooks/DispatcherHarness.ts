/**
 * Runs a dispatcher on an engine in memory, by the test clock, with receivers whose behaviour the test sets. The
 * harness records every attempt itself, apart from the engine's own records.
 */
import { assert } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { Unavailable } from "../../src/engine/Accounts.ts"
import { Deliveries, type DeliveryRow } from "../../src/engine/Deliveries.ts"
import { Placement } from "../../src/engine/process/Placement.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import type { AttemptResult } from "../../src/webhooks/AttemptResult.ts"
import * as Dispatcher from "../../src/webhooks/Dispatcher.ts"
import { Endpoints } from "../../src/webhooks/Dispatcher.ts"
import { EventLoop } from "../../src/webhooks/Pace.ts"
import { type Message, Sender } from "../../src/webhooks/Sender.ts"
import type { Faults } from "../engine/storage/Faults.ts"
import type { RunningEngine, Storage } from "../engine/Harness.ts"
import * as Harness from "../engine/Harness.ts"
import * as Toy from "../engine/Toy.ts"
import { ANY } from "./Sending.ts"

export const ACCOUNT = "mer_1:test"

/** A receiver answers an attempt after a while, or never. */
export type Receiver = (message: Message) => { readonly afterMillis: number; readonly result: AttemptResult }

export const answers = (status: number, afterMillis: number = 0): ReturnType<Receiver> => ({
  afterMillis,
  result: { status, error: null }
})

/** The result of an attempt at a receiver that does not answer. */
export const hangs: ReturnType<Receiver> = { afterMillis: 30_000, result: { status: null, error: "timed out" } }

export interface Attempted {
  /** Number of the process that made it. */
  readonly process: number
  readonly destination: string
  readonly event: string
  readonly attempt: number
  readonly startedAt: number
}

export class DispatcherHarness {
  readonly storage: Storage
  readonly receiver: Receiver
  readonly attempts: Array<Attempted> = []
  engine!: RunningEngine
  /** Attempts under way now, and the most at one time. */
  underWay = new Set<string>()
  underWayMax = 0
  /** Calls to the engine that fail now: looking up an endpoint, or reporting outcomes of attempts. */
  readonly unavailable = new Set<"endpoint" | "report">()
  /** Faults of the engine's storage. */
  faults: Faults = () => Effect.void
  /** Destinations without an endpoint. */
  readonly gone = new Set<string>()
  /** True if the engine fails to render any event. */
  cannotRender = false
  /** How often the dispatcher has looked up an endpoint, rendered an event, and taken due deliveries. */
  lookUps = 0
  #peeks = 0
  bodies = 0
  takes = 0
  taken = 0
  /** The idle share of each turn of the event loop. Turns take none of the test clock's time. */
  spare = 1
  /** Attempts that had begun at the end of each turn. */
  readonly begunByTurn: Array<number> = []
  readonly #turn = Effect.map(Effect.yieldNow, () => {
    this.begunByTurn.push(this.attempts.length)
    return this.spare
  })
  #process = 0
  #scope = Scope.makeUnsafe()

  readonly #placement: Layer.Layer<Placement>

  constructor(storage: Storage, receiver: Receiver, placement: Layer.Layer<Placement> = Placement.layerSole) {
    this.storage = storage
    this.receiver = receiver
    this.#placement = placement
  }

  readonly start = Effect.fnUntraced({ self: this }, function* () {
    this.#process++
    this.underWay = new Set()
    this.engine = yield* Harness.startEngine(this.storage, {
      faults: (point) => this.faults(point),
      placement: this.#placement
    })
    this.#scope = yield* Scope.make()
    const layer = Dispatcher.layer.pipe(
      Layer.provide(Layer.succeed(Deliveries, this.#deliveries(this.engine.deliveries))),
      Layer.provide(
        Layer.succeed(Endpoints, {
          peek: (_account, url) => this.#peek(url),
          resolve: (_account, url) => this.#resolve(url),
          body: () => this.#body()
        })
      ),
      Layer.provide(Layer.succeed(Placement, this.engine.placement)),
      Layer.provide(Layer.succeed(Sender, { send: this.#send(this.#process) })),
      Layer.provide(Layer.succeed(EventLoop, { turn: this.#turn }))
    )
    yield* Harness.buildAlone(layer, this.#scope)
    yield* Harness.settled
  })

  /** Closes the dispatcher and then the engine, like a process that stops in order. */
  readonly stop = Effect.suspend(() => Effect.andThen(this.stopDispatcher, this.engine.stop))

  readonly stopDispatcher = Effect.suspend(() => Scope.close(this.#scope, Exit.void))

  /** Ends the process without warning; results of its attempts are lost. */
  readonly kill = Effect.suspend(() => this.engine.kill)

  readonly subscribe = (destinations: ReadonlyArray<string>, types: ReadonlyArray<string> = ["*"]) =>
    this.transact((transaction) => {
      for (const destination of destinations) transaction.subscribe(destination, types)
    })

  transact(command: (transaction: Transaction) => void) {
    return this.engine.accounts.run(ACCOUNT, Effect.map(Transaction, command))
  }

  /** Creates a document, which makes one event. */
  readonly happen = Effect.fnUntraced({ self: this }, function* (name: string) {
    yield* this.engine.accounts.run(ACCOUNT, Toy.create(name, "plain"))
  })

  /** Every delivery to a destination, oldest first. */
  readonly deliveries = Effect.fnUntraced({ self: this }, function* (destination: string) {
    const rows = yield* Harness.walk<DeliveryRow, never>("older", 100, (page) =>
      Effect.orDie(
        Effect.map(
          this.engine.accounts.deliveries(ACCOUNT, { destination, ...page }),
          ({ deliveries: rows, hasMore }) => ({ rows, hasMore })
        )
      )
    )
    return rows.toReversed()
  })

  #asking<A>(what: "endpoint" | "report", effect: Effect.Effect<A, Unavailable>): Effect.Effect<A, Unavailable> {
    const failing = Effect.andThen(Effect.sleep(300), Effect.fail(new Unavailable({ reason: "set by the test" })))
    return Effect.suspend(() => (this.unavailable.has(what) ? failing : effect))
  }

  /** Every second endpoint is in memory. */
  #peek(url: string) {
    if (this.unavailable.has("endpoint") || this.gone.has(url) || ++this.#peeks % 2 === 0) return undefined
    this.lookUps++
    return endpoint(url)
  }

  #resolve(url: string) {
    this.lookUps++
    return this.#asking("endpoint", Effect.succeed(this.gone.has(url) ? undefined : endpoint(url)))
  }

  #body(): string {
    this.bodies++
    if (this.cannotRender) throw new Error("set by the test")
    return "{}"
  }

  #deliveries(deliveries: Deliveries["Service"]): Deliveries["Service"] {
    return {
      ...deliveries,
      report: (account, outcomes) => this.#asking("report", deliveries.report(account, outcomes)),
      take: (options) => {
        this.takes++
        return Effect.tap(deliveries.take(options), ({ length }) => Effect.sync(() => (this.taken += length)))
      }
    }
  }

  #send(process: number) {
    return ({ attempt, endpoint: { url }, eventId, ...rest }: Message): Effect.Effect<AttemptResult> =>
      Effect.gen({ self: this }, function* () {
        const { afterMillis, result } = this.receiver({ attempt, endpoint: endpoint(url), eventId, ...rest })
        if (process !== this.#process) return yield* Effect.never
        const name = `${eventId} to ${url}`
        assert.isFalse(this.underWay.has(name), `${name} is attempted twice at one time`)
        this.underWay.add(name)
        this.underWayMax = Math.max(this.underWayMax, this.underWay.size)
        const startedAt = yield* Harness.now
        this.attempts.push({ process, destination: url, event: eventId, attempt, startedAt })
        if (afterMillis > 0) yield* Effect.sleep(afterMillis)
        if (process === this.#process) this.underWay.delete(name)
        return result
      })
  }
}

/** In these tests a destination is its own URL. */
const endpoint = (url: string) => ({ url, secrets: [], hosts: ANY })
