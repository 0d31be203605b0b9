/**
 * The tallies of payments (semantics dashboard.sums), counted again from the text, over all documents of an account;
 * and random payments to count.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { isDeepStrictEqual } from "node:util"
import type { Charge } from "../../src/domain/Charge.ts"
import type { PaymentIntent } from "../../src/domain/PaymentIntent.ts"
import type { Refund } from "../../src/domain/Refund.ts"
import { Accounts } from "../../src/engine/Accounts.ts"
import type { Transaction } from "../../src/engine/actor/Transaction.ts"
import { CHARGE, PAYMENT_INTENT, REFUND } from "../../src/payments/shared/Documents.ts"
import { KINDS } from "../../src/payments/Formats.ts"
import * as PaymentIntents from "../../src/payments/lifecycles/PaymentIntents.ts"
import { PaymentsConfig } from "../../src/payments/shared/PaymentsConfig.ts"
import { make as makeVersions, VERSIONS } from "../../src/domain/ApiVersions.ts"
import { answerWriter } from "../../src/http/IdempotentCommand.ts"
import { AnswerWriter } from "../../src/payments/shared/AnswerWriter.ts"
import { Processors } from "../../src/payments/processing/Processor.ts"
import * as Refunds from "../../src/payments/lifecycles/Refunds.ts"
import { processorsOf } from "../../src/payments/processing/Simulator.ts"
import * as Tallies from "../../src/payments/shared/Tallies.ts"
import * as TestHelpers from "../../src/payments/TestHelpers.ts"
import { handleTimer } from "../../src/payments/Timers.ts"
import type { RunningEngine, Storage } from "../engine/Harness.ts"
import * as Harness from "../engine/Harness.ts"
import { paymentsConfig } from "../support/PaymentsConfig.ts"
import type { Random } from "../support/Random.ts"
import { CARD_NAMES } from "./PaymentIntents.ts"
import { CARDS as REFUND_CARDS } from "./Refunds.ts"

export const ACCOUNTS = ["mer_000000000000000000000001:test", "mer_000000000000000000000002:test"]

export const configured = <A, E>(
  effect: Effect.Effect<A, E, Transaction | PaymentsConfig | Processors | AnswerWriter>
): Effect.Effect<A, E, Transaction> =>
  effect.pipe(
    Effect.provideService(PaymentsConfig, paymentsConfig()),
    Effect.provideService(Processors, processorsOf({ liveProcessor: null })),
    Effect.provideService(AnswerWriter, answerWriter(paymentsConfig(), makeVersions(VERSIONS)))
  ) as Effect.Effect<A, E, Transaction>

export const start = (storage: Storage): Effect.Effect<RunningEngine> =>
  Harness.startEngine(storage, { kinds: KINDS, handler: (timer) => configured(handleTimer(timer)) })

type Command = Effect.Effect<unknown, unknown, Transaction | PaymentsConfig | Processors>

/** Random payments, and random operations on them. */
export class Payments {
  readonly #random: Random
  readonly #ids: Array<string> = []

  constructor(random: Random) {
    this.#random = random
  }

  /** Runs commands in all accounts, many concurrently. A refused command has no effect. */
  goOn(engine: RunningEngine, count: number): Effect.Effect<void> {
    const commands = Array.from({ length: count }, () => [this.#random.pick(ACCOUNTS), this.#command()] as const)
    return Effect.forEach(
      commands,
      ([account, command]) => Effect.ignore(engine.accounts.run(account, configured(this.#noted(command)))),
      { concurrency: "unbounded", discard: true }
    )
  }

  /** Advances the clock past all timers. */
  end(engine: RunningEngine): Effect.Effect<void> {
    const advance = configured(TestHelpers.advanceClock({ seconds: 30 * 86_400 }))
    const happened = (account: string) =>
      Effect.andThen(engine.accounts.run(account, advance), engine.accounts.settled(account, 60_000))
    return Effect.forEach(ACCOUNTS, (account) => Effect.orDie(happened(account)), { discard: true })
  }

  #noted(command: Command): Command {
    return Effect.tap(command, (answer) =>
      Effect.sync(() => {
        const { object, ...made } = ((answer as { readonly success?: object }).success ?? answer) as PaymentIntent
        if (object === "payment_intent" && !this.#ids.includes(made.id)) this.#ids.push(made.id)
      })
    )
  }

  #command(): Command {
    const random = this.#random
    const dice = random.below(100)
    if (dice < 2) return TestHelpers.deleteData
    if (dice < 12) {
      return TestHelpers.advanceClock({ seconds: random.pick([1, 2, 1800, 3600, 86_400, 604_800]) })
    }
    const id = this.#ids.at(-1 - random.below(6))
    if (dice < 50 || id === undefined) return this.#pay()
    return random.pick([
      () => PaymentIntents.confirm(id, { payment_method: this.#card() }),
      () => PaymentIntents.capture(id, random.chance(0.5) ? {} : { amount_to_capture: 1 + random.below(50) }),
      () => PaymentIntents.cancel(id, {}),
      () => PaymentIntents.authenticate(id, random.pick(["success", "failure"])),
      () => PaymentIntents.update(id, { amount: 50 + random.below(50), currency: this.#currency() }),
      () => Refunds.create({ payment_intent: id, ...(random.chance(0.7) && { amount: 1 + random.below(20) }) })
    ])()
  }

  #pay(): Command {
    const random = this.#random
    return PaymentIntents.create({
      amount: 50 + random.below(50),
      currency: this.#currency(),
      capture_method: random.pick(["automatic", "automatic", "manual"]),
      ...(random.chance(0.8) ? { confirm: true, payment_method: this.#card() } : {})
    })
  }

  #card(): string {
    return this.#random.chance(0.5) ? this.#random.pick(REFUND_CARDS) : this.#random.pick(CARD_NAMES)
  }

  #currency(): string {
    return this.#random.pick(["USD", "EUR", "JPY"])
  }
}

/** Counts and amounts, by a text of hour, outcome and currency. */
type Numbers = Readonly<Record<string, readonly [count: number, amount: number]>>

class Counter {
  readonly numbers: Record<string, [number, number]> = {}

  add(words: ReadonlyArray<string | number>, amount: number, count = 1): void {
    const sum = (this.numbers[words.join(" ")] ??= [0, 0])
    sum[0] += count
    sum[1] += amount
  }
}

const hourOf = ({ created }: { readonly created: number }): number => Math.floor(created / 3600)

const countedPayment = (counter: Counter, payment: PaymentIntent, newest: Charge | undefined): void => {
  const { amount_received, currency, last_payment_error, status } = payment
  const isUnderWay = status === "processing" || status === "requires_action"
  if (last_payment_error?.code === "payment_intent_authentication_failure") {
    counter.add([hourOf(payment), "declined", currency, "authentication_failed"], 0)
  }
  // A failed authentication has no charge.
  const hasFailed = newest?.status === "failed" || last_payment_error !== undefined
  if (newest?.status === "succeeded") counter.add([hourOf(payment), "paid", currency], amount_received)
  else if (!isUnderWay && hasFailed) counter.add([hourOf(payment), "failed", currency], 0)
}

/** Counts an account's documents. */
const plainCount = Effect.fnUntraced(function* (engine: RunningEngine, account: string): Effect.fn.Return<Numbers> {
  const all = <Value>({ name }: { readonly name: string }) =>
    Effect.map(Harness.allDocuments(engine, account, "older", 100, name), (documents) =>
      documents.map(({ value }) => value as unknown as Value)
    )
  const counter = new Counter()
  const charges = yield* all<Charge>(CHARGE)
  for (const payment of yield* all<PaymentIntent>(PAYMENT_INTENT)) {
    countedPayment(
      counter,
      payment,
      charges.find(({ payment_intent }) => payment_intent === payment.id)
    )
  }
  for (const charge of charges) {
    const { currency, decline_code, failure_code, status } = charge
    if (status === "failed") counter.add([hourOf(charge), "declined", currency, decline_code ?? failure_code!], 0)
  }
  for (const refund of yield* all<Refund>(REFUND)) {
    if (refund.status === "failed" || refund.status === "canceled") continue
    counter.add([hourOf(refund), "refunded", refund.currency], refund.amount)
  }
  return counter.numbers
})

/** Sums the numbers in steps of several hours. */
const inSteps = (numbers: Numbers, hours: number): Numbers => {
  const counter = new Counter()
  for (const [words, [count, amount]] of Object.entries(numbers)) {
    const [hour, ...of] = words.split(" ")
    counter.add([Math.floor(Number(hour) / hours), ...of], amount, count)
  }
  return counter.numbers
}

/** Reads the view, in steps of several hours around those of the numbers. */
const viewed = (engine: RunningEngine, account: string, hours: number, numbers: Numbers): Effect.Effect<Numbers> => {
  const known = Object.keys(numbers).map((words) => Math.floor(Number(words.split(" ", 1)[0]) / hours))
  const first = known.length === 0 ? 1 : Math.min(...known)
  const count = known.length === 0 ? 1 : Math.max(...known) - first + 2
  // A step before the first one and a step after the last one, which have to be empty.
  const starts = [0, ...Array.from({ length: count }, (_, i) => (first + i) * hours)]
  return Tallies.read(account, { starts }).pipe(
    Effect.provideService(Accounts, engine.accounts),
    Effect.orDie,
    Effect.map((tallies) => {
      const counter = new Counter()
      for (const { amount, count, step, ...of } of tallies) {
        counter.add(
          [step === 0 ? 0 : first + step - 1, of.what, of.currency, ...(of.what === "declined" ? [of.code] : [])],
          amount,
          count
        )
      }
      return counter.numbers
    })
  )
}

/** Checks that the view equals a plain count over all documents, and returns the count. */
export const agrees = Effect.fnUntraced(function* (engine: RunningEngine) {
  const numbers: Array<Numbers> = []
  for (const account of ACCOUNTS) {
    numbers.push(yield* agreed(engine, account))
  }
  return numbers
})

const agreed = Effect.fnUntraced(function* (engine: RunningEngine, account: string) {
  for (;;) {
    const before = yield* plainCount(engine, account)
    const steps = [1, 5, 24, 48]
    const seen = yield* Effect.forEach(steps, (hours) => viewed(engine, account, hours, before))
    const after = yield* plainCount(engine, account)
    // Repeats if a timer fired between the two counts.
    if (!isDeepStrictEqual(before, after)) continue
    for (const [i, hours] of steps.entries()) assert.deepStrictEqual(seen[i], inSteps(after, hours), account)
    return after
  }
})
