/**
 * A merchant with payers and a gateway, over the API: it pays, captures, cancels and refunds at random, repeats each
 * request with its key until it has an answer, and sends some requests again. A repetition must get the first answer,
 * byte for byte. An answer must not claim what the gateway's ledger does not show.
 *
 * Every capture and refund has an amount of its own, so that the ledger shows how often it was carried out.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import type { CheckoutSession } from "../../src/domain/CheckoutSession.ts"
import type { PaymentIntent } from "../../src/domain/PaymentIntent.ts"
import type { Refund } from "../../src/domain/Refund.ts"
import { parseJson } from "../../src/json/JsonParse.ts"
import { type Token, TOKENS } from "../models/Operations.ts"
import { putCard } from "../support/fixtures/Operations.ts"
import { type GatewayWorld, NOTICED_MILLIS } from "./GatewayWorld.ts"
import type { Answer, Request } from "./Process.ts"

/** The way to Till. */
export interface Till {
  /** Sends a request once; undefined if it got no answer. */
  readonly send: (request: Request) => Promise<Answer | undefined>
  /** Has Till ask about an operation, as the payer's return does. */
  readonly look: (operation: string) => Promise<unknown>
  /** Has a person decide about the operations of a payment. */
  readonly decide: (payment: string) => Promise<unknown>
  /** Sets the clock of a process. */
  readonly stepClock: () => void
}

/** A pause before a repetition, in milliseconds. */
const AGAIN_MILLIS = 20
/** The time after which a request counts as unanswered, in milliseconds. */
const ANSWER_MILLIS_MAX = 900_000

const STEPS = [
  "capture",
  "cancel",
  "refund",
  "refund",
  "confirm",
  "payer",
  "look",
  "wait",
  "test clock",
  "clock",
  "hours"
] as const

/**
 * Steps of a payment whose operations end in doubt, one after the other: days pass, after which a person decides while
 * the next ones begin.
 */
const DOUBTFUL_STEPS = [
  "capture",
  "cancel",
  "refund",
  "confirm",
  "payer",
  "a day",
  "a day",
  "person",
  "person"
] as const

type Step = (typeof STEPS | typeof DOUBTFUL_STEPS)[number]

/** Returns whether an answer is stored under its key; other refusals are decided again. */
export const isKept = ({ status, text }: Answer): boolean =>
  status === 200 || status === 402 || /"code":"(?:\w+_unexpected_state|amount_too_large|processor_refused)"/.test(text)

/** Returns whether a request was not carried out, or not yet. */
export const isOpen = ({ status, text }: Answer): boolean =>
  status === 503 || /"code":"(?:idempotency_key_in_use|rate_limited)"/.test(text)

interface Paying {
  readonly id: string
  /** The path of confirmations and of the end. */
  readonly confirm: string
  readonly cancel: string
}

export class Shop {
  repetitions = 0
  /** Requests that got no answer while a clock was wrong. */
  unanswered = 0
  readonly #world: GatewayWorld
  readonly #till: Till
  readonly #key: string
  readonly #methods: ReadonlyMap<Token, string>
  readonly #clock: () => number
  readonly #kept: Array<{ readonly request: Request; readonly answer: Answer }> = []
  /** Payments whose payer was led to the gateway's page. */
  readonly #asked = new Set<string>()
  #requests = 0

  constructor(world: GatewayWorld, till: Till, key: string, methods: ReadonlyMap<Token, string>, clock: () => number) {
    this.#world = world
    this.#till = till
    this.#key = key
    this.#methods = methods
    this.#clock = clock
  }

  /** Sends a request with one key until it has an answer, and sometimes again. */
  async #post(url: string, body: object): Promise<Answer | undefined> {
    const { random } = this.#world
    const idempotencyKey = `key-${this.#requests++}`
    const request = { method: "POST", url, key: this.#key, idempotencyKey, body }
    const isDoubled = random.chance(0.15)
    const [answer, other] = await Promise.all([this.#until(request), isDoubled ? this.#until(request) : undefined])
    if (answer === undefined) return undefined
    this.#claimsNothingElse(answer)
    if (!isKept(answer)) return answer
    this.#kept.push({ request, answer })
    // The other one may have been refused before the key was used.
    if (other !== undefined && isKept(other)) this.#same(request, answer, other)
    if (random.chance(0.15)) await this.#repeat(request, answer)
    return answer
  }

  async #repeat(request: Request, answer: Answer): Promise<void> {
    const again = await this.#until(request)
    if (again !== undefined) this.#same(request, answer, again)
  }

  #same({ url }: Request, first: Answer, again: Answer): void {
    this.repetitions++
    assert.deepStrictEqual([again.status, again.text], [first.status, first.text], `${url} the second time`)
  }

  /** Repeats all requests whose answers are kept. */
  async repeatAll(): Promise<void> {
    for (const { answer, request } of this.#kept) await this.#repeat(request, answer)
  }

  async #until(request: Request): Promise<Answer | undefined> {
    const since = this.#clock()
    while (this.#clock() - since < ANSWER_MILLIS_MAX) {
      this.#world.activity++
      const answer = await this.#till.send(request)
      this.#world.activity++
      if (answer !== undefined && !isOpen(answer)) {
        assert.notInclude(answer.text, `"code":"internal_error"`, request.url)
        return answer
      }
      await this.#world.sleep(AGAIN_MILLIS)
    }
    if (!this.#world.mayJump) throw new Error(`${request.url} got no answer`)
    this.unanswered++
    return undefined
  }

  /** Compares an answer with the ledger: what Till claims to have done is done. */
  #claimsNothingElse({ status, text }: Answer): void {
    if (status !== 200) return
    const { gateway } = this.#world
    const object = parseJson(text) as PaymentIntent | Refund | { readonly object: "other" }
    if (object.object === "payment_intent" && object.status === "requires_action") this.#asked.add(object.id)
    if (object.object === "payment_intent" && object.status === "succeeded") {
      assert.strictEqual(gateway.entry(object.id).captured, object.amount_received, text)
    }
    if (object.object === "refund" && object.status === "succeeded") {
      const lines = gateway.ledger.filter(({ amount, kind }) => kind === "refund" && amount === object.amount)
      assert.strictEqual(lines.length, 1, text)
    }
  }

  #method(): string {
    return this.#methods.get(this.#world.random.pick(TOKENS))!
  }

  /** Creates a payment, by itself or with a session. */
  async #create(): Promise<Paying | undefined> {
    const { random } = this.#world
    const capture_method = random.pick(["automatic", "manual"])
    if (random.chance(0.8)) {
      const created = await this.#post("/v1/payment_intents", {
        amount: 100_000,
        currency: "usd",
        capture_method,
        confirmation_method: random.pick(["automatic", "automatic", "manual"])
      })
      if (created?.status !== 200) return undefined
      const { id } = parseJson(created.text) as PaymentIntent
      return { id, confirm: `/v1/payment_intents/${id}/confirm`, cancel: `/v1/payment_intents/${id}/cancel` }
    }
    const product = await this.#post("/v1/products", { name: "Tea" })
    if (product?.status !== 200) return undefined
    const created = await this.#post("/v1/checkout_sessions", {
      mode: "payment",
      success_url: "https://shop.example",
      customer_email: "jane@example.com",
      line_items: [
        {
          price_data: {
            currency: "usd",
            product: (parseJson(product.text) as { readonly id: string }).id,
            unit_amount: 100_000
          },
          quantity: 1
        }
      ],
      payment_intent_data: { capture_method }
    })
    if (created?.status !== 200) return undefined
    const { id, payment_intent } = parseJson(created.text) as CheckoutSession
    return {
      id: payment_intent!,
      confirm: `/v1/checkout_sessions/${id}/confirm`,
      cancel: `/v1/checkout_sessions/${id}/expire`
    }
  }

  /** Pays, and does things at random with the payment. */
  async pay(): Promise<void> {
    const { plan, random } = this.#world
    const paying = await this.#create()
    if (paying === undefined) return
    await this.#post(paying.confirm, { payment_method: this.#method() })
    const steps: ReadonlyArray<Step> = plan.doubts ? DOUBTFUL_STEPS : STEPS
    for (let step = random.integer(2, 10); step > 0; step--) await this.#step(paying, random.pick(steps))
  }

  async #step({ cancel, confirm, id }: Paying, step: Step): Promise<void> {
    const { gateway, happened, plan, random, sleep } = this.#world
    const amount = 5000 + this.#requests
    switch (step) {
      case "capture": {
        const body = random.chance(0.5) ? {} : { amount_to_capture: 50_000 + amount }
        return void (await this.#post(`/v1/payment_intents/${id}/capture`, body))
      }
      case "cancel":
        return void (random.chance(0.5) && (await this.#post(cancel, {})))
      case "refund":
        return void (await this.#post("/v1/refunds", { payment_intent: id, amount }))
      case "confirm":
        this.#asked.delete(id)
        return void (await this.#post(confirm, { payment_method: this.#method() }))
      case "payer": {
        if (gateway.entry(id).status === "challenged" && !this.#asked.has(id)) return
        const isApproved = random.chance(0.7)
        const operation = gateway.answer(id, isApproved)
        if (operation === undefined) return
        happened.note(isApproved ? "payer authenticated" : "payer refused")
        return void (random.chance(0.5) && (await this.#till.look(operation)))
      }
      case "look": {
        const { by } = gateway.entry(id)
        return void (by !== null && (await this.#till.look(by)))
      }
      case "wait":
        return await sleep(random.pick([100, 21_000, 90_000]))
      case "test clock": {
        if (!plan.clocks) return
        happened.note("test clock moved")
        const seconds = random.pick([25, 3600, 90_000])
        return void (await this.#post("/v1/test_helpers/clock/advance", { seconds }))
      }
      case "clock":
        return void (plan.clocks && this.#till.stepClock())
      case "hours":
        if (!plan.clocks) return
        happened.note("hours passed")
        return this.#world.jump(random.pick([1, 23.5, 25]) * 3_600_000)
      case "a day":
        this.#world.jump(25 * 3_600_000)
        return await sleep(NOTICED_MILLIS)
      case "person":
        return void (await this.#till.decide(id))
    }
  }
}

/** Puts a card for each of the gateway's tokens into an account. */
export const cards = Effect.gen(function* () {
  const transaction = yield* Transaction
  const methods = new Map<Token, string>()
  for (const token of TOKENS) {
    const id = transaction.newId("pm")
    methods.set(token, id)
    yield* putCard(id, {}, token)
  }
  return methods
})
