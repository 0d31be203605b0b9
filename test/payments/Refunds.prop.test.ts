/**
 * Refunds against the table of semantics §2.4: for any sequence of commands and any passing of time, both agree on every
 * refund, on the charge, on the events in their order, and on the answers, refusals included.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { violatedInvariant } from "../../src/domain/PaymentIntentInvariants.ts"
import { Refund } from "../../src/domain/Refund.ts"
import { CHARGE, PAYMENT_INTENT, REFUND } from "../../src/payments/Documents.ts"
import * as PaymentIntents from "../../src/payments/PaymentIntents.ts"
import * as Refunds from "../../src/payments/Refunds.ts"
import { MemoryAccount } from "../support/MemoryAccount.ts"
import { accepted } from "../support/Outcomes.ts"
import type { Command, Model, PaymentName, RefundCard } from "./RefundModel.ts"
import * as Table from "./RefundModel.ts"
import { CARDS, PAYMENTS } from "./RefundModel.ts"

const command = Schema.Union([
  Schema.Struct({
    op: Schema.Literal("refund"),
    amount: Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 6 })))
  }),
  Schema.Struct({
    op: Schema.Literal("note"),
    refund: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 })),
    note: Schema.NullOr(Schema.Literals(["a", "b"]))
  }),
  Schema.Struct({ op: Schema.Literal("wait"), millis: Schema.Literals([500, 1999, 2000]) })
])

/** A payment of 5 that became what its name says. */
const pay = Effect.fnUntraced(function* (account: MemoryAccount, payment: PaymentName, card: RefundCard) {
  const creation = PaymentIntents.create({
    amount: 5,
    currency: "EUR",
    payment_method: payment === "open" ? null : card,
    capture_method: payment === "held" || payment === "partlyCaptured" ? "manual" : "automatic",
    confirm: payment !== "open" && payment !== "confirmable" && payment !== "canceled"
  })
  const { id } = yield* accepted(account.run(creation))
  if (payment === "partlyCaptured") yield* account.run(PaymentIntents.capture(id, { amount_to_capture: 3 }))
  if (payment === "canceled") yield* account.run(PaymentIntents.cancel(id, {}))
  return id
})

const answerOf = <R>(operation: Effect.Effect<Refund, { readonly _tag: string }, R>) =>
  operation.pipe(
    Effect.as("ok"),
    Effect.catch((error) => Effect.succeed(REFUSALS[error._tag]?.(error as never) ?? error._tag))
  )

const REFUSALS: Readonly<Record<string, (error: { readonly status: string }) => string>> = {
  PaymentIntentUnexpectedState: ({ status }) => `unexpected_state ${status}`,
  ChargeAlreadyRefunded: () => "charge_already_refunded",
  RefundTooLarge: () => "amount_too_large",
  ResourceMissing: () => "resource_missing"
}

const runIn = (account: MemoryAccount, payment_intent: string, command: Command) =>
  command.op === "refund"
    ? account.run(Refunds.create({ payment_intent, amount: command.amount }))
    : account.run(
        Refunds.update(account.all(REFUND)[command.refund]?.id ?? "ref_none", { metadata: { note: command.note } })
      )

/** What a client sees, in the model's words. */
const seen = (account: MemoryAccount) =>
  account.all(REFUND).map(({ id, value }) => ({
    amount: value.amount,
    status: value.status,
    failureReason: value.failure_reason ?? null,
    note: value.metadata["note"] ?? null,
    waits: account.timers.has(`refund:${id}`)
  }))

const expected = ({ refunds }: Model) => refunds.map(({ dueAt, ...refund }) => ({ ...refund, waits: dueAt !== null }))

const decode = Schema.decodeUnknownSync(Refund, { onExcessProperty: "error" })

const assertSound = (account: MemoryAccount, id: string, model: Model) => {
  const paymentIntent = account.value(PAYMENT_INTENT, id)!
  assert.isUndefined(violatedInvariant(paymentIntent))
  const { captured, status } = PAYMENTS[model.payment]
  assert.deepInclude(paymentIntent, { status, amount_received: captured })
  const charges = account.all(CHARGE).map(({ value }) => value)
  assert.deepStrictEqual(paymentIntent.charges.data, charges.toReversed())
  const total = Table.reserved(model)
  assert.isAtMost(total, captured)
  for (const charge of charges) {
    assert.deepInclude(charge, {
      currency: "eur",
      amount_captured: captured,
      amount_refunded: total,
      refunded: captured > 0 && total === captured
    })
  }
  for (const { json } of account.all(REFUND)) assert.strictEqual(decode(JSON.parse(json)).currency, "eur")
}

const compare = Effect.fnUntraced(function* (
  payment: PaymentName,
  card: RefundCard,
  commands: ReadonlyArray<typeof command.Type>,
  visited: Set<string> = new Set()
) {
  const account = new MemoryAccount()
  const id = yield* pay(account, payment, card)
  let model: Model = { payment, card, refunds: [] }
  for (const command of commands) {
    const before = account.events.length
    const { documents } = account
    let step: Table.Step
    if (command.op === "wait") {
      step = Table.timePasses(model, account.now + command.millis)
      yield* account.advance(command.millis)
    } else {
      step = Table.apply(model, command, account.now)
      assert.strictEqual(yield* answerOf(runIn(account, id, command)), step.answer)
      if (step.answer !== "ok") assert.isTrue(account.documents === documents, "a refusal leaves nothing")
    }
    visited.add(`${command.op} ${step.answer} ${step.events.join()}`)
    model = step.after
    assert.deepStrictEqual<unknown>(seen(account), expected(model))
    const events = account.events.slice(before)
    assert.deepStrictEqual(
      events.map(({ type }) => type),
      step.events
    )
    for (const { object, type } of events) {
      assert.strictEqual(JSON.parse(object).object, type.split(".")[0], "§2.4: charge.refunded carries the charge")
    }
    assertSound(account, id, model)
  }
  return visited
})

describe("Refunds agree with the table", () => {
  it.effect.prop(
    "after any sequence of refunds, notes and waits",
    {
      payment: Schema.Literals(["paid", "paid", "partlyCaptured", "held", "open", "confirmable", "canceled"]),
      card: Schema.Literals(CARDS),
      commands: Schema.Array(command).check(Schema.isMaxLength(12))
    },
    ({ card, commands, payment }) => compare(payment, card, commands),
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
          yield* compare(payment, card, commands, visited)
        }
      }
      assert.includeMembers(
        [...visited],
        [
          "refund ok refund.created,charge.refunded",
          "refund ok refund.created",
          "refund amount_too_large ",
          "refund charge_already_refunded ",
          "refund unexpected_state requires_capture ",
          "refund unexpected_state requires_payment_method ",
          "refund unexpected_state requires_confirmation ",
          "refund unexpected_state canceled ",
          "note ok refund.updated",
          "note ok ",
          "note resource_missing ",
          "wait ok refund.updated,charge.refunded",
          "wait ok refund.updated,refund.failed"
        ]
      )
    })
  )

  it.effect("and the event of one that was pending says so", () =>
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

  it.effect("and their events tell what changed", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const id = yield* pay(account, "paid", "pm_card_refundFail")
      const { id: refund } = yield* account.run(Refunds.create({ payment_intent: id, metadata: { a: "1" } }))
      yield* account.run(Refunds.update(refund, { metadata: { a: "2", b: "3" } }))
      yield* account.advance(2000)
      const previous = account.events.filter(({ type }) => type === "refund.updated").map(({ previous }) => previous)
      assert.deepStrictEqual(previous, [
        { metadata: { a: "1", b: null } },
        { status: "succeeded", failure_reason: null }
      ])
      // The events of one step show what it led to.
      const [updated, failed] = account.events.slice(-2).map(({ object }) => JSON.parse(object))
      assert.deepStrictEqual(updated, failed)
      assert.deepInclude(failed, { status: "failed", failure_reason: "expired_or_canceled_card" })
    })
  )
})
