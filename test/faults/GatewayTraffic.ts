/**
 * Clients of a merchant whose payments go through a gateway: they pay, hold, capture, cancel and refund, and repeat
 * each request under its key until it has an answer that counts.
 */
import type { Answer } from "../support/HttpExchange.ts"
import { Random } from "../support/SeededRandom.ts"
import { pause } from "../support/TillProcess.ts"
import type { Finding } from "./Finding.ts"
import { answerOf, type Destination, show } from "./Traffic.ts"

export interface Deed {
  readonly key: string
  readonly kind: "pay" | "hold" | "capture" | "cancel" | "refund"
  readonly path: string
  readonly body: object
  /** The answer that counts; undefined for a request that another operation has kept from its turn. */
  answer: Answer | undefined
}

export interface GatewayTrafficOptions {
  readonly seed: number
  readonly apiKey: string
  readonly exchange: Destination
}

const CLIENTS = 24
const THINK_MILLIS_MAX = 60
const RETRY_MILLIS = 250
const TOKENS = ["tok_approve", "tok_approve", "tok_approve", "tok_approve", "tok_decline", "tok_pending"]

export class GatewayTraffic {
  readonly deeds: Array<Deed> = []
  readonly problems: Array<Finding> = []
  /** Answers 5xx and 429, requests without an answer, and refusals for another operation. */
  unavailable = 0
  lost = 0
  inProgress = 0
  readonly #options: GatewayTrafficOptions
  readonly #random: Random
  /** Amounts of payments that are held, and of those that are paid. */
  readonly #held = new Map<string, number>()
  readonly #paid = new Map<string, number>()
  #watchers: Array<{ readonly since: number; readonly settle: (at: number) => void }> = []
  #isOver = true
  #isSettled = false
  #working: Promise<unknown> | undefined

  constructor(options: GatewayTrafficOptions) {
    this.#options = options
    this.#random = new Random(options.seed)
  }

  get answered(): number {
    return this.deeds.filter(({ answer }) => answer !== undefined).length
  }

  start(): void {
    this.#isOver = false
    this.#isSettled = false
    this.#working = Promise.all(Array.from({ length: CLIENTS }, () => this.#work()))
  }

  /** Ends the work. Requests without an answer are repeated until they have one, or the time is over. */
  async stop(millisMax: number): Promise<void> {
    this.#isOver = true
    const timer = setTimeout(() => (this.#isSettled = true), millisMax)
    await this.#working
    clearTimeout(timer)
  }

  /** Lets the clients get a number of further answers, for some time at most. */
  async work(requests: number, millisMax = 30_000): Promise<void> {
    const [enough, end] = [this.answered + requests, performance.now() + millisMax]
    while (this.answered < enough && performance.now() < end) await pause(20)
  }

  /** Returns when the first request sent after a moment was answered; undefined after `millisMax`. */
  acknowledgedAfter(since: number, millisMax: number): Promise<number | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(undefined), millisMax)
      this.#watchers.push({ since, settle: (at) => (clearTimeout(timer), resolve(at)) })
    })
  }

  /** Sends a request again under its key. */
  repeat({ body, key, path }: Deed): Promise<Answer | undefined> {
    const { apiKey, exchange } = this.#options
    return answerOf(exchange, "POST", path, { key: apiKey, body, idempotencyKey: key })
  }

  async #work(): Promise<void> {
    while (!this.#isOver) {
      const deed = this.#next()
      this.deeds.push(deed)
      while (!this.#isSettled && !(await this.#attempt(deed))) await pause(RETRY_MILLIS)
      await pause(this.#random.integer(0, THINK_MILLIS_MAX))
    }
  }

  #next(): Deed {
    const random = this.#random
    const made = (kind: Deed["kind"], path: string, body: object): Deed => {
      const key = `gateway-${this.#options.seed}-${this.deeds.length + 1}`
      return { key, kind, path: `/v1/${path}`, body, answer: undefined }
    }
    const choice = random.next()
    const held = [...this.#held.keys()]
    if (choice < 0.25 && held.length > 0) {
      const id = random.pick(held)
      const amount = this.#held.get(id)!
      this.#held.delete(id)
      const path = `payment_intents/${id}`
      return choice < 0.19
        ? made("capture", `${path}/capture`, { amount_to_capture: random.integer(1, amount) })
        : made("cancel", `${path}/cancel`, {})
    }
    const paid = [...this.#paid.keys()]
    if (choice < 0.5 && paid.length > 0) {
      const id = random.pick(paid)
      return made("refund", "refunds", {
        payment_intent: id,
        amount: random.integer(1, Math.ceil(this.#paid.get(id)! / 4))
      })
    }
    const isHeld = random.chance(0.4)
    return made(isHeld ? "hold" : "pay", "payment_intents", {
      amount: random.integer(100, 9999),
      currency: "eur",
      confirm: true,
      capture_method: isHeld ? "manual" : "automatic",
      payment_method_data: { type: "card", token: isHeld ? "tok_approve" : random.pick(TOKENS) }
    })
  }

  /** Returns true if nothing is left to do for a request. */
  async #attempt(deed: Deed): Promise<boolean> {
    const sentAt = performance.now()
    const answer = await this.repeat(deed)
    if (answer === undefined) this.lost++
    else if (answer.status >= 500 || answer.status === 429) this.unavailable++
    else if (answer.body?.error?.code === "idempotency_key_in_use") this.unavailable++
    else {
      this.#answered(deed, sentAt, answer)
      return true
    }
    return false
  }

  #answered(deed: Deed, sentAt: number, answer: Answer): void {
    const now = performance.now()
    this.#watchers = this.#watchers.filter(({ settle, since }) => {
      if (sentAt < since) return true
      settle(now)
      return false
    })
    if (answer.body?.error?.code === "operation_in_progress") return void this.inProgress++
    deed.answer = answer
    const { body, status } = answer
    if (status === 200 && body.status === "succeeded" && body.object === "payment_intent")
      this.#paid.set(body.id, body.amount_received)
    // A capture without an outcome yet shows the payment as it was before.
    const isHeld = status === 200 && body.status === "requires_capture" && body.pending_operation === undefined
    if (isHeld) this.#held.set(body.id, body.amount_capturable)
    const isExpected = status === 200 || (status === 402 && deed.kind === "pay") || isRefusal(deed, answer)
    if (!isExpected) this.problems.push({ kind: "wrong", text: `${deed.key} ${deed.kind}: ${show(answer)}` })
  }
}

/** Returns true for a refusal that the payment's state explains. Refunds of a payment may exceed what is left. */
const isRefusal = ({ kind }: Deed, { body, status }: Answer): boolean =>
  kind === "refund" && status === 400 && ["amount_too_large", "charge_already_refunded"].includes(body?.error?.code)
