/**
 * Payment links and their sessions against the state table (semantics payment_links.states, payment_links.limit,
 * payment_links.late): for any changes of a link, any visits, and any attempts to pay for its sessions, the answers,
 * the events and the count are those of a plain model, and nothing is charged beyond the limit.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { type CheckoutSession, FAILED_ATTEMPTS_MAX } from "../../../src/domain/CheckoutSession.ts"
import { PaymentLink, stateOf, violatedInvariant } from "../../../src/domain/PaymentLink.ts"
import * as CheckoutSessions from "../../../src/payments/lifecycles/CheckoutSessions.ts"
import {
  CHARGE,
  CHECKOUT_SESSION,
  LINE_ITEMS,
  lineItemsId,
  PAYMENT_LINK
} from "../../../src/payments/shared/Documents.ts"
import * as PaymentIntents from "../../../src/payments/lifecycles/PaymentIntents.ts"
import * as PaymentLinks from "../../../src/payments/lifecycles/PaymentLinks.ts"
import * as Products from "../../../src/payments/lifecycles/Products.ts"
import { answerOf, MemoryAccount } from "../../support/MemoryAccount.ts"

const CARDS = {
  approves: "pm_card_visa",
  declines: "pm_card_declined",
  challenges: "pm_card_3ds_required",
  processes: "pm_card_processing_success",
  fails: "pm_card_processing_failure"
} as const
type Card = keyof typeof CARDS

const card = Schema.Literals(Object.keys(CARDS) as ReadonlyArray<Card>)
/** One of the sessions made so far, by a number that is taken modulo. */
const which = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 7 }))
const limit = Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3 })))

const Command = Schema.Union([
  Schema.Struct({
    op: Schema.Literal("visit"),
    quantity: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4 }))
  }),
  Schema.Struct({ op: Schema.Literal("switch"), active: Schema.Boolean }),
  Schema.Struct({ op: Schema.Literal("limit"), limit }),
  Schema.Struct({ op: Schema.Literal("confirm"), which, card, through: Schema.Literals(["session", "payment"]) }),
  Schema.Struct({ op: Schema.Literal("authenticate"), which, outcome: Schema.Literals(["success", "failure"]) }),
  Schema.Struct({ op: Schema.Literal("expire"), which }),
  Schema.Struct({ op: Schema.Literal("wait"), seconds: Schema.Literals([1, 3, 90_000]) })
])
type Command = typeof Command.Type

interface SessionModel {
  readonly id: string
  status: "open" | "complete" | "expired"
  /** The payment: what it waits for, or its end. */
  payment: "method" | "action" | "processing" | "succeeded" | "canceled"
  settlesAt: number
  willFail: boolean
  /** Whether the payment that settles is the one that has completed the session. */
  hasCompleted: boolean
  readonly expiresAt: number
}

/** The link as the table defines it. */
class Model {
  active = true
  limit: number | null
  count = 0
  readonly sessions: Array<SessionModel> = []
  readonly events: Array<string> = []

  constructor(limit: number | null) {
    this.limit = limit
  }

  get isOpen(): boolean {
    return this.active && (this.limit === null || this.count < this.limit)
  }

  /** Time passes: payments settle and sessions expire. */
  pass(now: number): void {
    const due = this.sessions
      .flatMap((session) => [
        ...(session.payment === "processing" ? [{ at: session.settlesAt, session, kind: "settle" as const }] : []),
        ...(session.status === "open" ? [{ at: session.expiresAt, session, kind: "expire" as const }] : [])
      ])
      .filter(({ at }) => at <= now)
      .toSorted((a, b) => a.at - b.at)
    for (const { kind, session } of due) {
      if (kind === "settle") {
        session.payment = session.willFail ? "method" : "succeeded"
        const [of, end] = session.willFail ? ["payment_failed", "failed"] : ["succeeded", "succeeded"]
        this.events.push(`charge.${end}`, `payment_intent.${of}`)
        if (session.hasCompleted) this.events.push(`checkout.session.async_payment_${end}`)
      } else this.end(session)
    }
  }

  end(session: SessionModel): void {
    session.status = "expired"
    session.payment = "canceled"
    this.events.push("payment_intent.canceled", "checkout.session.expired")
  }

  /** The attempt of a confirmation or a passed authentication. Only an attempt that completes a session is counted. */
  charge(session: SessionModel, card: Card, now: number): string {
    const completes = session.status === "open"
    switch (card) {
      case "declines":
        session.payment = "method"
        this.events.push("charge.failed", "payment_intent.payment_failed")
        return "declined generic_decline"
      case "challenges":
        session.payment = "action"
        this.events.push("payment_intent.requires_action")
        return "ok"
      case "approves":
        session.payment = "succeeded"
        this.events.push("charge.succeeded", "payment_intent.succeeded")
        break
      default:
        session.payment = "processing"
        session.settlesAt = now + 2000
        session.willFail = card === "fails"
        session.hasCompleted = completes
        this.events.push("charge.pending", "payment_intent.processing")
    }
    if (completes) {
      session.status = "complete"
      this.count++
      this.events.push("checkout.session.completed")
    }
    return "ok"
  }
}

const DETAILS = { customer_details: { email: "payer@example.com" } }
const BOUNDS = { minimum: 1, maximum: 3 }

/** Runs one command on both sides. Returns what happened for the report of visited cells. */
const apply = Effect.fnUntraced(function* (account: MemoryAccount, link: string, model: Model, command: Command) {
  const session = "which" in command ? model.sessions[command.which % Math.max(model.sessions.length, 1)] : undefined
  const payment = () => account.value(CHECKOUT_SESSION, session!.id)!.payment_intent!
  const written = account.version
  let expected = "ok"
  let answer = "ok"
  switch (command.op) {
    case "wait":
      yield* Effect.orDie(account.advance(command.seconds * 1000))
      model.pass(account.now)
      return
    case "switch":
    case "limit": {
      const isChange = command.op === "switch" ? command.active !== model.active : command.limit !== model.limit
      if (command.op === "switch") model.active = command.active
      else model.limit = command.limit
      if (isChange) model.events.push("payment_link.updated")
      const body =
        command.op === "switch"
          ? { active: command.active }
          : { restrictions: command.limit === null ? null : { completed_sessions: { limit: command.limit } } }
      answer = yield* answerOf(account.run(PaymentLinks.update(link, body)))
      break
    }
    case "visit": {
      const isRight = command.quantity >= BOUNDS.minimum && command.quantity <= BOUNDS.maximum
      expected = !model.isOpen ? "payment_link_inactive id" : isRight ? "ok" : "parameter_invalid quantity[0]"
      const visit = PaymentLinks.visit(link, new Map([[0, command.quantity]]))
      let made: CheckoutSession | undefined
      answer = yield* answerOf(account.run(Effect.tap(visit, (session) => Effect.sync(() => (made = session)))))
      if (expected === "ok") {
        const { amount_total, id, payment_link } = made!
        assert.deepStrictEqual([amount_total, payment_link], [1200 * command.quantity, link])
        assert.strictEqual(account.value(LINE_ITEMS, lineItemsId(id))!.data[0]!.quantity, command.quantity)
        model.sessions.push({
          id,
          status: "open",
          payment: "method",
          settlesAt: 0,
          willFail: false,
          hasCompleted: false,
          expiresAt: account.now + 86_400_000
        })
        model.events.push("payment_intent.created")
      }
      break
    }
    case "expire": {
      if (session === undefined) return
      expected = session.status === "open" ? "ok" : `checkout_session_unexpected_state ${session.status}`
      answer = yield* answerOf(account.run(CheckoutSessions.expire(session.id)))
      if (expected === "ok") model.end(session)
      break
    }
    case "confirm": {
      if (session === undefined) return
      const isThroughSession = command.through === "session"
      const source = { payment_method: CARDS[command.card] }
      const isConfirmable = session.payment === "method" || session.payment === "action"
      if (isThroughSession && session.status !== "open")
        expected = `checkout_session_unexpected_state ${session.status}`
      else if (!isConfirmable) expected = `payment_intent_unexpected_state ${STATUSES[session.payment]}`
      // A complete session, whose payment has failed to settle, keeps its place.
      else if (session.status === "open" && !model.isOpen) expected = "payment_link_inactive id"
      else expected = model.charge(session, command.card, account.now)
      answer = yield* isThroughSession
        ? answerOf(account.run(CheckoutSessions.confirm(session.id, { ...source, ...DETAILS })))
        : answerOf(account.run(PaymentIntents.confirm(payment(), source)))
      break
    }
    case "authenticate": {
      if (session === undefined) return
      if (session.payment !== "action") expected = `payment_intent_unexpected_state ${STATUSES[session.payment]}`
      else if (command.outcome === "success" && (session.status !== "open" || model.isOpen)) {
        expected = model.charge(session, "approves", account.now)
      } else {
        session.payment = "method"
        model.events.push("payment_intent.payment_failed")
      }
      answer = yield* answerOf(account.run(PaymentIntents.authenticate(payment(), command.outcome)))
    }
  }
  assert.strictEqual(answer, expected, JSON.stringify(command))
  if (answer !== "ok" && !answer.startsWith("declined")) assert.strictEqual(account.version, written)
})

const STATUSES = {
  method: "requires_payment_method",
  action: "requires_action",
  processing: "processing",
  succeeded: "succeeded",
  canceled: "canceled"
} as const

const assertAgrees = (account: MemoryAccount, link: string, model: Model, eventsBefore: number): void => {
  const { hidden, value } = account.all(PAYMENT_LINK)[0]!
  Schema.decodeUnknownSync(PaymentLink, { onExcessProperty: "error" })(value)
  assert.isUndefined(violatedInvariant(value, hidden.completed))
  assert.strictEqual(hidden.completed, model.count)
  assert.strictEqual(value.active, model.active)
  const restrictions = model.limit === null ? null : { completed_sessions: { count: model.count, limit: model.limit } }
  assert.deepStrictEqual(value.restrictions, restrictions)
  assert.strictEqual(stateOf(value) === "open", model.isOpen)
  assert.strictEqual(value.id, link)
  const sessions = account.all(CHECKOUT_SESSION).map(({ value: { id, status } }) => ({ id, status }))
  assert.deepStrictEqual(
    sessions,
    model.sessions.map(({ id, status }) => ({ id, status }))
  )
  assert.strictEqual(sessions.filter(({ status }) => status === "complete").length, model.count)
  assert.deepStrictEqual(
    account.events.slice(eventsBefore).map(({ type }) => type),
    model.events
  )
  for (const { object, type } of account.events.slice(eventsBefore)) {
    if (type.startsWith("checkout.session.")) {
      assert.strictEqual((JSON.parse(object!) as CheckoutSession).payment_link, link)
    }
  }
}

const shop = Effect.fnUntraced(function* (limit: number | null) {
  const account = new MemoryAccount()
  const product = yield* account.run(Products.create({ name: "Coffee" }))
  const { id } = yield* account.run(
    PaymentLinks.create({
      line_items: [
        {
          price_data: { currency: "usd", product: product.id, unit_amount: 1200 },
          adjustable_quantity: { enabled: true, ...BOUNDS }
        }
      ],
      restrictions: limit === null ? null : { completed_sessions: { limit } }
    })
  )
  return { account, id }
})

/** The most failed attempts on a session that do not close it for a while (semantics checkout.attempts). */
const FEWER_THAN_PAUSE = FAILED_ATTEMPTS_MAX - 1
const attempts = Schema.Array(Schema.Struct({ which, card })).check(Schema.isMaxLength(FEWER_THAN_PAUSE))

describe("Payment links", () => {
  it.effect.prop(
    "agree with the model for any commands",
    { limit, commands: Schema.Array(Command).check(Schema.isMaxLength(FEWER_THAN_PAUSE)) },
    ({ commands, limit }) =>
      Effect.gen(function* () {
        const { account, id } = yield* shop(limit)
        const eventsBefore = account.events.length
        const model = new Model(limit)
        for (const command of commands) {
          yield* apply(account, id, model, command)
          assertAgrees(account, id, model, eventsBefore)
        }
      }),
    { arbitrary: { runs: 400 } }
  )

  it.effect.prop(
    "take at most as many payments as the limit, whichever sessions try to pay in whatever order",
    { limit: Schema.Literals([1, 2, 3]), attempts },
    ({ attempts, limit }) =>
      Effect.gen(function* () {
        const { account, id } = yield* shop(limit)
        const model = new Model(limit)
        for (let index = 0; index < 8; index++) yield* apply(account, id, model, { op: "visit", quantity: 1 })
        for (const { card, which } of attempts) {
          yield* apply(account, id, model, { op: "confirm", which, card, through: "session" })
          yield* apply(account, id, model, { op: "authenticate", which, outcome: "success" })
        }
        const paid = account.all(CHARGE).filter(({ value }) => value.status !== "failed")
        assert.isAtMost(paid.length, limit)
        assert.strictEqual(paid.length, model.count)
      })
  )
})
