/**
 * The lifecycle of PaymentIntents against the state table: for any program, both agree on the status, the charges, the
 * order of events, and the responses, including refusals. test/http/Programs.prop.test.ts runs the same programs over
 * HTTP.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { Charge } from "../../../src/domain/Charge.ts"
import { type PaymentIntent, PaymentIntent as PaymentIntentSchema } from "../../../src/domain/PaymentIntent.ts"
import { violatedInvariant } from "../../../src/domain/PaymentIntentInvariants.ts"
import { CHARGE, CUSTOMER, PAYMENT_INTENT, PAYMENT_METHOD } from "../../../src/payments/shared/Documents.ts"
import * as Customers from "../../../src/payments/lifecycles/Customers.ts"
import * as PaymentIntents from "../../../src/payments/lifecycles/PaymentIntents.ts"
import * as Table from "../../models/PaymentIntents.ts"
import {
  CARD_NAMES,
  type CardName,
  CARDS,
  type CardSent,
  type Command,
  type Creation,
  type Model,
  type Seen,
  type UsageSent
} from "../../models/PaymentIntents.ts"
import { type Driver, follow, type Table as StateTable, type Wait } from "../../models/Program.ts"
import { tokenized } from "../../support/fixtures/CardData.ts"
import { answerOf, MemoryAccount } from "../../support/MemoryAccount.ts"

const CHALLENGING = [
  "pm_card_3ds_required",
  "pm_card_authenticationRequiredChargeDeclinedInsufficientFunds"
] as const satisfies ReadonlyArray<CardName>

const sourceOf = ({ card, inline }: CardSent) => {
  if (card === null) return {}
  if (!inline) return { payment_method: card }
  return { payment_method_data: tokenized({ type: "card", card: Table.cardDataOf(card) }) }
}

const createIn = (account: MemoryAccount, sent: Creation) =>
  account.run(
    PaymentIntents.create({
      amount: sent.amount,
      currency: "USD",
      capture_method: sent.capture,
      confirmation_method: sent.confirmation,
      confirm: sent.confirm,
      ...(sent.customer && { customer: customerOf(account) }),
      ...sourceOf(sent),
      ...Table.usageOf(sent)
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
          ...(command.method === null ? {} : { payment_method: command.method === "unset" ? null : command.method }),
          ...(command.future === null ? {} : { setup_future_usage: command.future === "unset" ? null : command.future })
        })
      )
    case "confirm":
      return account.run(PaymentIntents.confirm(id, { ...sourceOf(command), ...Table.usageOf(command) }))
    case "capture":
      return account.run(PaymentIntents.capture(id, { amount_to_capture: command.amount }))
    case "cancel":
      return account.run(PaymentIntents.cancel(id, { cancellation_reason: command.reason }))
    case "authenticate":
      return account.run(PaymentIntents.authenticate(id, command.outcome))
  }
}

/** Checks the invariants of an account, independently of the model. */
const assertSound = (account: MemoryAccount) => {
  for (const { value } of account.all(PAYMENT_INTENT)) {
    assert.isUndefined(violatedInvariant(value))
    const charges = account.all(CHARGE).map((document) => document.value)
    assert.isAtMost(charges.filter(({ status }) => status === "succeeded").length, 1)
    assert.deepStrictEqual(value.charges.data, charges.toReversed().slice(0, 10))
    assert.strictEqual(value.charges.has_more, charges.length > 10)
  }
}

/** The charge that a payer agreed to by passing an authentication. */
type Grant = Pick<PaymentIntent, "amount" | "currency" | "payment_method">

/** Checks that cards with a challenge were charged only for what their payer agreed to. */
const assertAuthenticated = (account: MemoryAccount, grants: ReadonlyArray<Grant>) => {
  for (const { value: charge } of account.all(CHARGE)) {
    if (!challenges(charge.payment_method, charge.payment_method_details.card.last4)) continue
    // The payer was absent, so nothing was charged.
    if (charge.decline_code === "authentication_required") continue
    assert.isTrue(
      grants.some(
        ({ amount, currency, payment_method }) =>
          isCardOf(account, charge, payment_method!) && currency === charge.currency && amount >= charge.amount
      ),
      `${charge.amount} ${charge.currency} without an authentication`
    )
  }
}

/** Returns whether a charge is to this card, or to the attached copy of a built-in one. */
const isCardOf = (account: MemoryAccount, { customer, payment_method, payment_method_details }: Charge, id: string) =>
  payment_method === id ||
  (CARD_NAMES.some((name) => name === id && CARDS[name].number.endsWith(payment_method_details.card.last4)) &&
    customer !== null &&
    account.value(PAYMENT_METHOD, payment_method)?.customer === customer)

const challenges = (id: string, last4: string): boolean =>
  CHALLENGING.some((name) => (id.startsWith("pm_card_") ? id === name : CARDS[name].number.endsWith(last4)))

const decode = Schema.decodeUnknownSync(PaymentIntentSchema, { onExcessProperty: "error" })

/** Checks the output against the specification, and that no stored text contains a card number. */
const assertPresentable = (account: MemoryAccount) => {
  for (const { json } of account.all(PAYMENT_INTENT)) decode(JSON.parse(json))
  const text = account.text
  for (const { number } of Object.values(CARDS)) assert.notInclude(text, number)
}

/** The visible state, with the number of waiting timers. */
type Shown = Seen & { readonly waits: number }

const table: StateTable<Creation, Command, Model, Shown> = {
  ...Table.table,
  expected: (model) => ({ ...Table.expected(model), waits: model.dueAt === null ? 0 : 1 })
}

const driverOf = (account: MemoryAccount): Driver<Creation, Command, Shown> => {
  const grants: Array<Grant> = []
  const eventsBefore = account.events.length
  const current = () => account.all(PAYMENT_INTENT)[0]!.value
  const grant = (command: Command) => {
    const { amount, currency, payment_method, status } = current()
    if (command.op !== "authenticate" || command.outcome !== "success" || status !== "requires_action") return
    grants.push({ amount, currency, payment_method })
  }
  return {
    now: () => account.now,
    create: (sent) => answerOf(createIn(account, sent)),
    run: (command) =>
      Effect.suspend(() => {
        grant(command)
        return answerOf(runIn(account, current().id, command))
      }),
    wait: (millis) => Effect.orDie(account.advance(millis)),
    seen: Effect.sync(() => ({
      ...Table.seenOf(
        current(),
        account.all(CHARGE).map(({ value }) => value)
      ),
      waits: account.timers.size
    })),
    events: Effect.sync(() => account.events.slice(eventsBefore).map(({ type }) => type)),
    sound: () => {
      assertSound(account)
      assertAuthenticated(account, grants)
    },
    written: () => account.version
  }
}

/** Runs a program on both sides and returns the cells of the table that it visited. */
const compare = Effect.fnUntraced(function* (
  creation: Creation,
  steps: ReadonlyArray<Command | Wait>,
  visited: Set<string> = new Set()
) {
  const account = new MemoryAccount()
  yield* account.run(Customers.create({}))
  yield* follow(table, driverOf(account), { creation, steps }, visited)
  assertPresentable(account)
  return visited
})

const NO_USAGE: UsageSent = { future: null, offSession: false }

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
  confirm: false,
  customer: false,
  ...NO_USAGE
})
const confirmWith = (card: CardName | null, usage: Partial<UsageSent> = {}): Command => ({
  op: "confirm",
  card,
  inline: false,
  ...NO_USAGE,
  ...usage
})

/** A program that leads into each status. */
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
  future: null,
  method: null
}

const updateOf = (changes: Partial<Update>): Update => ({ ...NO_UPDATE, ...changes })

const EVERY_COMMAND: ReadonlyArray<Command | Wait> = [
  ...[null, ...CARD_NAMES].flatMap((card) =>
    [true, false].map((inline) => ({ op: "confirm" as const, card, inline, ...NO_USAGE }))
  ),
  ...[null, ...CARD_NAMES].map((card) => confirmWith(card, { offSession: true })),
  ...CARD_NAMES.map((card) => confirmWith(card, { future: "off_session" })),
  updateOf({ amount: 3 }),
  updateOf({ currency: "eur" }),
  updateOf({ customer: true }),
  updateOf({ capture: "manual" }),
  updateOf({ details: "a" }),
  updateOf({ descriptor: "S" }),
  updateOf({ future: "on_session" }),
  updateOf({ future: "on_session", customer: true }),
  updateOf({ future: "unset", customer: false }),
  updateOf({ customer: false }),
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
            // The second command runs in the state that the first one left.
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
        "requires_action authenticate ok succeeded",
        "requires_action authenticate ok requires_capture",
        "requires_action authenticate ok requires_confirmation",
        "requires_action authenticate ok requires_payment_method"
      ]) {
        assert.isTrue(visited.has(cell), cell)
      }
    })
  )

  it.effect.prop(
    "after any sequence of commands",
    { program: Table.program },
    ({ program }) => compare(program.creation, program.steps),
    { arbitrary: { runs: 3000, size: 16 } }
  )

  it.effect.prop(
    "payment_intents.authentication.terms: after any sequence of authentications and changes of their terms",
    {
      capture: Table.method,
      commands: Schema.Array(
        Schema.Union([
          Schema.Struct({
            op: Schema.Literal("confirm"),
            // The authentication of one card does not cover another. A decline or a fault can come in between.
            card: Schema.NullOr(
              Schema.Literals([
                ...CHALLENGING,
                "pm_card_declined",
                "pm_card_processing_failure",
                "pm_card_processor_error"
              ])
            ),
            inline: Schema.Boolean,
            ...Table.usage
          }),
          Schema.Struct({
            op: Schema.Literal("confirm"),
            card: Schema.Null,
            inline: Schema.Literal(false),
            ...Table.usage
          }),
          Schema.Struct({ op: Schema.Literal("authenticate"), outcome: Schema.Literals(["success", "failure"]) }),
          Schema.Struct({ op: Schema.Literal("wait"), millis: Schema.Literal(2000) }),
          Schema.Struct({ ...Table.updateFields, method: Schema.Null }),
          Schema.Struct({
            ...Table.updateFields,
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
    "after any sequence that leaves it open, with more charges than it shows",
    {
      creation: Table.creation,
      commands: Schema.Array(
        Schema.Union([
          Schema.Struct({
            op: Schema.Literal("confirm"),
            card: Schema.Literals(["pm_card_declined", "pm_card_lost_card", "pm_card_processing_failure"]),
            inline: Schema.Boolean,
            ...Table.usage
          }),
          Schema.Struct({ op: Schema.Literal("wait"), millis: Schema.Literal(2000) })
        ])
      ).check(Schema.isMinLength(20), Schema.isMaxLength(40))
    },
    ({ commands, creation }) => compare(creation, commands),
    { arbitrary: { runs: 50, size: 40 } }
  )
})
