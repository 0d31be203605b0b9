/**
 * Merchants' servers at work: many clients that do random things one after the other, remember every answer, and repeat
 * a request whose answer was lost, with the same key, before they do anything else.
 *
 * Each client changes only its own objects, so it knows their exact state after every answer. A few PaymentIntents are
 * everybody's: there, the final state must be one that somebody was told.
 */
import type { Answer } from "./HttpExchange.ts"
import { HttpExchange, Lost } from "./HttpExchange.ts"
import { Random } from "./Random.ts"
import { pause } from "./TillProcess.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- whatever the service answered
export type Json = any

/** A POST, sent until it has an answer. */
export interface Deed {
  readonly idempotencyKey: string
  readonly path: string
  readonly body: object
  answer: Answer | undefined
}

const CARDS = [
  "pm_card_visa",
  "pm_card_visa",
  "pm_card_mastercard",
  "pm_card_declined",
  "pm_card_insufficient_funds",
  "pm_card_3ds_required",
  "pm_card_processing_success",
  "pm_card_processing_failure"
]

/** Answers of requests that were carried out; everything else a client of ours must never get. */
const EXPECTED: Readonly<Record<number, ReadonlyArray<string>>> = {
  400: ["payment_intent_unexpected_state"],
  402: ["card_declined"]
}

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
    this.clients = Array.from({ length: clients }, (_, i) => new TrafficClient(this, new Random(seed * 1009 + i), i))
  }

  newDeed(path: string, body: object): Deed {
    const deed: Deed = { idempotencyKey: `traffic-${this.#seed}-${++this.#keys}`, path, body, answer: undefined }
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
  readonly #traffic: Traffic
  readonly #random: Random
  readonly #name: string

  constructor(traffic: Traffic, random: Random, index: number) {
    this.#traffic = traffic
    this.#random = random
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
    const { status } = answer
    if (status !== 200) {
      if (EXPECTED[status]?.includes(answer.body.error.code) !== true) {
        return this.#violation(`POST ${deed.path} ${JSON.stringify(deed.body)} answered ${status} ${answer.text}`)
      }
      if (status === 400) return
    }
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
      return this.#traffic.newDeed("/v1/customers", { name: text })
    }
    const kind = random.next()
    if (kind < 0.15) return undefined
    if (kind < 0.2) return this.#traffic.newDeed(`/v1/customers/${this.customer}`, { description: text })
    if (kind < 0.25 && this.#traffic.shared.size > 0) return this.#changeShared()
    if (kind < 0.55 || this.payments.length === 0) return this.#createPayment(text)
    return this.#changePayment(this.states.get(random.pick(this.payments)), text)
  }

  #createPayment(description: string): Deed {
    const random = this.#random
    return this.#traffic.newDeed("/v1/payment_intents", {
      amount: random.integer(1, 100_000),
      currency: "usd",
      customer: this.customer,
      description,
      ...(random.chance(0.3) && { capture_method: "manual" }),
      ...(random.chance(0.6) && { payment_method: random.pick(CARDS), confirm: random.chance(0.7) })
    })
  }

  #changePayment(payment: Json, description: string): Deed | undefined {
    const random = this.#random
    const path = `/v1/payment_intents/${payment.id}`
    const change = (operation: string, body: object) => this.#traffic.newDeed(`${path}${operation}`, body)
    switch (payment.status) {
      case "processing":
        return undefined
      case "requires_action":
        if (random.chance(0.7)) {
          const helper = `/v1/test_helpers/payment_intents/${payment.id}/authenticate`
          return this.#traffic.newDeed(helper, { outcome: random.pick(["success", "failure"]) })
        }
        break
      case "requires_capture":
        if (random.chance(0.6)) return change("/capture", { amount_to_capture: random.integer(1, payment.amount) })
        break
      default:
    }
    return random.pick([
      () => change("/confirm", { payment_method: random.pick(CARDS) }),
      () => change("/cancel", { cancellation_reason: "abandoned" }),
      () => change("", { description, metadata: { changed_by: description } })
    ])()
  }

  #changeShared(): Deed {
    const path = `/v1/payment_intents/${this.#random.pick([...this.#traffic.shared.keys()])}`
    return this.#random.pick([
      () => this.#traffic.newDeed(`${path}/confirm`, { payment_method: "pm_card_declined" }),
      () => this.#traffic.newDeed(`${path}/confirm`, { payment_method: "pm_card_visa" }),
      () => this.#traffic.newDeed(`${path}/cancel`, {})
    ])()
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
    const problem = difference(this.states.get(id), actual)
    if (problem === undefined) this.states.set(id, actual)
    else this.#violation(problem)
  }

  #violation(text: string): void {
    this.#traffic.violations.push(`${this.#name}: ${text}`)
  }
}

/** Describes how a state contradicts the last one that a client was told. Time may have settled a payment meanwhile. */
export const difference = (told: Json, actual: Json): string | undefined => {
  const before = JSON.stringify(told)
  const after = JSON.stringify(actual)
  if (before === after) return undefined
  const problem = `${told?.id} is ${differing(actual, told)}, but the service had answered ${differing(told, actual)}`
  if (told.status !== "processing" || actual.id !== told.id) return problem
  const settled = told.payment_method === "pm_card_processing_success" ? approved(told) : ["requires_payment_method"]
  const same = actual.amount === told.amount && actual.description === told.description
  return settled.includes(actual.status) && same && actual.charges.data.length === told.charges.data.length
    ? undefined
    : problem
}

/** The parts of a state that differ from another one. */
const differing = (state: Json, other: Json): string =>
  typeof state !== "object" || typeof other !== "object"
    ? JSON.stringify(state)
    : JSON.stringify(
        Object.fromEntries(
          Object.entries(state).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(other[name]))
        )
      )

const approved = (payment: Json) => [payment.capture_method === "manual" ? "requires_capture" : "succeeded"]
