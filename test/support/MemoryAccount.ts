/**
 * An account in memory that runs one command at a time: a command that succeeds is committed, and one that fails
 * changes nothing. No starter of Till: it is the fast harness for lifecycles alone, without the engine, whose log,
 * concurrency and failures have tests of their own.
 */
import { Context, Effect, Exit, Result } from "effect"
import { type Document, type Identified, type Kind, stored, type Tombstone } from "../../src/engine/log/Document.ts"
import { idOf, nextSequence } from "../../src/engine/log/Identifiers.ts"
import type { EventEntry, RequestIdentity } from "../../src/engine/log/Record.ts"
import { RETRY_MILLIS } from "../../src/engine/actor/Timers.ts"
import { type AccountState, ActiveTransaction, Transaction } from "../../src/engine/actor/Transaction.ts"
import { PaymentsConfig, type PaymentsConfigShape } from "../../src/payments/shared/PaymentsConfig.ts"
import { AnswerWriter } from "../../src/payments/shared/AnswerWriter.ts"
import { Processors, type ProcessorsShape } from "../../src/payments/processing/Processor.ts"
import { processorsOf } from "../../src/payments/processing/Simulator.ts"
import { handleTimer } from "../../src/payments/Timers.ts"
import { answerWriter } from "../../src/http/IdempotentCommand.ts"
import { make as makeVersions, VERSIONS } from "../../src/domain/ApiVersions.ts"
import { type Failure, wireErrorOf } from "../../src/http/ErrorTable.ts"
import { wordsOf } from "../models/Program.ts"
import { paymentsConfig } from "./PaymentsConfig.ts"

/** Returns the answer of a lifecycle in the terms of the tables. */
export const answerOf = <R>(operation: Effect.Effect<object, Failure, R>): Effect.Effect<string, never, R> =>
  operation.pipe(
    Effect.map((answer) =>
      Result.isResult(answer) && Result.isFailure(answer) ? refusalOf(answer.failure as Failure) : "ok"
    ),
    Effect.catch((failure) => Effect.succeed(refusalOf(failure)))
  )

const refusalOf = (failure: Failure): string => {
  const error = wireErrorOf(failure)
  return wordsOf({ ...error, ...error.details })
}

interface Timer {
  readonly id: string
  readonly name: string
  readonly dueAt: number
}

const versions = makeVersions(VERSIONS)

const REQUEST: RequestIdentity = {
  id: "req_000000000000000000000000",
  idempotencyKey: "key",
  fingerprint: "fingerprint",
  apiVersion: "2026-03-09"
}

export class MemoryAccount implements AccountState {
  readonly account: string
  readonly config: PaymentsConfigShape
  /** The processors; those of the configuration by default. */
  processors: ProcessorsShape | undefined
  documents = new Map<string, Document | Tombstone>()
  timers = new Map<string, Timer>()
  events: Array<EventEntry> = []
  subscriptions = new Map<string, ReadonlyArray<string>>()
  /** The answers to requests whose operations have an outcome, oldest first. */
  answers: Array<NonNullable<ActiveTransaction["answered"]>> = []
  deliveries: Array<{ readonly destination: string; readonly event: string }> = []
  now = Date.UTC(2026, 10, 20)
  version = 0
  /** How far the account's clock is ahead of the world's, in milliseconds. */
  clockOffset = 0
  #sequence = 0

  constructor(account: string = "mer_000000000000000000000000:test", config: Partial<PaymentsConfigShape> = {}) {
    this.account = account
    this.config = paymentsConfig(config)
  }

  document(id: string): Effect.Effect<Document | Tombstone | undefined> {
    return Effect.succeed(this.documents.get(id))
  }

  nextId(prefix: string, now: number): string {
    return idOf(prefix, (this.#sequence = nextSequence(this.#sequence, now)))
  }

  /** Runs a command, and commits it if it succeeds. */
  readonly run = <A, E>(
    command: Effect.Effect<A, E, Transaction | PaymentsConfig | Processors | AnswerWriter>,
    request: RequestIdentity | null = REQUEST
  ): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      const transaction = new ActiveTransaction(this, { at: this.now - this.clockOffset, now: this.now }, request)
      const services = Context.make(Transaction, transaction as Transaction).pipe(
        Context.add(PaymentsConfig, this.config),
        Context.add(Processors, this.processors ?? processorsOf(this.config)),
        Context.add(AnswerWriter, answerWriter(this.config, versions))
      )
      return Effect.onExit(Effect.provideContext(command, services), (exit) =>
        Effect.sync(() => {
          if (Exit.isSuccess(exit)) this.#commit(transaction)
        })
      )
    })

  /** Advances the time; timers fire in due order, each at its time. */
  readonly advance = Effect.fnUntraced({ self: this }, function* (millis: number) {
    const until = this.now + millis
    for (;;) {
      const [due] = [...this.timers.values()]
        .filter(({ dueAt }) => dueAt <= until)
        .toSorted((a, b) => a.dueAt - b.dueAt)
      if (due === undefined) break
      this.now = Math.max(this.now, due.dueAt)
      const firing = Effect.gen(function* () {
        const transaction = yield* Transaction
        transaction.clearTimer(due.id)
        yield* handleTimer(due)
      })
      const postpone = Effect.sync(() => {
        this.timers = new Map([...this.timers, [due.id, { ...due, dueAt: this.now + RETRY_MILLIS }]])
      })
      yield* Effect.catchTag(this.run(firing, null), "Postponed", () => postpone)
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

  /** The text of everything that the account would store. */
  get text(): string {
    const documents = [...this.documents.values()].map((entry) =>
      entry.deleted
        ? entry.id
        : `${entry.id}${entry.json}${JSON.stringify(entry.hidden)}${JSON.stringify(entry.labels)}`
    )
    return [...documents, JSON.stringify(this.events), JSON.stringify([...this.timers])].join("\n")
  }

  /** Applies the command's changes to new maps, so that a test can compare them with the old ones. */
  #commit(transaction: ActiveTransaction): void {
    transaction.requireConsistent()
    const { wiped } = transaction
    const documents = new Map(wiped ? [] : this.documents)
    const timers = new Map(wiped ? [] : this.timers)
    const subscriptions = new Map(wiped ? [] : this.subscriptions)
    this.deliveries.push(...transaction.deliveries())
    this.version++
    for (const { document, format, hidden, id, kind, labels } of transaction.changes()) {
      documents.set(id, stored({ id, kind, version: this.version, format, document, hidden, labels }))
    }
    for (const { dueAt, id, name } of transaction.timerChanges()) {
      if (dueAt === null) timers.delete(id)
      else timers.set(id, { id, name, dueAt })
    }
    for (const { destination, types } of transaction.subscriptionChanges()) {
      if (types === null) subscriptions.delete(destination)
      else subscriptions.set(destination, types)
    }
    this.documents = documents
    this.timers = timers
    this.subscriptions = subscriptions
    this.now += transaction.advanced
    if (transaction.answered !== null) this.answers.push(transaction.answered)
    this.events.push(...transaction.events)
  }
}
