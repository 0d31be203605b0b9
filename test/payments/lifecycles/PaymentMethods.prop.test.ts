/**
 * The holders and charges of payment methods against the state table: for any program, both agree on the holders, the
 * payments, the order of events, and the responses, including refusals. In addition, no payment method has two
 * customers, and none is charged after it was detached. test/http/Programs.prop.test.ts runs the same programs over
 * HTTP.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { PAYMENT_METHODS_PER_CUSTOMER_MAX } from "../../../src/domain/PaymentMethod.ts"
import * as PaymentMethodAttachments from "../../../src/payments/lifecycles/PaymentMethodAttachments.ts"
import * as Customers from "../../../src/payments/lifecycles/Customers.ts"
import {
  CHARGE,
  CUSTOMER,
  HELD_PAYMENT_METHODS,
  heldPaymentMethodsId,
  PAYMENT_INTENT,
  PAYMENT_METHOD
} from "../../../src/payments/shared/Documents.ts"
import * as PaymentIntents from "../../../src/payments/lifecycles/PaymentIntents.ts"
import * as PaymentMethods from "../../../src/payments/lifecycles/PaymentMethods.ts"
import type { Command, Creation, Does, Seen, Who } from "../../models/PaymentMethods.ts"
import * as Table from "../../models/PaymentMethods.ts"
import { type Driver, follow, type Wait } from "../../models/Program.ts"
import { tokenized } from "../../support/fixtures/CardData.ts"
import { answerOf, MemoryAccount } from "../../support/MemoryAccount.ts"
import { accepted } from "../../support/Outcomes.ts"

const makeCard = (does: Does) => PaymentMethods.create(tokenized({ type: "card", card: Table.cardDataOf(does) }))

/** Checks that the two sides of each attachment agree, independently of the model. */
const assertOneHolder = (account: MemoryAccount) => {
  const held = account
    .all(HELD_PAYMENT_METHODS)
    .flatMap(({ id, value }) => value.data.map((card) => [card, id] as const))
  const named = account.all(PAYMENT_METHOD).flatMap(({ hidden, labels, value }) => {
    assert.deepStrictEqual(labels, value.customer === null ? {} : { customer: value.customer })
    assert.isFalse(hidden.detached && value.customer !== null)
    return value.customer === null ? [] : [[value.id, heldPaymentMethodsId(value.customer)] as const]
  })
  assert.sameDeepMembers(held, named)
  for (const { value } of account.all(PAYMENT_METHOD)) {
    if (value.customer !== null) assert.isDefined(account.value(CUSTOMER, value.customer))
  }
}

const driverOf = (account: MemoryAccount, customers: ReadonlyArray<string>): Driver<Creation, Command, Seen> => {
  const ids = () => account.all(PAYMENT_METHOD).map(({ id }) => id)
  const payments = () => account.all(PAYMENT_INTENT).map(({ id }) => id)
  const eventsBefore = account.events.length
  const charged = new Set<string>()
  const detached = new Set<string>()
  const run = (command: Command): Effect.Effect<string> => {
    switch (command.op) {
      case "attach":
        return answerOf(
          account.run(
            PaymentMethodAttachments.attach(Table.idOf(ids(), command.card), { customer: customers[command.who]! })
          )
        )
      case "detach":
        return answerOf(account.run(PaymentMethodAttachments.detach(Table.idOf(ids(), command.card))))
      case "delete":
        return answerOf(account.run(Customers.remove(customers[command.who]!)))
      case "pay":
        return answerOf(account.run(PaymentIntents.create(Table.paymentOf(command, ids(), customers))))
      case "confirm":
        return answerOf(
          account.run(
            PaymentIntents.confirm(payments()[command.payment]!, {
              ...(command.card !== null && { payment_method: Table.idOf(ids(), command.card) }),
              ...(command.offSession && { off_session: true })
            })
          )
        )
      case "authenticate":
        return answerOf(account.run(PaymentIntents.authenticate(payments()[command.payment]!, command.outcome)))
      case "move":
        return answerOf(
          account.run(
            PaymentIntents.update(payments()[command.payment]!, {
              customer: command.who === null ? null : customers[command.who]!
            })
          )
        )
    }
  }
  return {
    now: () => account.now,
    create: (sent) =>
      answerOf(
        Effect.gen(function* () {
          for (const does of sent) yield* account.run(makeCard(does))
          return {}
        })
      ),
    run: (command) => Effect.suspend(() => run(command)),
    wait: (millis) => Effect.orDie(account.advance(millis)),
    seen: Effect.sync(() => {
      const cards = account.all(PAYMENT_METHOD).map(({ value }) => value)
      return {
        cards: cards.map(({ customer }) => (customer === null ? null : (customers.indexOf(customer) as Who))),
        held: customers.map((customer) =>
          account.value(CUSTOMER, customer) === undefined
            ? null
            : cards.flatMap((card, index) => (card.customer === customer ? [index] : [])).toReversed()
        ),
        payments: account.all(PAYMENT_INTENT).map(({ value: { charges, payment_method, status } }) => ({
          status,
          card: Table.refOf(ids(), payment_method),
          charges: charges.data.length
        }))
      }
    }),
    events: Effect.sync(() => account.events.slice(eventsBefore).map(({ type }) => type)),
    sound: () => {
      assertOneHolder(account)
      for (const { id, value } of account.all(CHARGE)) {
        // `detached` contains the payment methods detached before this step.
        if (!charged.has(id)) assert.isFalse(detached.has(value.payment_method), `${value.payment_method} is charged`)
        charged.add(id)
      }
      for (const { hidden, id } of account.all(PAYMENT_METHOD)) {
        assert.isTrue(hidden.detached || !detached.has(id), `${id} is attached again`)
        if (hidden.detached) detached.add(id)
      }
    },
    written: () => account.version
  }
}

const compare = Effect.fnUntraced(function* (
  creation: Creation,
  steps: ReadonlyArray<Command | Wait>,
  visited: Set<string> = new Set()
) {
  const account = new MemoryAccount()
  const customers: Array<string> = []
  for (let i = 0; i < 2; i++) customers.push((yield* account.run(Customers.create({}))).id)
  yield* follow(Table.table, driverOf(account, customers), { creation, steps }, visited)
  return visited
})

const attach = (who: Who, card: Table.Ref = 0): Command => ({ op: "attach", card, who })
const detach: Command = { op: "detach", card: 0 }
const pay = (who: Who | null, more: Partial<Extract<Command, { op: "pay" }>> = {}): Command => ({
  op: "pay",
  card: 0,
  who,
  future: false,
  offSession: false,
  confirm: true,
  ...more
})

/** Programs that lead the first payment method into each state. */
const WAYS: ReadonlyArray<ReadonlyArray<Command>> = [
  [],
  [attach(0)],
  [attach(0), detach],
  [attach(0), { op: "delete", who: 0 }],
  [pay(0, { future: true })],
  // Payments that wait while the payment method changes.
  [pay(0, { confirm: false }), attach(1)],
  [pay(0, { confirm: false }), attach(0), detach],
  [pay(0), attach(0), detach],
  [pay(0, { future: true }), attach(1)],
  [pay(0, { future: true }), attach(1), detach],
  [attach(0), pay(0, { future: true }), detach],
  [pay(0, { future: true }), { op: "delete", who: 0 }]
]

const THEN: ReadonlyArray<Command | Wait> = [
  attach(0),
  attach(1),
  attach(1, "approving"),
  detach,
  { op: "detach", card: "approving" },
  { op: "detach", card: 4 },
  { op: "delete", who: 0 },
  ...([0, 1, null] as const).flatMap((who) => [
    pay(who),
    pay(who, { offSession: true }),
    pay(who, { future: true }),
    pay(who, { future: true, confirm: false })
  ]),
  { op: "confirm", payment: 0, card: null, offSession: false },
  { op: "confirm", payment: 0, card: 0, offSession: true },
  { op: "authenticate", payment: 0, outcome: "success" },
  { op: "move", payment: 0, who: 1 },
  { op: "wait", millis: 2000 }
]

describe("payment methods agree with the state table", () => {
  it.effect("payment_methods.states: in every cell of it", () =>
    Effect.gen(function* () {
      const visited = new Set<string>()
      for (const does of Object.keys(Table.CARDS) as ReadonlyArray<Does>) {
        for (const way of WAYS) {
          for (const command of THEN) {
            // The second command runs in the state that the first one left, the last one after the settlement.
            yield* compare([does], [...way, command, command, { op: "wait", millis: 2000 }], visited)
          }
        }
      }
      for (const cell of [
        "free attach ok attached",
        "free detach parameter_invalid free",
        "attached attach ok attached",
        "attached attach resource_in_use attached",
        "attached detach ok detached",
        "attached delete ok detached",
        "detached attach parameter_invalid detached",
        "detached detach parameter_invalid detached",
        "detached pay parameter_invalid detached",
        "detached confirm parameter_invalid detached",
        "detached authenticate ok detached",
        "detached time detached",
        "free pay ok attached",
        "free time attached"
      ]) {
        assert.isTrue(visited.has(cell), cell)
      }
    })
  )

  it.effect.prop(
    "payment_methods.invariants: after any sequence of attachments, detachments, deletions and payments",
    { program: Table.program },
    ({ program }) => compare(program.creation, program.steps),
    { arbitrary: { runs: 1500, size: 20 } }
  )
})

describe("a customer", () => {
  // Semantics payment_methods.attach.
  it.effect("holds a maximum of payment methods, and a payment above it stands without an attachment", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const { id: customer } = yield* account.run(Customers.create({}))
      for (let i = 0; i < PAYMENT_METHODS_PER_CUSTOMER_MAX; i++)
        yield* account.run(PaymentMethodAttachments.attach("pm_card_visa", { customer }))
      const { id } = yield* account.run(makeCard("approving"))
      const before = account.text
      assert.strictEqual(
        yield* answerOf(account.run(PaymentMethodAttachments.attach(id, { customer }))),
        "parameter_invalid customer"
      )
      assert.strictEqual(account.text, before)
      const paid = yield* accepted(
        account.run(PaymentIntents.create(Table.paymentOf(pay(0, { future: true }) as never, [id], [customer])))
      )
      assert.deepInclude(paid, { status: "succeeded", payment_method: id })
      assertOneHolder(account)

      // An attached payment method does not count again, and a detached one makes room.
      const [oldest] = account.all(PAYMENT_METHOD)
      yield* account.run(PaymentMethodAttachments.attach(oldest!.id, { customer }))
      yield* account.run(PaymentMethodAttachments.detach(oldest!.id))
      yield* account.run(PaymentMethodAttachments.attach(id, { customer }))
      assertOneHolder(account)
      const events = account.events.length
      yield* account.run(Customers.remove(customer))
      assert.strictEqual(account.events.length - events, PAYMENT_METHODS_PER_CUSTOMER_MAX + 1)
      assertOneHolder(account)
    })
  )
})
