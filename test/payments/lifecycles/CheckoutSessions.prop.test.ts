/**
 * Checkout Sessions and their PaymentIntents against the state table: for any program on either, and any elapsed time,
 * both agree on the states, the order of events, and the responses, including refusals. test/http/Programs.prop.test.ts
 * runs the same programs over HTTP.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import {
  CheckoutSession as CheckoutSessionSchema,
  LineItem,
  violatedInvariant
} from "../../../src/domain/CheckoutSession.ts"
import { CardDeclined } from "../../../src/domain/Errors.ts"
import {
  CHECKOUT_SESSION,
  CUSTOMER,
  LINE_ITEMS,
  PAYMENT_INTENT,
  PRICE,
  lineItemsId
} from "../../../src/payments/shared/Documents.ts"
import * as CheckoutSessions from "../../../src/payments/lifecycles/CheckoutSessions.ts"
import * as PaymentIntents from "../../../src/payments/lifecycles/PaymentIntents.ts"
import * as Prices from "../../../src/payments/lifecycles/Prices.ts"
import * as Products from "../../../src/payments/lifecycles/Products.ts"
import * as Table from "../../models/CheckoutSessions.ts"
import {
  CARD_NAMES,
  type Command,
  type Creation,
  DETAILS,
  type Model,
  type Seen
} from "../../models/CheckoutSessions.ts"
import { type Driver, follow, type Table as StateTable, type Wait } from "../../models/Program.ts"
import { answerOf, MemoryAccount } from "../../support/MemoryAccount.ts"

type Step = Command | Wait

const runIn = (account: MemoryAccount, id: string, command: Command): Effect.Effect<string> => {
  const paymentIntent = account.value(CHECKOUT_SESSION, id)!.payment_intent!
  switch (command.op) {
    case "confirm": {
      const source = command.card === null ? {} : { payment_method: command.card }
      return command.through === "session"
        ? answerOf(
            account.run(
              CheckoutSessions.confirm(id, {
                ...source,
                customer_details: DETAILS[command.details],
                custom_unit_amount: command.amount
              })
            )
          )
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

/** Checks the invariants, independently of the model. */
const assertSound = (account: MemoryAccount, id: string) => {
  const { hidden: kept, value: session } = account.all(CHECKOUT_SESSION)[0]!
  assert.isUndefined(violatedInvariant(session, kept.customAmount !== null))
  const { data } = account.value(LINE_ITEMS, lineItemsId(id))!
  assert.strictEqual(
    data.reduce((sum, line) => sum + line.amount_total, 0),
    session.amount_total
  )
  assert.isTrue(data.every((line) => line.amount_subtotal === line.amount_total))
  if (kept.customAmount !== null) {
    assert.notStrictEqual(session.payment_status, "no_payment_required")
    if (session.status === "complete") assert.isAbove(data[kept.customAmount.line]!.amount_total, 0)
    assert.strictEqual(session.payment_intent === null, kept.customAmount.paymentIntentData !== null)
  }
  if (session.status !== "open") assert.isNull(kept.collected, "the payer's input is removed")
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

/** Checks the output against the specification. */
const assertPresentable = (account: MemoryAccount, id: string) => {
  const session = account.value(CHECKOUT_SESSION, id)!
  Schema.decodeUnknownSync(CheckoutSessionSchema, { onExcessProperty: "error" })(session)
  const { data } = account.value(LINE_ITEMS, lineItemsId(id))!
  Schema.decodeUnknownSync(Schema.Array(LineItem), { onExcessProperty: "error" })(data)
  assert.isTrue(account.all(PRICE).every(({ value }) => value.active === (value.custom_unit_amount !== undefined)))
}

/** The visible state, with the due times of the account's timers. */
type Shown = Seen & { readonly timers: ReadonlyArray<number> }

const table: StateTable<Creation, Command, Model, Shown> = {
  ...Table.table,
  expected: (model, sent) => ({
    ...Table.expected(model, sent),
    timers: [
      ...(model.status === "open" ? [model.expiresAt, model.closedUntil] : []),
      model.settlesAt,
      model.holdEndsAt
    ]
      .filter((time) => time !== null)
      .toSorted()
  })
}

const driverOf = (
  account: MemoryAccount,
  product: string,
  prices: Table.CustomPrices
): Driver<Creation, Command, Shown> => {
  const eventsBefore = account.events.length
  const current = () => account.all(CHECKOUT_SESSION)[0]!.value
  return {
    now: () => account.now,
    create: (sent) =>
      answerOf(account.run(CheckoutSessions.create(Table.parametersOf(sent, product, prices, account.now)))),
    run: (command) => Effect.suspend(() => runIn(account, current().id, command)),
    wait: (millis) => Effect.orDie(account.advance(millis)),
    seen: Effect.sync(() => {
      const session = current()
      const { payment_intent } = session
      const paymentIntent = payment_intent === null ? null : account.value(PAYMENT_INTENT, payment_intent)!
      const timers = [...account.timers.values()].map(({ dueAt }) => dueAt).toSorted()
      return { ...Table.seenOf(session, paymentIntent, account.all(CUSTOMER).length), timers }
    }),
    events: Effect.sync(() => account.events.slice(eventsBefore).map(({ type }) => type)),
    sound: () => assertSound(account, current().id),
    written: () => account.version
  }
}

/** Runs a program on both sides and compares after every step. */
const compare = Effect.fnUntraced(function* (
  creation: Creation,
  steps: ReadonlyArray<Step>,
  visited: Set<string> = new Set()
) {
  const account = new MemoryAccount()
  const product = yield* account.run(Products.create({ name: "Book" }))
  const terms = { product: product.id, currency: "usd" }
  const ids = yield* Effect.forEach(Object.values(Table.CUSTOM), (custom_unit_amount) =>
    Effect.map(account.run(Prices.create({ ...terms, custom_unit_amount })), ({ id }) => id)
  )
  yield* follow(table, driverOf(account, product.id, Table.customPrices(ids)), { creation, steps }, visited)
  assertPresentable(account, account.all(CHECKOUT_SESSION)[0]!.id)
})

const confirmWith = (card: Table.CardName | null, through: "session" | "payment_intent" = "session"): Command => ({
  op: "confirm",
  through,
  card,
  details: "all",
  amount: null
})

const choose = (amount: number, card: Table.CardName | null = "pm_card_visa"): Command => ({
  op: "confirm",
  through: "session",
  card,
  details: "all",
  amount
})

const EVERY_STEP: ReadonlyArray<Step> = [
  ...[null, ...CARD_NAMES].flatMap((card) =>
    (["none", "email", "all"] as const).flatMap((details) =>
      (["session", "payment_intent"] as const).map((through) => ({
        op: "confirm" as const,
        through,
        card,
        details,
        amount: null
      }))
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

/** Programs that lead into every state, by amount and payment method. */
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

/** Programs in which the payer chooses an amount twice (semantics checkout.custom_amount). */
const CHOICES: ReadonlyArray<ReadonlyArray<Step>> = [
  [confirmWith("pm_card_visa"), choose(400)],
  [choose(400)],
  [choose(901), choose(200), choose(900)],
  [choose(400, null), choose(400, "pm_card_processor_error"), { op: "expire" }],
  [choose(400, "pm_card_declined"), confirmWith("pm_card_visa"), { op: "capture" }],
  [choose(400, "pm_card_declined"), choose(500, "pm_card_declined"), choose(900)],
  [choose(400, "pm_card_3ds_required"), choose(900, null), { op: "authenticate", outcome: "success" }],
  [
    choose(400, "pm_card_3ds_required"),
    { op: "authenticate", outcome: "failure" },
    confirmWith("pm_card_visa", "payment_intent")
  ],
  [choose(400, "pm_card_processing_failure"), { op: "wait", millis: 2000 }, choose(900)],
  [{ op: "wait", millis: 86_400_000 }, choose(400)]
]

describe("Checkout Sessions agree with the state table", () => {
  it.effect("in every cell of it", () =>
    Effect.gen(function* () {
      const visited = new Set<string>()
      const base = { email: null, lifetime: 1800 } as const
      for (const capture of ["automatic", "manual"] as const) {
        for (const customerCreation of ["always", "if_required"] as const) {
          const address = capture === "manual" ? "required" : "auto"
          const sent: Creation = { ...base, total: 500, custom: null, capture, customerCreation, address }
          for (const way of WAYS) for (const step of EVERY_STEP) yield* compare(sent, [...way, step, step], visited)
          for (const custom of ["open", "minimum", "preset"] as const) {
            for (const total of [0, 500] as const) {
              for (const steps of CHOICES) yield* compare({ ...sent, total, custom }, steps, visited)
            }
          }
          const free: Creation = { ...sent, total: 0 }
          for (const step of EVERY_STEP) yield* compare(free, [step, step], visited)
        }
      }
      for (const cell of [
        "open unpaid confirm ok complete paid",
        "open unpaid confirm ok complete unpaid",
        "open unpaid confirm ok complete no_payment_required",
        "open unpaid authenticate ok complete paid",
        "open unpaid authenticate ok complete unpaid",
        "open unpaid expire ok expired unpaid",
        "open unpaid time expired unpaid",
        "complete unpaid time complete paid",
        "complete unpaid capture ok complete paid",
        "complete unpaid cancel ok complete unpaid",
        "complete unpaid confirm ok complete paid"
      ]) {
        assert.isTrue(visited.has(cell), cell)
      }
    })
  )

  it.effect.prop(
    "after any sequence of commands",
    { program: Table.program },
    ({ program }) => compare(program.creation, program.steps),
    { arbitrary: { runs: 1500, size: 12 } }
  )

  const failures = Schema.Array(
    Schema.Struct({
      through: Schema.Literals(["session", "session", "payment_intent"]),
      challenged: Schema.Literals([false, false, true]),
      millis: Schema.Literals([0, 0, 60_000])
    })
  ).check(Schema.isMinLength(17), Schema.isMaxLength(23))

  it.effect.prop(
    "checkout.attempts: after any sequence of attempts that fail",
    { program: Table.program, failures },
    ({ failures, program }) =>
      compare({ ...program.creation, total: 500 }, [
        ...failures.flatMap(({ challenged, millis, through }): ReadonlyArray<Step> => [
          confirmWith(challenged ? "pm_card_3ds_required" : "pm_card_declined", through),
          ...(challenged ? [{ op: "authenticate", outcome: "failure" } as const] : []),
          ...(millis === 0 ? [] : [{ op: "wait", millis } as const])
        ]),
        ...program.steps
      ]),
    { arbitrary: { runs: 300, size: 12 } }
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

  it.effect.each([1795, 1796, 86_404, 86_405])("checkout.expires_at: can be %d seconds", (lifetime) =>
    Effect.gen(function* () {
      const { account, parameters } = yield* begin
      const expires_at = account.now / 1000 + lifetime
      const session = yield* account.run(CheckoutSessions.create({ ...parameters, expires_at }))
      assert.strictEqual(session.expires_at, expires_at)
    })
  )

  it.effect.each([0, 1794, 86_406])("checkout.expires_at: cannot be %d seconds", (lifetime) =>
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
  ] as const)("checkout.expire: is over at its time: %d ms after it", ([millis, status]) =>
    Effect.gen(function* () {
      const { account, parameters } = yield* begin
      const { expires_at, id } = yield* account.run(CheckoutSessions.create(parameters))
      yield* account.advance(expires_at * 1000 + millis - account.now)
      const payment = { payment_method: "pm_card_visa", customer_details: { email: "a@b.co" } }
      yield* Effect.ignore(account.run(CheckoutSessions.confirm(id, payment)))
      assert.strictEqual(account.value(CHECKOUT_SESSION, id)!.status, status)
    })
  )

  it.effect("money.currencies: accepts only the currencies of the installation", () =>
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
      const paid = yield* account.run(
        CheckoutSessions.confirm(session.id, {
          payment_method: "pm_card_visa",
          customer_details: { email: "a@b.co" }
        })
      )
      assert.isFalse(paid instanceof CardDeclined)
      // A product that was sold cannot be deleted (semantics products.delete).
      const refusal = yield* Effect.flip(account.run(Products.remove(product.id)))
      assert.strictEqual(refusal._tag, "ProductHasPrices")
      assert.strictEqual(account.value(CHECKOUT_SESSION, session.id)!.payment_status, "paid")
    })
  )
})
