/** A customer with texts that occur nowhere else, who pays at a virtual gateway until its data is erased. */
import { assert } from "@effect/vitest"
import type { Customer } from "../../src/domain/Customer.ts"
import type { PaymentIntent } from "../../src/domain/PaymentIntent.ts"
import { parseJson } from "../../src/json/JsonParse.ts"
import { type Token, TOKENS } from "../models/Operations.ts"
import type { GatewayFleet } from "./GatewayFleet.ts"
import { isKept, isOpen } from "./Shop.ts"
import type { Answer, Request } from "./Process.ts"

const STEPS = ["update", "pay", "pay", "payer", "refund", "change", "list"] as const

export class Buyer {
  id = ""
  readonly texts: Array<string> = []
  /** Requests whose answers are kept under their keys. */
  readonly kept: Array<Request> = []
  readonly #name: string
  readonly #started: GatewayFleet
  readonly #payments: Array<string> = []
  #requests = 0

  constructor(name: string, started: GatewayFleet) {
    this.#name = name
    this.#started = started
  }

  /** Returns a new text. */
  #text(): string {
    const text = `${this.#name}${this.texts.length}q${this.#started.world.random.below(1_000_000_000).toString(36)}`
    this.texts.push(text)
    return text
  }

  #metadata(): Readonly<Record<string, string>> {
    return { [this.#text()]: this.#text() }
  }

  #details(): object {
    return { name: this.#text(), email: `${this.#text()}@example.com`, phone: this.#text() }
  }

  async post(url: string, body: object): Promise<Answer> {
    const idempotencyKey = `${this.#name}-${this.#requests++}`
    const request = { method: "POST", url, key: this.#started.key, idempotencyKey, body }
    const answer = await this.repeat(request)
    if (isKept(answer)) this.kept.push(request)
    return answer
  }

  /** Sends a request until it has an answer. */
  async repeat(request: Request): Promise<Answer> {
    const { till, world } = this.#started
    for (let attempt = 0; attempt < 3000; attempt++) {
      world.activity++
      const answer = await till.send(request)
      if (answer !== undefined && !isOpen(answer)) {
        assert.notInclude(answer.text, `"code":"internal_error"`, request.url)
        return answer
      }
      await world.sleep(20)
    }
    throw new Error(`${request.url} got no answer`)
  }

  async create(): Promise<void> {
    const { text } = await this.post("/v1/customers", {
      ...this.#details(),
      description: this.#text(),
      metadata: this.#metadata()
    })
    this.id = (parseJson(text) as Customer).id
  }

  /** Does things at random. After the erasure has begun, most of them are refused. */
  async live(steps: number): Promise<void> {
    const { random } = this.#started.world
    for (let step = 0; step < steps; step++) await this.#step(random.pick(STEPS))
  }

  async #step(step: (typeof STEPS)[number]): Promise<void> {
    const { methods, world } = this.#started
    const { random } = world
    const payment = random.pick(this.#payments)
    switch (step) {
      case "update":
        return void (await this.post(`/v1/customers/${this.id}`, { ...this.#details(), metadata: this.#metadata() }))
      case "pay": {
        const { status, text } = await this.post("/v1/payment_intents", {
          amount: 10_000,
          currency: "usd",
          customer: this.id,
          description: this.#text(),
          metadata: this.#metadata(),
          confirm: random.chance(0.8),
          payment_method: methods.get(random.pick(TOKENS) satisfies Token)!,
          capture_method: random.pick(["automatic", "manual"])
        })
        if (status === 200) this.#payments.push((parseJson(text) as PaymentIntent).id)
        return
      }
      case "payer":
        return void (payment !== undefined && world.gateway.answer(payment, random.chance(0.5)))
      case "refund":
        if (payment === undefined) return
        return void (await this.post("/v1/refunds", {
          payment_intent: payment,
          amount: 10,
          metadata: this.#metadata()
        }))
      case "change":
        if (payment === undefined) return
        return void (await this.post(`/v1/payment_intents/${payment}`, {
          description: this.#text(),
          metadata: this.#metadata()
        }))
      case "list":
        return void (await this.read("/v1/payment_intents"))
    }
  }

  /** Reads a list, so that memory holds its objects. */
  async read(url: string): Promise<string> {
    const { key } = this.#started
    const request = { method: "GET", url: `${url}?limit=100`, key, idempotencyKey: undefined, body: undefined }
    return (await this.repeat(request)).text
  }

  /** Ends the payments that a payer or a merchant would end. */
  async endPayments(): Promise<void> {
    for (const payment of this.#payments) {
      this.#started.world.gateway.answer(payment, false)
      await this.post(`/v1/payment_intents/${payment}/cancel`, {})
    }
  }

  /** Asks for the erasure until nothing stands against it. */
  async erase(attempts: number): Promise<boolean> {
    for (let attempt = 0; attempt < attempts; attempt++) {
      const { status, text } = await this.post(`/v1/customers/${this.id}/erase`, {})
      if (status === 200) return true
      assert.include(text, `"code":"customer_has_payment"`)
      await this.#started.world.sleep(1000)
    }
    return false
  }
}
