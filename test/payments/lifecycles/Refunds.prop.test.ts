/**
 * Refunds against the table of semantics refunds.states: for any program and elapsed time, both agree on every refund,
 * on the charge, on the order of events, and on the responses, including refusals. test/http/Programs.prop.test.ts runs
 * the same programs over HTTP.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { PaymentIntent } from "../../../src/domain/PaymentIntent.ts"
import { violatedInvariant } from "../../../src/domain/PaymentIntentInvariants.ts"
import { Refund } from "../../../src/domain/Refund.ts"
import { CHARGE, PAYMENT_INTENT, REFUND } from "../../../src/payments/shared/Documents.ts"
import * as PaymentIntents from "../../../src/payments/lifecycles/PaymentIntents.ts"
import * as Refunds from "../../../src/payments/lifecycles/Refunds.ts"
import { type Driver, follow, type Table as StateTable, type Wait } from "../../models/Program.ts"
import * as Table from "../../models/Refunds.ts"
import {
  CARDS,
  type Command,
  type Creation,
  type Model,
  type PaymentName,
  PAYMENTS,
  type RefundCard,
  type Seen
} from "../../models/Refunds.ts"
import { answerOf, MemoryAccount } from "../../support/MemoryAccount.ts"
import { accepted, atOnce } from "../../support/Outcomes.ts"

/** Creates a payment of 5 in the named state. */
const pay = Effect.fnUntraced(function* (account: MemoryAccount, payment: PaymentName, card: RefundCard) {
  const creation = PaymentIntents.create({ ...Table.paymentOf({ payment, card }), currency: "EUR" })
  const { id } = yield* accepted(account.run(creation))
  if (payment === "partlyCaptured") yield* account.run(PaymentIntents.capture(id, { amount_to_capture: 3 }))
  if (payment === "canceled") yield* account.run(PaymentIntents.cancel(id, {}))
  return id
})

const runIn = (account: MemoryAccount, payment_intent: string, command: Command) =>
  command.op === "refund"
    ? account.run(Refunds.create({ payment_intent, amount: command.amount }))
    : account.run(
        Refunds.update(account.all(REFUND)[command.refund]?.id ?? "ref_none", { metadata: { note: command.note } })
      )

const decode = Schema.decodeUnknownSync(Refund, { onExcessProperty: "error" })

/** The visible state, with the refunds that wait. */
type Shown = Seen & { readonly waits: ReadonlyArray<boolean> }

const table: StateTable<Creation, Command, Model, Shown> = {
  ...Table.table,
  expected: (model) => ({ ...Table.expected(model), waits: model.refunds.map(({ dueAt }) => dueAt !== null) })
}

const assertSound = (account: MemoryAccount, paymentIntent: PaymentIntent, eventsBefore: number) => {
  assert.isUndefined(violatedInvariant(paymentIntent))
  const charges = account.all(CHARGE).map(({ value }) => value)
  assert.deepStrictEqual(paymentIntent.charges.data, charges.toReversed())
  for (const charge of charges) assert.isAtMost(charge.amount_refunded, charge.amount_captured)
  for (const { json } of account.all(REFUND)) decode(JSON.parse(json))
  for (const { object, type } of account.events.slice(eventsBefore)) {
    assert.strictEqual(
      JSON.parse(object).object,
      type.split(".")[0],
      "refunds.states: charge.refunded carries the charge"
    )
  }
}

const driverOf = (account: MemoryAccount): Driver<Creation, Command, Shown> => {
  let eventsBefore = 0
  const payment = () => account.all(PAYMENT_INTENT)[0]!.value
  return {
    now: () => account.now,
    create: ({ card, payment }) =>
      pay(account, payment, card).pipe(
        Effect.orDie,
        Effect.map(() => {
          eventsBefore = account.events.length
          return "ok"
        })
      ),
    run: (command) => Effect.suspend(() => answerOf(runIn(account, payment().id, command))),
    wait: (millis) => Effect.orDie(account.advance(millis)),
    seen: Effect.sync(() => {
      const refunds = account.all(REFUND)
      const charges = account.all(CHARGE).map(({ value }) => value)
      return {
        ...Table.seenOf(
          payment(),
          charges,
          refunds.map(({ value }) => value)
        ),
        waits: refunds.map(({ id }) => account.timers.has(`refund:${id}`))
      }
    }),
    events: Effect.sync(() => account.events.slice(eventsBefore).map(({ type }) => type)),
    sound: () => assertSound(account, payment(), eventsBefore),
    written: () => account.version
  }
}

const compare = Effect.fnUntraced(function* (
  creation: Creation,
  steps: ReadonlyArray<Command | Wait>,
  visited: Set<string> = new Set()
) {
  const account = new MemoryAccount()
  return yield* follow(table, driverOf(account), { creation, steps }, visited)
})

describe("Refunds agree with the table", () => {
  it.effect.prop(
    "after any sequence of refunds, notes and waits",
    { program: Table.program },
    ({ program }) => compare(program.creation, program.steps),
    { arbitrary: { runs: 400, size: 12 } }
  )

  it.effect("in every cell of it", () =>
    Effect.gen(function* () {
      const visited = new Set<string>()
      const refund = (amount: number | null) => ({ op: "refund", amount }) as const
      const wait = (millis: 500 | 1999 | 2000) => ({ op: "wait", millis }) as const
      for (const card of CARDS) {
        for (const payment of Object.keys(PAYMENTS) as ReadonlyArray<PaymentName>) {
          const commands = [
            refund(2),
            { op: "note", refund: 0, note: "a" } as const,
            wait(1999),
            refund(4),
            refund(null),
            refund(null),
            wait(500),
            { op: "note", refund: 0, note: "a" } as const,
            { op: "note", refund: 0, note: null } as const,
            refund(null),
            wait(2000)
          ]
          yield* compare({ payment, card }, commands, visited)
        }
      }
      assert.includeMembers(
        [...visited],
        [
          "paid refund ok paid",
          "partlyCaptured refund ok partlyCaptured",
          "paid refund amount_too_large paid",
          "paid refund charge_already_refunded paid",
          "held refund payment_intent_unexpected_state held",
          "open refund payment_intent_unexpected_state open",
          "confirmable refund payment_intent_unexpected_state confirmable",
          "canceled refund payment_intent_unexpected_state canceled",
          "paid note ok paid",
          "held note resource_missing held",
          "paid time paid"
        ]
      )
    })
  )

  it.effect("and the event of a pending one contains its previous status", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const payment_intent = yield* pay(account, "paid", "pm_card_pendingRefund")
      yield* account.run(Refunds.create({ payment_intent }))
      yield* account.advance(2000)
      const updated = account.events.find(({ type }) => type === "refund.updated")!
      assert.deepStrictEqual(updated.previous, { status: "pending" })
      assert.strictEqual(JSON.parse(updated.object).status, "succeeded")
    })
  )

  it.effect("and their events contain the changes", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const id = yield* pay(account, "paid", "pm_card_refundFail")
      const { id: refund } = yield* atOnce(account.run(Refunds.create({ payment_intent: id, metadata: { a: "1" } })))
      yield* account.run(Refunds.update(refund, { metadata: { a: "2", b: "3" } }))
      yield* account.advance(2000)
      const previous = account.events.filter(({ type }) => type === "refund.updated").map(({ previous }) => previous)
      assert.deepStrictEqual(previous, [
        { metadata: { a: "1", b: null } },
        { status: "succeeded", failure_reason: null }
      ])
      // All events of one step show its final state.
      const [updated, failed] = account.events.slice(-2).map(({ object }) => JSON.parse(object))
      assert.deepStrictEqual(updated, failed)
      assert.deepInclude(failed, { status: "failed", failure_reason: "expired_or_canceled_card" })
    })
  )
})
