/**
 * Merchants' servers at work: many clients that carry programs out on their PaymentIntents, step by step and several at
 * once, remember every answer, and repeat a request whose answer was lost, with the same key, before they do anything
 * else.
 *
 * The programs and the table that judges every answer are those of test/models. Each client changes only its own
 * objects, so it knows their exact state after every answer. A few PaymentIntents are everybody's: there, the final
 * state must be one that somebody was told.
 */
import { Arbitrary, Effect } from "effect"
import { isDeepStrictEqual } from "node:util"
import * as PaymentIntents from "../models/PaymentIntents.ts"
import type { Step } from "../models/Program.ts"
import { isRefusal } from "../models/Program.ts"
import type { Json } from "../models/Wire.ts"
import { answerOf } from "../models/Wire.ts"
import type { Answer } from "./HttpExchange.ts"
import { HttpExchange, Lost } from "./HttpExchange.ts"
import { Random } from "./Random.ts"
import { pause } from "./TillProcess.ts"

/** A POST, sent until it has an answer. */
export interface Deed {
  readonly idempotencyKey: string
  readonly path: string
  readonly body: object
  readonly judge: (answer: Answer) => Judgement
  answer: Answer | undefined
  /** Types of the events that it must have emitted. */
  events: ReadonlyArray<string>
}

/** The events that an answer stands for, or, as text, what is wrong with it. */
type Judgement = ReadonlyArray<string> | string

/** A PaymentIntent of a client, and what is still to be done to it. */
interface Payment {
  model: PaymentIntents.Model
  readonly commands: Array<PaymentIntents.Command>
}

/** Whether a repetition gets the answer again; what was not executed leaves its key free (semantics I9, I10). */
export const isKept = ({ body, status }: Answer): boolean =>
  status === 200 || !["parameter_invalid", "processor_unavailable"].includes(body.error.code)

const PROGRAMS = 40

const programsFrom = (seed: number) =>
  Effect.runSync(
    Effect.orDie(Arbitrary.sampleEffect(Arbitrary.schema(PaymentIntents.program), { count: PROGRAMS, size: 16, seed }))
  )

const NO_USAGE = { future: null, offSession: false }

const SHARED: PaymentIntents.Creation = {
  amount: 500,
  capture: "automatic",
  confirmation: "automatic",
  customer: false,
  card: null,
  inline: false,
  confirm: false,
  ...NO_USAGE
}
/** What everybody changes is in no known state, but an operation that succeeds emits the same from any. */
const anyModel = PaymentIntents.table.create(SHARED, 0).after!

/** Everything that was sent and answered, by all clients. */
export class Traffic {
  readonly http: HttpExchange
  readonly deeds: Array<Deed> = []
  /** Violations that show while the traffic runs. */
  readonly violations: Array<string> = []
  /** PaymentIntents that every client changes, with all states that anybody was told. */
  readonly shared = new Map<string, Set<string>>()
  readonly clients: ReadonlyArray<TrafficClient>
  /** Answers 503, and answers that never came. */
  unavailable = 0
  lost = 0
  #keys = 0
  readonly #seed: number

  constructor(http: HttpExchange, seed: number, clients = 32) {
    this.http = http
    this.#seed = seed
    this.clients = Array.from({ length: clients }, (_, i) => new TrafficClient(this, seed * 1009 + i, i))
  }

  newDeed(path: string, body: object, judge: Deed["judge"]): Deed {
    const idempotencyKey = `traffic-${this.#seed}-${++this.#keys}`
    const deed: Deed = { idempotencyKey, path, body, judge, answer: undefined, events: [] }
    this.deeds.push(deed)
    return deed
  }

  /** All clients work until `isOver`; those that give up do so when a request has no answer. */
  async run(isOver: () => boolean, options: { readonly givingUp?: boolean } = {}): Promise<void> {
    await Promise.all(this.clients.map((client) => client.work(isOver, options.givingUp === true)))
  }

  /** Requests without an answer. */
  get open(): ReadonlyArray<Deed> {
    return this.deeds.filter(({ answer }) => answer === undefined)
  }

  /** Every lost answer is fetched with its key; false if that cannot be done yet. */
  async settle(): Promise<boolean> {
    const settled = await Promise.all(this.clients.map((client) => client.settle()))
    return settled.every(Boolean)
  }
}

/** The PaymentIntent in an answer: the object itself, or what a decline shows. */
export const paymentIntentIn = (answer: Answer): Json =>
  answer.status === 200 && answer.body.object === "payment_intent"
    ? answer.body
    : answer.status === 402
      ? answer.body.error.payment_intent
      : undefined

export class TrafficClient {
  /** Exact text of the newest state of each of this client's objects. */
  readonly states = new Map<string, Json>()
  customer: string | undefined
  /** PaymentIntents of the current customer, oldest first. */
  payments: Array<string> = []
  #pending: Deed | undefined
  #number = 0
  readonly #own = new Map<string, Payment>()
  readonly #programs: ReturnType<typeof programsFrom>
  readonly #traffic: Traffic
  readonly #random: Random
  readonly #name: string

  constructor(traffic: Traffic, seed: number, index: number) {
    this.#traffic = traffic
    this.#random = new Random(seed)
    this.#programs = programsFrom(seed)
    this.#name = `client ${index}`
  }

  async work(isOver: () => boolean, givingUp: boolean): Promise<void> {
    while (!isOver()) {
      if (await this.#step()) continue
      if (givingUp) return
      await pause(25)
    }
  }

  /** Sends one request; false if there was no answer. */
  async #step(): Promise<boolean> {
    if (this.#pending !== undefined) return this.settle()
    const deed = this.#choose()
    return deed === undefined ? this.#look() : this.#carryOut(deed)
  }

  /** Sends an open request again, once. True if none is open afterwards. */
  async settle(): Promise<boolean> {
    return this.#pending === undefined || this.#attempt(this.#pending)
  }

  async #carryOut(deed: Deed): Promise<boolean> {
    this.#pending = deed
    if (!this.#random.chance(0.05)) return this.#attempt(deed)
    // The same request twice at once: one is carried out, the other gets its answer.
    const [one, other] = await Promise.all([this.#send(deed), this.#send(deed)])
    if (one !== undefined && other !== undefined && (one.text !== other.text || one.status !== other.status)) {
      this.#violation(`twins of ${deed.idempotencyKey} differ: ${one.text} / ${other.text}`)
    }
    const answer = one ?? other
    if (answer !== undefined) this.#answered(deed, answer)
    return answer !== undefined
  }

  async #attempt(deed: Deed): Promise<boolean> {
    const answer = await this.#send(deed)
    if (answer !== undefined) this.#answered(deed, answer)
    return answer !== undefined
  }

  /** The answer, or undefined if nobody knows what became of the request. */
  async #send({ body, idempotencyKey, path }: Deed): Promise<Answer | undefined> {
    return this.#exchange("POST", path, { body, idempotencyKey })
  }

  async #exchange(...request: Parameters<HttpExchange["request"]>): Promise<Answer | undefined> {
    try {
      const answer = await this.#traffic.http.request(...request)
      if (answer.status !== 503) return answer
      this.#traffic.unavailable++
      if (answer.headers["retry-after"] === undefined || answer.body.error.code !== "service_unavailable") {
        this.#violation(`503 without Retry-After: ${answer.text}`)
      }
    } catch (error) {
      if (!(error instanceof Lost)) throw error
      this.#traffic.lost++
    }
    return undefined
  }

  #answered(deed: Deed, answer: Answer): void {
    this.#pending = undefined
    deed.answer = answer
    const judgement = deed.judge(answer)
    if (typeof judgement === "string") {
      const sent = `POST ${deed.path} ${JSON.stringify(deed.body)}`
      return this.#violation(`${sent} answered ${answer.status} ${answer.text}: ${judgement}`)
    }
    deed.events = judgement
    if (isRefusal(answerOf(answer))) return
    const paymentIntent = paymentIntentIn(answer)
    if (paymentIntent === undefined) return this.#rememberCustomer(answer.body)
    const { id } = paymentIntent
    const told = this.#traffic.shared.get(id)
    if (told !== undefined) return void told.add(JSON.stringify(paymentIntent))
    if (!this.states.has(id)) this.payments.push(id)
    this.states.set(id, paymentIntent)
  }

  #rememberCustomer(customer: Json): void {
    if (customer.object !== "customer") return this.#violation(`not a customer: ${JSON.stringify(customer)}`)
    if (customer.id !== this.customer && !this.states.has(customer.id)) {
      this.customer = customer.id
      this.payments = []
    }
    this.states.set(customer.id, customer)
  }

  /** Chooses the next deed; undefined means to read. */
  #choose(): Deed | undefined {
    const random = this.#random
    const text = `${this.#name} ${++this.#number}`
    if (this.customer === undefined || this.payments.length >= 30) {
      return this.#traffic.newDeed("/v1/customers", { name: text }, succeeded("customer.created"))
    }
    const kind = random.next()
    if (kind < 0.15) return undefined
    if (kind < 0.2) {
      const path = `/v1/customers/${this.customer}`
      return this.#traffic.newDeed(path, { description: text }, succeeded("customer.updated"))
    }
    if (kind < 0.25 && this.#traffic.shared.size > 0) return this.#changeShared()
    if (kind < 0.4 || this.payments.length === 0) return this.#createPayment(text)
    return this.#changePayment(random.pick(this.payments))
  }

  #createPayment(description: string): Deed {
    const { creation, steps } = this.#programs[this.#number % this.#programs.length]!
    const own = { ...creation, customer: true }
    const { body, path } = PaymentIntents.creationRequest(own, this.customer!)
    const step = PaymentIntents.table.create(own, 0)
    return this.#traffic.newDeed(path, { ...body, description }, (answer) => {
      if (!("events" in step)) return answerIs(step.answer, answer) ?? []
      const after = { ...step.after, description }
      const judgement = judge({ ...step, after }, answer)
      const commands = steps.filter((step) => step.op !== "wait")
      if (typeof judgement !== "string") this.#own.set(paymentIntentIn(answer).id, { model: after, commands })
      return judgement
    })
  }

  /** The next command of a payment's program; what settles by itself is left alone until it has. */
  #changePayment(id: string): Deed | undefined {
    const payment = this.#own.get(id)!
    const next = this.states.get(id).status === "processing" ? undefined : payment.commands.shift()
    if (next === undefined) return undefined
    // The lists that are compared are those of the customer whom the payment was made for.
    const command = next.op === "update" ? { ...next, customer: null } : next
    const { body, path } = PaymentIntents.requestOf(id, null, command)
    return this.#traffic.newDeed(path, body, (answer) => {
      const step = PaymentIntents.table.apply(payment.model, command, 0, SHARED)
      payment.model = step.after
      return judge(step, answer)
    })
  }

  #changeShared(): Deed {
    const id = this.#random.pick([...this.#traffic.shared.keys()])
    const command = this.#random.pick<PaymentIntents.Command>([
      { op: "confirm", card: "pm_card_declined", inline: false, ...NO_USAGE },
      { op: "confirm", card: "pm_card_visa", inline: false, ...NO_USAGE },
      { op: "cancel", reason: null }
    ])
    const { body, path } = PaymentIntents.requestOf(id, null, command)
    const step = PaymentIntents.table.apply(anyModel, command, 0, SHARED)
    return this.#traffic.newDeed(path, body, (answer) =>
      answerOf(answer).startsWith("payment_intent_unexpected_state ")
        ? []
        : (answerIs(step.answer, answer) ?? step.events)
    )
  }

  /** Reads one of the own objects, or the list of them. False if there was no answer. */
  async #look(): Promise<boolean> {
    if (this.payments.length === 0 || this.#random.chance(0.4)) return this.#lookAtList()
    const id = this.#random.pick(this.payments)
    const answer = await this.#exchange("GET", `/v1/payment_intents/${id}`)
    if (answer !== undefined) this.#compare(id, answer.status === 200 ? answer.body : answer.text)
    return answer !== undefined
  }

  async #lookAtList(): Promise<boolean> {
    const answer = await this.#exchange("GET", `/v1/payment_intents?limit=100&customer=${this.customer}`)
    if (answer === undefined) return false
    if (answer.status !== 200) this.#violation(`a list answered ${answer.status} ${answer.text}`)
    else this.compareList(answer.body.data)
    return true
  }

  /** A list of the current customer's PaymentIntents, which nobody else changes. */
  compareList(listed: ReadonlyArray<Json>): void {
    const ids = listed.map(({ id }) => id).toReversed()
    if (JSON.stringify(ids) !== JSON.stringify(this.payments)) {
      return this.#violation(`the list of ${this.customer} is ${ids.join()}, not ${this.payments.join()}`)
    }
    for (const payment of listed) this.#compare(payment.id, payment)
  }

  #compare(id: string, actual: Json): void {
    const problem = this.differs(id, actual)
    if (problem !== undefined) return this.#violation(problem)
    const payment = this.#own.get(id)
    if (payment?.model.status === "processing" && actual.status !== "processing") payment.model = settled(payment.model)
    this.states.set(id, actual)
  }

  /** What is wrong with a state, given the last one that was told; time may have settled a payment meanwhile. */
  differs(id: string, actual: Json): string | undefined {
    const told = this.states.get(id)
    if (JSON.stringify(told) === JSON.stringify(actual)) return undefined
    const model = this.#own.get(id)?.model
    if (model?.status === "processing" && unlike(settled(model), actual) === undefined) return undefined
    return `${told?.id} is ${differing(actual, told)}, but the service had answered ${differing(told, actual)}`
  }

  #violation(text: string): void {
    this.#traffic.violations.push(`${this.#name}: ${text}`)
  }
}

const succeeded =
  (...events: ReadonlyArray<string>): Deed["judge"] =>
  (answer) =>
    answerIs("ok", answer) ?? events

const answerIs = (wanted: string, answer: Answer): string | undefined =>
  answerOf(answer) === wanted ? undefined : `the table says ${wanted}`

/** Holds an answer, and the object in it, against the table. */
const judge = (step: Step<PaymentIntents.Model>, answer: Answer): Judgement => {
  const wrong = answerIs(step.answer, answer)
  if (wrong !== undefined) return wrong
  return isRefusal(step.answer) ? [] : (unlike(step.after, paymentIntentIn(answer)) ?? step.events)
}

/** Describes how a PaymentIntent is not what the table says; of many charges it shows the newest only. */
const unlike = (model: PaymentIntents.Model, actual: Json): string | undefined => {
  const seen = PaymentIntents.seenOf(actual, actual.charges.data.toReversed())
  const expected = PaymentIntents.expected({ ...model, charges: model.charges.slice(-10) })
  return isDeepStrictEqual(seen, expected) ? undefined : `the table says ${differing(expected, seen)}`
}

/** Gives a payment that is processing the state that it settles in. */
const settled = (model: PaymentIntents.Model): PaymentIntents.Model =>
  PaymentIntents.table.timePasses(model, model.dueAt!, SHARED)!.after

/** The parts of a state that differ from another one. */
const differing = (state: Json, other: Json): string =>
  typeof state !== "object" || typeof other !== "object"
    ? JSON.stringify(state)
    : JSON.stringify(
        Object.fromEntries(
          Object.entries(state).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(other[name]))
        )
      )
