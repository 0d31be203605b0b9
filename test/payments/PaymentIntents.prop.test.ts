/**
 * The lifecycle of PaymentIntents against the state table: for any sequence of commands, both agree on the status, the
 * charges, the events in their order, and the answers, refusals included.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import type { CardDeclined } from "../../src/domain/Errors.ts"
import type { PaymentIntent } from "../../src/domain/PaymentIntent.ts"
import { PaymentIntent as PaymentIntentSchema } from "../../src/domain/PaymentIntent.ts"
import { violatedInvariant } from "../../src/domain/PaymentIntentInvariants.ts"
import { CHARGE, CUSTOMER, PAYMENT_INTENT } from "../../src/payments/Documents.ts"
import * as Customers from "../../src/payments/Customers.ts"
import * as PaymentIntents from "../../src/payments/PaymentIntents.ts"
import { tokenized } from "../support/CardData.ts"
import { MemoryAccount } from "../support/MemoryAccount.ts"
import type { CardName, CardSent, Command, Creation, Model } from "./PaymentIntentModel.ts"
import * as Table from "./PaymentIntentModel.ts"
import { CARD_NAMES, CARDS } from "./PaymentIntentModel.ts"

const card = Schema.Literals(CARD_NAMES)
/** Amounts of a small range, so that captures lie below, at and above them. */
const amount = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 6 }))
const method = Schema.Literals(["automatic", "manual"])
const currency = Schema.Literals(["usd", "eur"])

const creation = Schema.Struct({
  amount,
  capture: method,
  confirmation: method,
  card: Schema.NullOr(card),
  inline: Schema.Boolean,
  confirm: Schema.Boolean
})

const update = {
  op: Schema.Literal("update"),
  amount: Schema.NullOr(amount),
  currency: Schema.NullOr(currency),
  customer: Schema.NullOr(Schema.Boolean),
  capture: Schema.NullOr(method),
  details: Schema.NullOr(Schema.Literals(["a", "b"])),
  descriptor: Schema.NullOr(Schema.Literals(["S", "T"]))
}

const command = Schema.Union([
  Schema.Struct({
    ...update,
    method: Schema.NullOr(Schema.Union([card, Schema.Literal("unset")]))
  }),
  Schema.Struct({ op: Schema.Literal("confirm"), card: Schema.NullOr(card), inline: Schema.Boolean }),
  Schema.Struct({ op: Schema.Literal("capture"), amount: Schema.NullOr(amount) }),
  Schema.Struct({ op: Schema.Literal("cancel"), reason: Schema.NullOr(Schema.Literals(["duplicate", "abandoned"])) }),
  Schema.Struct({ op: Schema.Literal("authenticate"), outcome: Schema.Literals(["success", "failure"]) })
])

const CHALLENGING = [
  "pm_card_3ds_required",
  "pm_card_authenticationRequiredChargeDeclinedInsufficientFunds"
] as const satisfies ReadonlyArray<CardName>

const wait = Schema.Struct({ op: Schema.Literal("wait"), millis: Schema.Literals([1000, 2000, 604_800_000]) })

const sourceOf = ({ card, inline }: CardSent) => {
  if (card === null) return {}
  if (!inline) return { payment_method: card }
  return {
    payment_method_data: tokenized({
      type: "card",
      card: { number: CARDS[card].number, exp_month: 12, exp_year: 2034, cvc: "123" }
    })
  }
}

/** What the lifecycle answers, in the model's words. */
const answerOf = <R>(
  operation: Effect.Effect<PaymentIntent | Result.Result<PaymentIntent, CardDeclined>, { readonly _tag: string }, R>
) =>
  operation.pipe(
    Effect.map((answer) =>
      Result.isResult(answer) && Result.isFailure(answer) ? `declined ${answer.failure.declineCode}` : "ok"
    ),
    Effect.catch((error) => Effect.succeed(refusalOf(error as { readonly _tag: string } & Record<string, unknown>)))
  )

const refusalOf = (error: { readonly _tag: string } & Record<string, unknown>): string => {
  switch (error._tag) {
    case "PaymentIntentUnexpectedState":
      return `unexpected_state ${String(error["status"])}`
    case "PaymentMethodRequired":
      return "payment_method_required"
    case "ProcessorUnavailable":
      return "processor_unavailable"
    case "AmountTooLarge":
      return `amount_too_large ${String(error["param"])} ${String(error["max"])}`
    case "ParameterInvalid":
      return `parameter_invalid ${String(error["param"])}`
    default:
      return error._tag
  }
}

const createIn = (account: MemoryAccount, sent: Creation) =>
  account.run(
    PaymentIntents.create({
      amount: sent.amount,
      currency: "USD",
      capture_method: sent.capture,
      confirmation_method: sent.confirmation,
      confirm: sent.confirm,
      ...sourceOf(sent)
    })
  )

const customerOf = (account: MemoryAccount): string => account.all(CUSTOMER)[0]!.id

const runIn = (account: MemoryAccount, id: string, command: Command) => {
  switch (command.op) {
    case "update":
      return account.run(
        PaymentIntents.update(id, {
          ...(command.amount === null ? {} : { amount: command.amount }),
          ...(command.currency === null ? {} : { currency: command.currency.toUpperCase() }),
          ...(command.customer === null ? {} : { customer: command.customer ? customerOf(account) : null }),
          ...(command.capture === null ? {} : { capture_method: command.capture }),
          ...(command.details === null ? {} : { description: command.details }),
          ...(command.descriptor === null ? {} : { statement_descriptor: command.descriptor }),
          ...(command.method === null ? {} : { payment_method: command.method === "unset" ? null : command.method })
        })
      )
    case "confirm":
      return account.run(PaymentIntents.confirm(id, sourceOf(command)))
    case "capture":
      return account.run(PaymentIntents.capture(id, { amount_to_capture: command.amount }))
    case "cancel":
      return account.run(PaymentIntents.cancel(id, { cancellation_reason: command.reason }))
    case "authenticate":
      return account.run(PaymentIntents.authenticate(id, command.outcome))
  }
}

/** What a client sees, in the model's words. */
const seen = (account: MemoryAccount, id: string) => {
  const paymentIntent = account.value(PAYMENT_INTENT, id)!
  const error = paymentIntent.last_payment_error
  return {
    status: paymentIntent.status,
    amount: paymentIntent.amount,
    currency: paymentIntent.currency,
    customer: paymentIntent.customer !== null,
    capture: paymentIntent.capture_method,
    description: paymentIntent.description,
    descriptor: paymentIntent.statement_descriptor,
    card: paymentIntent.payment_method?.startsWith("pm_card_") === true ? paymentIntent.payment_method : null,
    inline: paymentIntent.payment_method !== null && !paymentIntent.payment_method.startsWith("pm_card_"),
    received: paymentIntent.amount_received,
    capturable: paymentIntent.amount_capturable,
    charges: account.all(CHARGE).map(({ value }) => ({
      status: value.status,
      amountCaptured: value.amount_captured,
      released: value.released_at !== null,
      failureCode: value.failure_code
    })),
    lastError: error === undefined ? null : [error.code, error.decline_code].filter(Boolean).join(" "),
    reason: paymentIntent.cancellation_reason,
    action: paymentIntent.next_action !== null,
    waits: account.timers.size
  }
}

const expected = (model: Model): ReturnType<typeof seen> => ({
  status: model.status as PaymentIntent["status"],
  amount: model.amount,
  currency: model.currency,
  customer: model.customer,
  capture: model.capture,
  description: model.description,
  descriptor: model.descriptor,
  card: model.inline ? null : model.card,
  inline: model.inline,
  received: model.received,
  capturable: model.capturable,
  charges: model.charges.map((charge) => ({ ...charge, failureCode: charge.failureCode as null })),
  lastError: model.lastError,
  reason: model.reason as null,
  action: model.status === "requires_action",
  waits: model.dueAt === null ? 0 : 1
})

/** Holds for every account at every moment, whatever the model says. */
const assertSound = (account: MemoryAccount) => {
  for (const { value } of account.all(PAYMENT_INTENT)) {
    assert.isUndefined(violatedInvariant(value))
    const charges = account.all(CHARGE).map((document) => document.value)
    assert.isAtMost(charges.filter(({ status }) => status === "succeeded").length, 1)
    assert.deepStrictEqual(value.charges.data, charges.toReversed().slice(0, 10))
    assert.strictEqual(value.charges.has_more, charges.length > 10)
  }
}

/** What a payer has agreed to by passing an authentication. */
type Grant = Pick<PaymentIntent, "amount" | "currency" | "payment_method">

/** Cards that challenge were charged for nothing but what their payer has agreed to, whatever happened in between. */
const assertAuthenticated = (account: MemoryAccount, grants: ReadonlyArray<Grant>) => {
  for (const { value: charge } of account.all(CHARGE)) {
    if (!challenges(charge.payment_method, charge.payment_method_details.card.last4)) continue
    assert.isTrue(
      grants.some(
        ({ amount, currency, payment_method }) =>
          payment_method === charge.payment_method && currency === charge.currency && amount >= charge.amount
      ),
      `${charge.amount} ${charge.currency} without an authentication`
    )
  }
}

const challenges = (id: string, last4: string): boolean =>
  CHALLENGING.some((name) => (id.startsWith("pm_card_") ? id === name : CARDS[name].number.endsWith(last4)))

const decode = Schema.decodeUnknownSync(PaymentIntentSchema, { onExcessProperty: "error" })

/** What came out is what the specification says, and no card number is in anything that is kept. */
const assertPresentable = (account: MemoryAccount) => {
  for (const { json } of account.all(PAYMENT_INTENT)) decode(JSON.parse(json))
  const text = account.text
  for (const { number } of Object.values(CARDS)) assert.notInclude(text, number)
}

/** Runs the sequence on both sides and compares after every step. Returns the statuses and answers seen. */
const compare = Effect.fnUntraced(function* (
  creation: Creation,
  commands: ReadonlyArray<Command | typeof wait.Type>,
  visited: Set<string> = new Set()
) {
  const account = new MemoryAccount()
  yield* account.run(Customers.create({}))
  const { documents: untouched } = account
  const created = Table.create(creation, account.now)
  assert.strictEqual(yield* answerOf(createIn(account, creation)), created.answer)
  if (created.after === null) {
    assert.strictEqual(account.documents, untouched)
    assert.lengthOf(account.events, 1)
    return visited
  }
  const { id } = account.all(PAYMENT_INTENT)[0]!.value
  let model = created.after
  let events = ["customer.created", ...created.events]
  const grants: Array<Grant> = []
  const check = (label: string) => {
    assert.deepStrictEqual(seen(account, id), expected(model), label)
    assert.deepStrictEqual(
      account.events.map(({ type }) => type),
      events,
      label
    )
    assertSound(account)
    assertAuthenticated(account, grants)
  }
  check("create")
  for (const command of commands) {
    if (command.op === "wait") {
      const until = account.now + command.millis
      yield* account.advance(command.millis)
      for (let step = Table.timePasses(model, until); step !== undefined; step = Table.timePasses(model, until)) {
        visited.add(`${model.status} time ${step.after.status}`)
        events = [...events, ...step.events]
        model = step.after
      }
      check("wait")
      continue
    }
    const { documents, timers } = account
    const challenged = account.value(PAYMENT_INTENT, id)!
    const step = Table.apply(model, command, account.now)
    const answer = yield* answerOf(runIn(account, id, command))
    assert.strictEqual(answer, step.answer, `${command.op} in ${model.status}`)
    if (answer !== "ok" && !answer.startsWith("declined")) {
      assert.isTrue(account.documents === documents && account.timers === timers, "a refusal leaves nothing")
    }
    visited.add(`${model.status} ${command.op} ${step.after.status}`)
    if (command.op === "authenticate" && command.outcome === "success" && challenged.status === "requires_action") {
      const { amount, currency, payment_method } = challenged
      grants.push({ amount, currency, payment_method })
    }
    events = [...events, ...step.events]
    model = step.after
    check(`${command.op} in ${model.status}`)
  }
  assertPresentable(account)
  return visited
})

const create = (
  card: CardName | null,
  capture: Creation["capture"],
  confirmation: Creation["confirmation"]
): Creation => ({
  amount: 5,
  capture,
  confirmation,
  card,
  inline: false,
  confirm: false
})
const confirmWith = (card: CardName | null): Command => ({ op: "confirm", card, inline: false })

/** One way into each status. */
const WAYS: Readonly<Record<PaymentIntent["status"], readonly [CardName | null, ReadonlyArray<Command>]>> = {
  requires_payment_method: [null, []],
  requires_confirmation: ["pm_card_visa", []],
  requires_action: ["pm_card_3ds_required", [confirmWith(null)]],
  processing: ["pm_card_processing_success", [confirmWith(null)]],
  requires_capture: ["pm_card_visa", [confirmWith(null)]],
  canceled: [null, [{ op: "cancel", reason: null }]],
  succeeded: ["pm_card_visa", [confirmWith(null)]]
}

type Update = Extract<Command, { op: "update" }>

const NO_UPDATE: Update = {
  op: "update",
  amount: null,
  currency: null,
  customer: null,
  capture: null,
  details: null,
  descriptor: null,
  method: null
}

const updateOf = (changes: Partial<Update>): Update => ({ ...NO_UPDATE, ...changes })

const EVERY_COMMAND: ReadonlyArray<Command | typeof wait.Type> = [
  ...[null, ...CARD_NAMES].flatMap((card) => [true, false].map((inline) => ({ op: "confirm" as const, card, inline }))),
  updateOf({ amount: 3 }),
  updateOf({ currency: "eur" }),
  updateOf({ customer: true }),
  updateOf({ capture: "manual" }),
  updateOf({ details: "a" }),
  updateOf({ descriptor: "S" }),
  updateOf({ method: "unset" }),
  updateOf({ method: "pm_card_amex" }),
  updateOf({ amount: 3, details: "b", method: "unset" }),
  { op: "capture", amount: null },
  { op: "capture", amount: 3 },
  { op: "capture", amount: 6 },
  { op: "cancel", reason: "duplicate" },
  { op: "authenticate", outcome: "success" },
  { op: "authenticate", outcome: "failure" },
  { op: "wait", millis: 2000 },
  { op: "wait", millis: 604_800_000 }
]

describe("PaymentIntents agree with the state table", () => {
  it.effect("in every cell of it", () =>
    Effect.gen(function* () {
      const visited = new Set<string>()
      for (const [status, [card, way]] of Object.entries(WAYS)) {
        for (const confirmation of ["automatic", "manual"] as const) {
          const capture = status === "requires_capture" ? "manual" : "automatic"
          for (const command of EVERY_COMMAND) {
            // The second round meets the state that the first one left.
            yield* compare(create(card, capture, confirmation), [...way, command, command], visited)
            if (capture === "manual") continue
            yield* compare(create(card, "manual", confirmation), [...way, command, command], visited)
          }
        }
      }
      for (const cell of [
        "processing time succeeded",
        "processing time requires_capture",
        "requires_capture time canceled",
        "requires_action authenticate succeeded",
        "requires_action authenticate requires_capture",
        "requires_action authenticate requires_confirmation",
        "requires_action authenticate requires_payment_method"
      ]) {
        assert.isTrue(visited.has(cell), cell)
      }
    })
  )

  it.effect.prop(
    "after any sequence of commands",
    { creation, commands: Schema.Array(Schema.Union([command, wait])).check(Schema.isMaxLength(16)) },
    ({ commands, creation }) => compare(creation, commands),
    { arbitrary: { runs: 3000, size: 16 } }
  )

  it.effect.prop(
    "9.3: after any sequence of authentications and changes of what they were for",
    {
      capture: method,
      commands: Schema.Array(
        Schema.Union([
          Schema.Struct({
            op: Schema.Literal("confirm"),
            // The authentication of one card says nothing of another one. A decline, or a fault, may come in between.
            card: Schema.NullOr(
              Schema.Literals([
                ...CHALLENGING,
                "pm_card_declined",
                "pm_card_processing_failure",
                "pm_card_processor_error"
              ])
            ),
            inline: Schema.Boolean
          }),
          Schema.Struct({ op: Schema.Literal("confirm"), card: Schema.Null, inline: Schema.Literal(false) }),
          Schema.Struct({ op: Schema.Literal("authenticate"), outcome: Schema.Literals(["success", "failure"]) }),
          Schema.Struct({ op: Schema.Literal("wait"), millis: Schema.Literal(2000) }),
          Schema.Struct({ ...update, method: Schema.Null }),
          Schema.Struct({
            ...update,
            method: Schema.NullOr(Schema.Literals([...CHALLENGING, "pm_card_amex", "unset"]))
          })
        ])
      ).check(Schema.isMinLength(3), Schema.isMaxLength(10))
    },
    ({ capture, commands }) =>
      compare(create("pm_card_3ds_required", capture, "manual"), [
        confirmWith(null),
        { op: "authenticate", outcome: "success" },
        ...commands
      ]),
    { arbitrary: { runs: 3000, size: 10 } }
  )

  it.effect.prop(
    "after any sequence that keeps it open, with more charges than it shows",
    {
      creation,
      commands: Schema.Array(
        Schema.Union([
          Schema.Struct({
            op: Schema.Literal("confirm"),
            card: Schema.Literals(["pm_card_declined", "pm_card_lost_card", "pm_card_processing_failure"]),
            inline: Schema.Boolean
          }),
          Schema.Struct({ op: Schema.Literal("wait"), millis: Schema.Literal(2000) })
        ])
      ).check(Schema.isMinLength(20), Schema.isMaxLength(40))
    },
    ({ commands, creation }) => compare(creation, commands),
    { arbitrary: { runs: 50, size: 40 } }
  )
})
