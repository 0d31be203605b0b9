/**
 * An account in memory that runs one command at a time: what succeeds is committed, what fails leaves nothing. The
 * fast harness for lifecycles; what the engine adds (the log, concurrency, failures) has tests of its own.
 */
import { Context, Effect, Exit } from "effect"
import type { Document, Identified, Kind, Tombstone } from "../../src/engine/Document.ts"
import { encode, formatOf } from "../../src/engine/Document.ts"
import { idOf, nextSequence, randomText } from "../../src/engine/Identifiers.ts"
import type { EventEntry, RequestIdentity } from "../../src/engine/Record.ts"
import { Transaction } from "../../src/engine/Transaction.ts"
import type { PaymentsConfigShape } from "../../src/payments/PaymentsConfig.ts"
import { PaymentsConfig } from "../../src/payments/PaymentsConfig.ts"
import { Processor } from "../../src/payments/Processor.ts"
import { simulator } from "../../src/payments/Simulator.ts"
import { handleTimer } from "../../src/payments/Timers.ts"
import { paymentsConfig } from "./PaymentsConfig.ts"

interface Timer {
  readonly id: string
  readonly name: string
  readonly dueAt: number
}

const REQUEST: RequestIdentity = {
  id: "req_000000000000000000000000",
  idempotencyKey: "key",
  fingerprint: "fingerprint",
  apiVersion: "2026-03-09"
}

export class MemoryAccount {
  readonly account: string
  readonly config: PaymentsConfigShape
  documents = new Map<string, Document | Tombstone>()
  timers = new Map<string, Timer>()
  events: Array<EventEntry> = []
  /** Event types by destination. */
  subscriptions = new Map<string, ReadonlyArray<string>>()
  deliveries: Array<{ readonly destination: string; readonly event: string }> = []
  now = Date.UTC(2026, 10, 20)
  sequence = 0
  version = 0

  constructor(account: string = "mer_000000000000000000000000:test", config: Partial<PaymentsConfigShape> = {}) {
    this.account = account
    this.config = paymentsConfig(config)
  }

  /** Runs a command, and commits it if it succeeds. */
  readonly run = <A, E>(
    command: Effect.Effect<A, E, Transaction | PaymentsConfig | Processor>,
    request: RequestIdentity | null = REQUEST
  ): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      const transaction = new MemoryTransaction(this, request)
      const services = Context.make(Transaction, transaction as Transaction).pipe(
        Context.add(PaymentsConfig, this.config),
        Context.add(Processor, { test: simulator, live: this.config.liveProcessor === null ? null : simulator })
      )
      return Effect.onExit(Effect.provideContext(command, services), (exit) =>
        Effect.sync(() => {
          if (Exit.isSuccess(exit)) transaction.commit()
        })
      )
    })

  /** Lets time pass; timers fire in due order, each at its time. */
  readonly advance = Effect.fnUntraced({ self: this }, function* (millis: number) {
    const until = this.now + millis
    for (;;) {
      const [due] = [...this.timers.values()]
        .filter(({ dueAt }) => dueAt <= until)
        .toSorted((a, b) => a.dueAt - b.dueAt)
      if (due === undefined) break
      this.now = Math.max(this.now, due.dueAt)
      yield* this.run(
        Effect.gen(function* () {
          const transaction = yield* Transaction
          transaction.clearTimer(due.id)
          yield* Effect.orDie(handleTimer(due))
        }),
        null
      )
    }
    this.now = until
  })

  /** The documents of a kind, oldest first. */
  all<V extends Identified, H>(kind: Kind<V, H>): ReadonlyArray<Document<V, H>> {
    return [...this.documents.values()].filter(
      (document): document is Document<V, H> => !document.deleted && document.kind === kind.name
    )
  }

  value<V extends Identified, H>(kind: Kind<V, H>, id: string): V | undefined {
    return this.all(kind).find((document) => document.id === id)?.value
  }

  /** Everything that the account would ever write down. */
  get text(): string {
    const documents = [...this.documents.values()].map((entry) =>
      entry.deleted
        ? entry.id
        : `${entry.id}${entry.json}${JSON.stringify(entry.hidden)}${JSON.stringify(entry.labels)}`
    )
    return [...documents, JSON.stringify(this.events), JSON.stringify([...this.timers])].join("\n")
  }
}

class MemoryTransaction implements Transaction {
  readonly account: string
  readonly now: number
  readonly request: RequestIdentity | null
  readonly #memory: MemoryAccount
  readonly #documents: Map<string, Document | Tombstone>
  /** Ids of what was read or written: nothing else may be deleted or told of, as in the engine. */
  readonly #seen = new Set<string>()
  readonly #timers: Map<string, Timer>
  readonly #events: Array<EventEntry> = []
  readonly #subscriptions: Map<string, ReadonlyArray<string>>
  readonly #deliveries: Array<{ readonly destination: string; readonly event: string }> = []
  readonly clockOffset = 0

  constructor(memory: MemoryAccount, request: RequestIdentity | null) {
    this.#memory = memory
    this.#documents = new Map(memory.documents)
    this.#timers = new Map(memory.timers)
    this.#subscriptions = new Map(memory.subscriptions)
    this.account = memory.account
    this.now = memory.now
    this.request = request
  }

  get<V extends Identified, H>(kind: Kind<V, H>, id: string): Effect.Effect<Document<V, H> | undefined> {
    const entry = this.#documents.get(id)
    this.#seen.add(id)
    const found = entry === undefined || entry.deleted || entry.kind !== kind.name ? undefined : entry
    return Effect.succeed(found as Document<V, H> | undefined)
  }

  put<V extends Identified, H>(kind: Kind<V, H>, value: V, hidden?: H): void {
    this.#seen.add(value.id)
    this.#documents.set(value.id, {
      id: value.id,
      kind: kind.name,
      version: this.#memory.version + 1,
      format: formatOf(kind),
      deleted: false,
      value,
      hidden,
      labels: kind.labels?.(value) ?? {},
      json: encode(value)
    })
  }

  delete<V extends Identified, H>(kind: Kind<V, H>, id: string): void {
    this.#known(id)
    this.#documents.set(id, { id, kind: kind.name, version: this.#memory.version + 1, deleted: true })
  }

  emit(type: string, id: string, previous?: Readonly<Record<string, unknown>>): void {
    const { format, json } = this.#known(id)
    this.#events.push({ id: this.newId("evt"), type, object: json, format, previous: previous ?? null })
  }

  setTimer(timer: Timer): void {
    this.#timers.set(timer.id, timer)
  }

  timerDueAt(id: string): Effect.Effect<number | undefined> {
    return Effect.succeed(this.#timers.get(id)?.dueAt)
  }

  clearTimer(id: string): void {
    this.#timers.delete(id)
  }

  newId(prefix: string): string {
    this.#memory.sequence = nextSequence(this.#memory.sequence, this.now)
    return idOf(prefix, this.#memory.sequence)
  }

  newSecret(length: number): string {
    return randomText(length)
  }

  subscribe(destination: string, types: ReadonlyArray<string>): void {
    this.#subscriptions.set(destination, types)
  }

  unsubscribe(destination: string): void {
    this.#subscriptions.delete(destination)
  }

  destinationsOf(type: string): ReadonlyArray<string> {
    return [...this.#subscriptions]
      .filter(([, types]) => types.includes(type) || types.includes("*"))
      .map(([destination]) => destination)
  }

  deliver(event: { readonly id: string }, destination: string): void {
    this.#deliveries.push({ event: event.id, destination })
  }

  attempted(): void {
    throw new Error("An account in memory carries nothing out")
  }

  advanceClock(millis: number): void {
    this.#memory.now += millis
  }

  wipe(): void {
    this.#documents.clear()
    this.#timers.clear()
    this.#subscriptions.clear()
  }

  commit(): void {
    for (const { id, type } of this.#events) {
      for (const destination of this.destinationsOf(type)) this.deliver({ id }, destination)
    }
    this.#memory.subscriptions = this.#subscriptions
    this.#memory.deliveries.push(...this.#deliveries)
    this.#memory.version++
    this.#memory.documents = this.#documents
    this.#memory.timers = this.#timers
    this.#memory.events.push(...this.#events)
  }

  #known(id: string): Document {
    const entry = this.#seen.has(id) ? this.#documents.get(id) : undefined
    if (entry === undefined || entry.deleted) throw new Error(`${id} was not read or written in this command`)
    return entry
  }
}
