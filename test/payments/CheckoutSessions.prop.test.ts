/**
 * Checkout Sessions and their PaymentIntents against the state table: for any sequence of commands on either, and for
 * any time that passes, both agree on the states, the events in their order, and the answers, refusals included.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import {
  CheckoutSession as CheckoutSessionSchema,
  LineItem,
  violatedInvariant
} from "../../src/domain/CheckoutSession.ts"
import {
  CHECKOUT_SESSION,
  CUSTOMER,
  LINE_ITEMS,
  PAYMENT_INTENT,
  PRICE,
  lineItemsId
} from "../../src/payments/Documents.ts"
import * as CheckoutSessions from "../../src/payments/CheckoutSessions.ts"
import * as PaymentIntents from "../../src/payments/PaymentIntents.ts"
import * as Products from "../../src/payments/Products.ts"
import { MemoryAccount } from "../support/MemoryAccount.ts"
import type { Command, Creation, Model } from "./CheckoutSessionModel.ts"
import * as Table from "./CheckoutSessionModel.ts"
import { CARD_NAMES } from "./CheckoutSessionModel.ts"
import { accepted } from "../support/Outcomes.ts"

const creation = Schema.Struct({
  total: Schema.Literals([0, 500, 500]),
  capture: Schema.Literals(["automatic", "manual"]),
  customerCreation: Schema.Literals(["always", "if_required"]),
  email: Schema.NullOr(Schema.Literal("known")),
  address: Schema.Literals(["auto", "required"]),
  lifetime: Schema.Literals([1800, 86_400])
})

const command = Schema.Union([
  Schema.Struct({
    op: Schema.Literal("confirm"),
    through: Schema.Literals(["session", "payment_intent"]),
    card: Schema.NullOr(Schema.Literals(CARD_NAMES)),
    details: Schema.Literals(["none", "email", "all"])
  }),
  Schema.Struct({ op: Schema.Literal("authenticate"), outcome: Schema.Literals(["success", "failure"]) }),
  Schema.Struct({ op: Schema.Literals(["expire", "capture", "cancel", "update_amount"]) })
])

const wait = Schema.Struct({
  op: Schema.Literal("wait"),
  millis: Schema.Literals([1000, 2000, 1_799_999, 1_800_000, 86_400_000, 604_800_000])
})

type Step = Command | typeof wait.Type

type Worded = { readonly _tag: string } & Readonly<Record<string, unknown>>

/** An answer in the model's words. */
const wordsOf = (answer: Worded): string => {
  switch (answer._tag) {
    case "CardDeclined":
      return "declined"
    case "CheckoutSessionUnexpectedState":
      return `session_state ${String(answer["status"])}`
    case "PaymentIntentUnexpectedState":
      return `intent_state ${String(answer["status"])}`
    case "PaymentIntentBelongsToSession":
      return "belongs_to_session"
    case "PaymentMethodRequired":
      return "payment_method_required"
    case "ProcessorUnavailable":
      return "processor_unavailable"
    case "ParameterMissing":
      return `missing ${String(answer["param"])}`
    default:
      return answer._tag
  }
}

const answerOf = <R>(operation: Effect.Effect<object, { readonly _tag: string }, R>): Effect.Effect<string, never, R> =>
  operation.pipe(
    Effect.map((answer) =>
      Result.isResult(answer) && Result.isFailure(answer) ? wordsOf(answer.failure as Worded) : "ok"
    ),
    Effect.catch((error) => Effect.succeed(wordsOf(error as Worded)))
  )

const ADDRESS = { line1: "1 High St", country: "GB", postal_code: "N1", city: "London" }
const DETAILS = {
  none: null,
  email: { email: "payer@example.com" },
  all: { email: "payer@example.com", address: ADDRESS }
} as const

const createIn = Effect.fnUntraced(function* (account: MemoryAccount, sent: Creation) {
  const product = yield* account.run(Products.create({ name: "Book" }))
  account.events.length = 0
  const price_data = { currency: "usd", product: product.id, unit_amount: sent.total / 5 }
  const session = yield* account.run(
    CheckoutSessions.create({
      mode: "payment",
      line_items: [
        { price_data, quantity: 2 },
        { price_data, quantity: 3 }
      ],
      success_url: "https://shop.example/thanks",
      customer_creation: sent.customerCreation,
      billing_address_collection: sent.address,
      customer_email: sent.email === null ? null : "known@example.com",
      expires_at: account.now / 1000 + sent.lifetime,
      payment_intent_data: { capture_method: sent.capture }
    })
  )
  return session.id
})

const runIn = (account: MemoryAccount, id: string, command: Command): Effect.Effect<string> => {
  const paymentIntent = account.value(CHECKOUT_SESSION, id)!.payment_intent!
  switch (command.op) {
    case "confirm": {
      const source = command.card === null ? {} : { payment_method: command.card }
      return command.through === "session"
        ? answerOf(account.run(CheckoutSessions.confirm(id, { ...source, customer_details: DETAILS[command.details] })))
        : answerOf(account.run(PaymentIntents.confirm(paymentIntent, source)))
    }
    case "expire":
      return answerOf(account.run(CheckoutSessions.expire(id)))
    case "authenticate":
      return answerOf(account.run(PaymentIntents.authenticate(paymentIntent, command.outcome)))
    case "capture":
      return answerOf(account.run(PaymentIntents.capture(paymentIntent, {})))
    case "cancel":
      return answerOf(account.run(PaymentIntents.cancel(paymentIntent, {})))
    case "update_amount":
      return answerOf(account.run(PaymentIntents.update(paymentIntent, { amount: 1 })))
  }
}

/** What a client sees, in the model's words. */
const seen = (account: MemoryAccount, id: string) => {
  const session = account.value(CHECKOUT_SESSION, id)!
  const paymentIntent = session.payment_intent === null ? null : account.value(PAYMENT_INTENT, session.payment_intent)!
  return {
    status: session.status,
    paymentStatus: session.payment_status,
    page: session.url !== null,
    intent: paymentIntent?.status ?? null,
    customers: account.all(CUSTOMER).length,
    email: session.customer_details?.email ?? null,
    address: session.customer_details?.address?.line1 === ADDRESS.line1,
    timers: [...account.timers.values()].map(({ dueAt }) => dueAt).toSorted()
  }
}

const expected = (model: Model): ReturnType<typeof seen> => ({
  status: model.status,
  paymentStatus: model.paymentStatus,
  page: model.status === "open",
  intent: model.intent as "succeeded" | null,
  customers: model.customers,
  email: model.email,
  address: model.address,
  timers: [model.status === "open" ? model.expiresAt : null, model.settlesAt, model.holdEndsAt]
    .filter((time) => time !== null)
    .toSorted()
})

/** Holds at every moment, whatever the model says. */
const assertSound = (account: MemoryAccount, id: string) => {
  const { hidden: kept, value: session } = account.all(CHECKOUT_SESSION)[0]!
  assert.isUndefined(violatedInvariant(session))
  if (session.status !== "open") assert.isNull(kept.collected, "what a payer has entered is not kept any longer")
  if (session.payment_intent === null) return
  const { hidden, value: paymentIntent } = account.all(PAYMENT_INTENT).find((one) => one.id === session.payment_intent)!
  assert.deepStrictEqual(hidden, { checkoutSession: id })
  assert.strictEqual(paymentIntent.amount, session.amount_total)
  assert.strictEqual(paymentIntent.customer, session.customer)
  assert.strictEqual(session.payment_status === "paid", paymentIntent.status === "succeeded")
  if (session.status === "expired") assert.strictEqual(paymentIntent.status, "canceled")
  for (const charge of paymentIntent.charges.data.filter(({ status }) => status === "succeeded")) {
    assert.strictEqual(charge.customer, session.customer)
  }
}

/** What came out is what the specification says. */
const assertPresentable = (account: MemoryAccount, id: string) => {
  const session = account.value(CHECKOUT_SESSION, id)!
  Schema.decodeUnknownSync(CheckoutSessionSchema, { onExcessProperty: "error" })(session)
  const { data } = account.value(LINE_ITEMS, lineItemsId(id))!
  Schema.decodeUnknownSync(Schema.Array(LineItem), { onExcessProperty: "error" })(data)
  const total = data.reduce((sum, line) => sum + line.amount_total, 0)
  assert.strictEqual(total, session.amount_total)
  assert.isTrue(account.all(PRICE).every(({ value }) => !value.active))
}

/** Runs the sequence on both sides and compares after every step. */
const compare = Effect.fnUntraced(function* (
  sent: Creation,
  steps: ReadonlyArray<Step>,
  visited: Set<string> = new Set()
) {
  const account = new MemoryAccount()
  const created = Table.create(sent, account.now)
  const id = yield* createIn(account, sent)
  let model = created.after
  let events = [...created.events]
  const check = (label: string) => {
    assert.deepStrictEqual(seen(account, id), expected(model), label)
    assert.deepStrictEqual(
      account.events.map(({ type }) => type),
      events,
      label
    )
    assertSound(account, id)
  }
  check("create")
  for (const command of steps) {
    const from = `${model.status} ${model.paymentStatus}`
    if (command.op === "wait") {
      const until = account.now + command.millis
      yield* account.advance(command.millis)
      for (;;) {
        const step = Table.timePasses(model, sent, until)
        if (step === undefined) break
        events = [...events, ...step.events]
        model = step.after
      }
    } else {
      if (model.intent === null && !(command.op === "expire" || isSessionConfirmation(command))) continue
      const { documents, timers } = account
      const step = Table.apply(model, sent, command, account.now)
      const answer = yield* runIn(account, id, command)
      assert.strictEqual(answer, step.answer, `${JSON.stringify(command)} in ${from} with ${model.intent}`)
      if (answer !== "ok" && answer !== "declined") {
        assert.isTrue(account.documents === documents && account.timers === timers, "a refusal leaves nothing")
      }
      events = [...events, ...step.events]
      model = step.after
    }
    visited.add(`${from} ${command.op} ${model.status} ${model.paymentStatus}`)
    check(`${JSON.stringify(command)} in ${from}`)
  }
  assertPresentable(account, id)
})

const isSessionConfirmation = (command: Command): boolean => command.op === "confirm" && command.through === "session"

const confirmWith = (card: Table.CardName | null, through: "session" | "payment_intent" = "session"): Command => ({
  op: "confirm",
  through,
  card,
  details: "all"
})

const EVERY_STEP: ReadonlyArray<Step> = [
  ...[null, ...CARD_NAMES].flatMap((card) =>
    (["none", "email", "all"] as const).flatMap((details) =>
      (["session", "payment_intent"] as const).map((through) => ({ op: "confirm" as const, through, card, details }))
    )
  ),
  { op: "expire" },
  { op: "capture" },
  { op: "cancel" },
  { op: "update_amount" },
  { op: "authenticate", outcome: "success" },
  { op: "authenticate", outcome: "failure" },
  { op: "wait", millis: 2000 },
  { op: "wait", millis: 1_799_999 },
  { op: "wait", millis: 86_400_000 },
  { op: "wait", millis: 604_800_000 }
]

/** Ways into every state, by what is to be paid and how. */
const WAYS: ReadonlyArray<ReadonlyArray<Step>> = [
  [],
  [confirmWith("pm_card_declined")],
  [confirmWith("pm_card_3ds_required")],
  [confirmWith("pm_card_authenticationRequiredChargeDeclinedInsufficientFunds")],
  [confirmWith("pm_card_visa")],
  [confirmWith("pm_card_processing_success")],
  [confirmWith("pm_card_processing_failure")],
  [confirmWith("pm_card_processing_failure"), { op: "wait", millis: 2000 }],
  [
    confirmWith("pm_card_processing_failure"),
    { op: "wait", millis: 2000 },
    confirmWith("pm_card_processing_success", "payment_intent")
  ],
  [{ op: "expire" }]
]

describe("Checkout Sessions agree with the state table", () => {
  it.effect("in every cell of it", () =>
    Effect.gen(function* () {
      const visited = new Set<string>()
      const base = { email: null, lifetime: 1800 } as const
      for (const capture of ["automatic", "manual"] as const) {
        for (const customerCreation of ["always", "if_required"] as const) {
          const address = capture === "manual" ? "required" : "auto"
          const sent: Creation = { ...base, total: 500, capture, customerCreation, address }
          for (const way of WAYS) for (const step of EVERY_STEP) yield* compare(sent, [...way, step, step], visited)
          const free: Creation = { ...sent, total: 0 }
          for (const step of EVERY_STEP) yield* compare(free, [step, step], visited)
        }
      }
      for (const cell of [
        "open unpaid confirm complete paid",
        "open unpaid confirm complete unpaid",
        "open unpaid confirm complete no_payment_required",
        "open unpaid authenticate complete paid",
        "open unpaid authenticate complete unpaid",
        "open unpaid expire expired unpaid",
        "open unpaid wait expired unpaid",
        "complete unpaid wait complete paid",
        "complete unpaid capture complete paid",
        "complete unpaid cancel complete unpaid",
        "complete unpaid confirm complete paid"
      ]) {
        assert.isTrue(visited.has(cell), cell)
      }
    })
  )

  it.effect.prop(
    "after any sequence of commands",
    { creation, steps: Schema.Array(Schema.Union([command, command, wait])).check(Schema.isMaxLength(12)) },
    ({ creation, steps }) => compare(creation as Creation, steps as ReadonlyArray<Step>),
    { arbitrary: { runs: 1500, size: 12 } }
  )
})

describe("The life of a Checkout Session", () => {
  const begin = Effect.gen(function* () {
    const account = new MemoryAccount(undefined, { currencies: new Set(["usd"]) })
    const product = yield* account.run(Products.create({ name: "Book" }))
    const parameters = {
      mode: "payment",
      line_items: [{ price_data: { currency: "usd", product: product.id, unit_amount: 500 } }],
      success_url: "https://shop.example/thanks"
    } as const
    return { account, parameters }
  })

  it.effect.each([1795, 1796, 86_404, 86_405])("S7: can be %d seconds", (lifetime) =>
    Effect.gen(function* () {
      const { account, parameters } = yield* begin
      const expires_at = account.now / 1000 + lifetime
      const session = yield* account.run(CheckoutSessions.create({ ...parameters, expires_at }))
      assert.strictEqual(session.expires_at, expires_at)
    })
  )

  it.effect.each([0, 1794, 86_406])("S7: cannot be %d seconds", (lifetime) =>
    Effect.gen(function* () {
      const { account, parameters } = yield* begin
      const expires_at = account.now / 1000 + lifetime
      const error = yield* Effect.flip(account.run(CheckoutSessions.create({ ...parameters, expires_at })))
      assert.deepInclude({ ...error }, { _tag: "ParameterInvalid", param: "expires_at" })
    })
  )

  it.effect.each([
    [-1, "complete"],
    [0, "expired"]
  ] as const)("S17: is over at its time: %d ms after it", ([millis, status]) =>
    Effect.gen(function* () {
      const { account, parameters } = yield* begin
      const { expires_at, id } = yield* account.run(CheckoutSessions.create(parameters))
      yield* account.advance(expires_at * 1000 + millis - account.now)
      const payment = { payment_method: "pm_card_visa", customer_details: { email: "a@b.co" } }
      yield* Effect.ignore(account.run(CheckoutSessions.confirm(id, payment)))
      assert.strictEqual(account.value(CHECKOUT_SESSION, id)!.status, status)
    })
  )

  it.effect("N2: takes only the currencies of the installation", () =>
    Effect.gen(function* () {
      const { account, parameters } = yield* begin
      const error = yield* Effect.flip(account.run(CheckoutSessions.create({ ...parameters, currency: "eur" })))
      assert.deepInclude({ ...error }, { _tag: "ParameterInvalid", param: "currency" })
    })
  )
})

describe("Lines of a Checkout Session", () => {
  it.effect("are sold as they were when the session was created", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const product = yield* account.run(Products.create({ name: "Book" }))
      const session = yield* account.run(
        CheckoutSessions.create({
          mode: "payment",
          line_items: [{ price_data: { currency: "usd", product: product.id, unit_amount: 500 } }],
          success_url: "https://shop.example/thanks"
        })
      )
      yield* account.run(Products.update(product.id, { name: "Tome", active: false }))
      const { data } = account.value(LINE_ITEMS, lineItemsId(session.id))!
      assert.strictEqual(data[0]!.description, "Book")
      const payment = { payment_method: "pm_card_visa", customer_details: { email: "a@b.co" } }
      yield* accepted(account.run(CheckoutSessions.confirm(session.id, payment)))
      // PR2: a product that was sold once is not deleted.
      const refusal = yield* Effect.flip(account.run(Products.remove(product.id)))
      assert.strictEqual(refusal._tag, "ProductHasPrices")
      assert.strictEqual(account.value(CHECKOUT_SESSION, session.id)!.payment_status, "paid")
    })
  )
})
