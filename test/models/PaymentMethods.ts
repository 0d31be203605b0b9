/**
 * Payment methods, their customers and payments: client programs, and the state table that checks them, derived again
 * from the text of semantics payment_methods.states, payment_methods.attach, independently of the implementation.
 */
import { Schema } from "effect"
import type { Step as StepOf, Table } from "./Program.ts"
import type { Reply, Wire, WireRequest } from "./Wire.ts"
import * as Over from "./Wire.ts"

/** The cards, as numbers that payers enter and as built-in ids, by behaviour (semantics test_cards.*). */
export const CARDS = {
  approving: { number: "4242424242424242", builtIn: "pm_card_visa" },
  challenging: { number: "4000000000003220", builtIn: "pm_card_3ds_required" },
  processing: { number: "4000000000006017", builtIn: "pm_card_processing_success" },
  declining: { number: "4000000000000002", builtIn: "pm_card_declined" }
} as const

export type Does = keyof typeof CARDS

/** A payment method: an existing one, counted from the oldest, or a built-in one. */
export type Ref = number | Does
/** One of two customers. */
export type Who = 0 | 1

export type Creation = ReadonlyArray<Does>

export type Command =
  | { readonly op: "attach"; readonly card: Ref; readonly who: Who }
  | { readonly op: "detach"; readonly card: Ref }
  | { readonly op: "delete"; readonly who: Who }
  /** Creates a PaymentIntent, and attempts it immediately or leaves it for later. */
  | {
      readonly op: "pay"
      readonly card: Ref
      readonly who: Who | null
      readonly future: boolean
      readonly offSession: boolean
      readonly confirm: boolean
    }
  | { readonly op: "confirm"; readonly payment: number; readonly card: Ref | null; readonly offSession: boolean }
  | { readonly op: "authenticate"; readonly payment: number; readonly outcome: "success" | "failure" }
  | { readonly op: "move"; readonly payment: number; readonly who: Who | null }

export interface ModelCard {
  readonly does: Does
  readonly who: Who | null
  readonly detached: boolean
}

export interface ModelPayment {
  readonly status: string
  readonly card: Ref | null
  readonly who: Who | null
  readonly future: boolean
  readonly charges: number
  readonly dueAt: number | null
}

export interface Model {
  readonly alive: readonly [boolean, boolean]
  readonly cards: ReadonlyArray<ModelCard>
  readonly payments: ReadonlyArray<ModelPayment>
}

export type Step = StepOf<Model>

const does = Schema.Literals(["approving", "challenging", "processing", "declining"])
const who = Schema.Literals([0, 1])
const index = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4 }))
const ref = Schema.Union([index, index, index, does])
const payment = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 }))

export const creation = Schema.Array(does).check(Schema.isMinLength(1), Schema.isMaxLength(3))

export const command = Schema.Union([
  Schema.Struct({ op: Schema.Literal("attach"), card: ref, who }),
  Schema.Struct({ op: Schema.Literal("attach"), card: ref, who }),
  Schema.Struct({ op: Schema.Literal("detach"), card: ref }),
  Schema.Struct({ op: Schema.Literal("delete"), who }),
  Schema.Struct({
    op: Schema.Literal("pay"),
    card: ref,
    who: Schema.NullOr(who),
    future: Schema.Boolean,
    offSession: Schema.Literals([false, false, true]),
    confirm: Schema.Boolean
  }),
  Schema.Struct({ op: Schema.Literal("confirm"), payment, card: Schema.NullOr(ref), offSession: Schema.Boolean }),
  Schema.Struct({
    op: Schema.Literal("authenticate"),
    payment,
    outcome: Schema.Literals(["success", "success", "failure"])
  }),
  Schema.Struct({ op: Schema.Literal("move"), payment, who: Schema.NullOr(who) })
])

export const wait = Schema.Struct({ op: Schema.Literal("wait"), millis: Schema.Literal(2000) })

/** The schema of all programs. */
export const program = Schema.Struct({
  creation,
  steps: Schema.Array(Schema.Union([command, command, wait])).check(Schema.isMaxLength(20))
})

/** The visible state, with payment methods counted from the oldest. */
export interface Seen {
  /** The customer of each payment method. */
  readonly cards: ReadonlyArray<Who | null>
  /** The payment methods of each customer, newest first; null for a deleted customer. */
  readonly held: ReadonlyArray<ReadonlyArray<number> | null>
  readonly payments: ReadonlyArray<Pick<ModelPayment, "status" | "card" | "charges">>
}

export const expected = ({ alive, cards, payments }: Model): Seen => ({
  cards: cards.map((card) => card.who),
  held: alive.map((isAlive, who) =>
    isAlive ? cards.flatMap((card, index) => (card.who === who ? [index] : [])).toReversed() : null
  ),
  payments: payments.map(({ card, charges, status }) => ({ status, card, charges }))
})

/** Returns the id of a program's payment method; a number beyond the last has an unknown id. */
export const idOf = (ids: ReadonlyArray<string>, card: Ref): string =>
  typeof card === "number" ? (ids[card] ?? "pm_000000000000000000000000") : CARDS[card].builtIn

/** Returns the model's reference for the id of a payment method. */
export const refOf = (ids: ReadonlyArray<string>, id: string | null): Ref | null => {
  if (id === null) return null
  const builtIn = (Object.keys(CARDS) as ReadonlyArray<Does>).find((does) => CARDS[does].builtIn === id)
  return builtIn ?? ids.indexOf(id)
}

export const cardDataOf = (does: Does) => ({ number: CARDS[does].number, exp_month: 12, exp_year: 2034, cvc: "123" })

/** Returns the parameters of a payment. */
export const paymentOf = (
  { card, confirm, future, offSession, who }: Extract<Command, { op: "pay" }>,
  ids: ReadonlyArray<string>,
  customers: ReadonlyArray<string>
) => ({
  amount: 5,
  currency: "usd",
  payment_method: idOf(ids, card),
  ...(who !== null && { customer: customers[who]! }),
  ...(future && { setup_future_usage: "off_session" as const }),
  ...(confirm && { confirm: true, ...(offSession && { off_session: true }) })
})

interface Known {
  readonly ids: ReadonlyArray<string>
  readonly customers: ReadonlyArray<string>
  readonly payments: ReadonlyArray<string>
}

const requestOf = ({ customers, ids, payments }: Known, command: Exclude<Command, { op: "delete" }>): WireRequest => {
  switch (command.op) {
    case "attach":
      return {
        path: `/v1/payment_methods/${idOf(ids, command.card)}/attach`,
        body: { customer: customers[command.who] }
      }
    case "detach":
      return { path: `/v1/payment_methods/${idOf(ids, command.card)}/detach`, body: {} }
    case "pay":
      return { path: "/v1/payment_intents", body: paymentOf(command, ids, customers) }
    case "confirm":
      return {
        path: `/v1/payment_intents/${payments[command.payment]}/confirm`,
        body: {
          ...(command.card !== null && { payment_method: idOf(ids, command.card) }),
          ...(command.offSession && { off_session: true })
        }
      }
    case "authenticate":
      return {
        path: `/v1/test_helpers/payment_intents/${payments[command.payment]}/authenticate`,
        body: { outcome: command.outcome }
      }
    case "move":
      return {
        path: `/v1/payment_intents/${payments[command.payment]}`,
        body: { customer: command.who === null ? null : customers[command.who] }
      }
  }
}

/** Runs programs over HTTP, with two customers. */
export const over = async (wire: Wire) => {
  const customers = [
    (await Over.post(wire, "/v1/customers", {})).id as string,
    (await Over.post(wire, "/v1/customers", {})).id as string
  ]
  let ids: ReadonlyArray<string> = []
  const payments: Array<string> = []
  const learn = (found: ReadonlyArray<string | null>) => {
    const own = found.filter((id): id is string => id?.startsWith("pm_card_") === false)
    ids = [...new Set([...ids, ...own])].toSorted()
  }
  const heldBy = async (customer: string): Promise<ReadonlyArray<number> | null> => {
    const listed = (path: string) => wire.request("GET", path)
    const replies = [
      await listed(`/v1/customers/${customer}/payment_methods?limit=100`),
      await listed(`/v1/payment_methods?limit=100&customer=${customer}`)
    ]
    const [held, same] = replies.map(({ body, status }: Reply) =>
      status === 404 ? null : body.data.map(({ id }: Over.Json) => ids.indexOf(id))
    )
    if (JSON.stringify(held) !== JSON.stringify(same)) throw new Error(`${held} and ${same} are held by ${customer}`)
    return held
  }
  return Over.driver<Creation, Command, Seen>(
    wire,
    {
      create: async (sent) => {
        for (const does of sent) {
          const card = await Over.post(wire, "/v1/payment_methods", { type: "card", card: cardDataOf(does) })
          learn([card.id])
        }
        return "ok"
      },
      run: async (command) => {
        if (command.op === "delete") {
          return Over.answerOf(await wire.request("DELETE", `/v1/customers/${customers[command.who]}`))
        }
        const { body, path } = requestOf({ ids, customers, payments }, command)
        const reply = await wire.request("POST", path, body)
        const object = reply.body.error?.payment_intent ?? reply.body
        if (command.op === "pay" && object.id !== undefined) payments.push(object.id)
        if (command.op === "attach" && reply.status === 200) learn([object.id])
        return Over.answerOf(reply)
      },
      seen: async () => {
        const intents: Array<Over.Json> = []
        for (const id of payments) intents.push(await Over.get(wire, `/v1/payment_intents/${id}`))
        learn(intents.map(({ payment_method }) => payment_method))
        const cards: Array<Who | null> = []
        for (const id of ids) {
          const { customer } = await Over.get(wire, `/v1/payment_methods/${id}`)
          cards.push(customer === null ? null : (customers.indexOf(customer) as Who))
        }
        return {
          cards,
          held: [await heldBy(customers[0]!), await heldBy(customers[1]!)],
          payments: intents.map(({ charges, payment_method, status }) => ({
            status,
            card: refOf(ids, payment_method),
            charges: charges.data.length
          }))
        }
      }
    },
    () => 2
  )
}

const create = (sent: Creation): Step => ({
  after: {
    alive: [true, true],
    cards: sent.map((does) => ({ does, who: null, detached: false })),
    payments: []
  },
  answer: "ok",
  events: []
})

const refused = (after: Model, answer: string): Step => ({ after, answer, events: [] })

/** Returns the state of a card; a built-in one is always free. */
const cardOf = ({ cards }: Model, card: Ref): ModelCard | undefined =>
  typeof card === "number" ? cards[card] : { does: card, who: null, detached: false }

const isAlive = ({ alive }: Model, who: Who | null): boolean => who === null || alive[who]

const apply = (before: Model, command: Command, now: number): Step => {
  switch (command.op) {
    case "attach":
      return attach(before, command.card, command.who)
    case "detach": {
      const card = cardOf(before, command.card)
      if (card === undefined) return refused(before, "resource_missing id")
      if (card.who === null) return refused(before, "parameter_invalid id")
      return { after: detach(before, command.card as number), answer: "ok", events: ["payment_method.detached"] }
    }
    case "delete":
      return remove(before, command.who)
    case "pay":
      return pay(before, command, now)
    case "confirm":
      return confirm(before, command, now)
    case "authenticate":
      return authenticate(before, command.payment, command.outcome)
    case "move": {
      const { status } = before.payments[command.payment]!
      if (!isAlive(before, command.who)) return refused(before, "resource_missing customer")
      if (!OPEN.includes(status)) return refused(before, `payment_intent_unexpected_state ${status}`)
      const { future } = before.payments[command.payment]!
      if (future && command.who === null) return refused(before, "parameter_missing customer")
      const after = status === "requires_action" ? "requires_confirmation" : status
      return {
        after: withPayment(before, command.payment, { who: command.who, status: after }),
        answer: "ok",
        events: []
      }
    }
  }
}

const attach = (before: Model, ref: Ref, who: Who): Step => {
  const card = cardOf(before, ref)
  if (card === undefined) return refused(before, "resource_missing id")
  if (!isAlive(before, who)) return refused(before, "resource_missing customer")
  if (card.who === who) return { after: before, answer: "ok", events: [] }
  if (card.who !== null) return refused(before, "resource_in_use id")
  if (card.detached) return refused(before, "parameter_invalid id")
  const held = { ...card, who }
  const cards =
    typeof ref === "number" ? before.cards.map((one, index) => (index === ref ? held : one)) : [...before.cards, held]
  return { after: { ...before, cards }, answer: "ok", events: ["payment_method.attached"] }
}

const detach = (before: Model, ref: number): Model => ({
  ...before,
  cards: before.cards.map((card, index) => (index === ref ? { ...card, who: null, detached: true } : card))
})

const remove = (before: Model, who: Who): Step => {
  if (!before.alive[who]) return refused(before, "resource_missing id")
  const held = before.cards.flatMap((card, index) => (card.who === who ? [index] : []))
  const alive = [who !== 0 && before.alive[0], who !== 1 && before.alive[1]] as const
  return {
    after: { ...held.reduce(detach, before), alive },
    answer: "ok",
    events: [...held.map(() => "payment_method.detached"), "customer.deleted"]
  }
}

const OPEN: ReadonlyArray<string> = ["requires_payment_method", "requires_confirmation", "requires_action"]

const withPayment = (before: Model, at: number, changes: Partial<ModelPayment>): Model => ({
  ...before,
  payments: before.payments.map((payment, index) => (index === at ? { ...payment, ...changes } : payment))
})

const pay = (before: Model, sent: Extract<Command, { op: "pay" }>, now: number): Step => {
  if (!isAlive(before, sent.who)) return refused(before, "resource_missing customer")
  if (cardOf(before, sent.card) === undefined) return refused(before, "resource_missing payment_method")
  if (sent.future && sent.who === null) return refused(before, "parameter_missing customer")
  const { card, future, who } = sent
  const payment = { status: "requires_confirmation", card, who, future, charges: 0, dueAt: null }
  const created = { ...before, payments: [...before.payments, payment] }
  const events = ["payment_intent.created"]
  if (!sent.confirm) return { after: created, answer: "ok", events }
  const step = attempt(created, before.payments.length, card, sent.offSession, now)
  if (step.after === created) return refused(before, step.answer)
  return { ...step, events: [...events, ...step.events] }
}

const confirm = (before: Model, sent: Extract<Command, { op: "confirm" }>, now: number): Step => {
  const payment = before.payments[sent.payment]!
  if (sent.card !== null && cardOf(before, sent.card) === undefined) {
    return refused(before, "resource_missing payment_method")
  }
  if (!OPEN.includes(payment.status)) return refused(before, `payment_intent_unexpected_state ${payment.status}`)
  const card = sent.card ?? payment.card
  if (card === null) return refused(before, "payment_intent_unexpected_state payment_method")
  return attempt(before, sent.payment, card, sent.offSession, now)
}

/**
 * Returns whether a payment can use a card: one without a customer or of the payment's customer, and not detached
 * (semantics payment_intents.customer).
 */
const isUsable = (model: Model, ref: Ref, who: Who | null): boolean => {
  const card = cardOf(model, ref)!
  return !card.detached && (card.who === null || card.who === who)
}

const attempt = (before: Model, at: number, ref: Ref, offSession: boolean, now: number): Step => {
  const payment = before.payments[at]!
  if (!isUsable(before, ref, payment.who)) return refused(before, "parameter_invalid payment_method")
  const attempted = withPayment(before, at, { card: ref })
  switch (cardOf(before, ref)!.does) {
    case "approving":
      return approve(attempted, at, 1)
    case "declining":
      return decline(attempted, at, "generic_decline")
    case "processing":
      return {
        after: withPayment(attempted, at, { status: "processing", charges: payment.charges + 1, dueAt: now + 2000 }),
        answer: "ok",
        events: ["charge.pending", "payment_intent.processing"]
      }
    case "challenging":
      if (offSession) return decline(attempted, at, "authentication_required")
      return {
        after: withPayment(attempted, at, { status: "requires_action" }),
        answer: "ok",
        events: ["payment_intent.requires_action"]
      }
  }
}

const decline = (before: Model, at: number, code: string): Step => ({
  after: withPayment(before, at, {
    status: "requires_payment_method",
    card: null,
    charges: before.payments[at]!.charges + 1
  }),
  answer: `declined ${code}`,
  events: ["charge.failed", "payment_intent.payment_failed"]
})

/** Approves the payment and attaches its card, if requested and possible. */
const approve = (before: Model, at: number, newCharges: 0 | 1): Step => {
  const { card, charges, future, who } = before.payments[at]!
  const saved = future && who !== null ? attach(before, card!, who) : refused(before, "")
  const isCopied = saved.after.cards.length > before.cards.length
  return {
    after: withPayment(saved.after, at, {
      status: "succeeded",
      card: isCopied ? before.cards.length : card,
      charges: charges + newCharges,
      dueAt: null
    }),
    answer: "ok",
    events: [...saved.events, "charge.succeeded", "payment_intent.succeeded"]
  }
}

const authenticate = (before: Model, at: number, answered: "success" | "failure"): Step => {
  const { card, status, who } = before.payments[at]!
  if (status !== "requires_action") return refused(before, `payment_intent_unexpected_state ${status}`)
  if (answered === "success" && isUsable(before, card!, who)) return approve(before, at, 1)
  return {
    after: withPayment(before, at, { status: "requires_payment_method", card: null }),
    answer: "ok",
    events: ["payment_intent.payment_failed"]
  }
}

const timePasses = (before: Model, now: number): Step | undefined => {
  const at = before.payments.findIndex(({ dueAt }) => dueAt !== null && dueAt <= now)
  return at === -1 ? undefined : approve(before, at, 0)
}

const PAYMENTS_MAX = 4

/** Allows one processing payment at a time, because the order of two settlements is not defined. */
const applies = (model: Model, command: Command): boolean => {
  if ("payment" in command && command.payment >= model.payments.length) return false
  if (command.op === "pay" && model.payments.length >= PAYMENTS_MAX) return false
  const { payments } = apply(model, command, 0).after
  return payments.filter(({ status }) => status === "processing").length <= 1
}

const stateOf = ({ detached, who }: ModelCard): string => (detached ? "detached" : who === null ? "free" : "attached")

/** The state table. */
export const table: Table<Creation, Command, Model, Seen> = {
  create,
  apply,
  timePasses,
  expected,
  applies,
  nameOf: ({ cards }) => stateOf(cards[0]!)
}
