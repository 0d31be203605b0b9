/**
 * The state table of semantics webhooks.schedule compared with a plain model, over HTTP: after any sequence of events,
 * changes of endpoints, resends, attempts (also stale and doubled ones), clock moves and wipes, every delivery, and
 * every event's count of pending ones, equals the model's. The attempts are simulated; their schedule is the
 * specification's.
 *
 * To replay a failure, give the printed token to the property: `{ arbitrary: { replay: "…" } }`.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { WebhookDelivery } from "../../src/domain/WebhookDelivery.ts"
import type { AttemptOutcome } from "../../src/engine/Deliveries.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import { Random, Seed } from "../support/Random.ts"
import { assertError, assertOk } from "./Assertions.ts"
import type { Keys } from "../support/fixtures/Merchants.ts"
import { eventually, type MemoryTill, start } from "../support/MemoryTill.ts"
import { WebhookDeliveryModel } from "./WebhookDeliveryModel.ts"

let server: MemoryTill
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const ENDPOINTS = "/v1/webhook_endpoints"
const TYPES = ["*", "customer.created", "product.created", "payment_intent.succeeded", "charge.succeeded"]
const STEPS = 40

/** Pauses after the first, second, … attempt; there is none after the eighth (spec: Events, Delivery). */
const RETRY_AFTER_SECONDS = [60, 300, 1800, 7200, 28_800, 86_400, 259_200]

const nextOf = (attempt: number, status: number | null): AttemptOutcome["next"] => {
  if (status === 200) return "delivered"
  const seconds = RETRY_AFTER_SECONDS[attempt - 1]
  return seconds === undefined ? "exhausted" : { retryAfterMillis: seconds * 1000 }
}

/** Relative frequencies of the steps. */
const WEIGHTS = {
  happen: 8,
  attempt: 16,
  resend: 3,
  create: 3,
  subscribe: 2,
  disable: 1,
  enable: 2,
  remove: 1,
  advance: 2,
  wipe: 0.5
}
type Step = keyof typeof WEIGHTS
const CHOICES = Object.entries(WEIGHTS).flatMap(([step, weight]) => Array<Step>(weight * 2).fill(step as Step))

class Run {
  readonly model = new WebhookDeliveryModel()
  readonly random: Random
  readonly keys: Keys

  constructor(keys: Keys, random: Random) {
    this.keys = keys
    this.random = random
  }

  request(method: string, path: string, body?: object) {
    return server.request(method, path, { key: this.keys.secretTest, ...(body !== undefined && { body }) })
  }

  async ok(method: string, path: string, body?: object) {
    const reply = await this.request(method, path, body)
    assertOk(reply)
    return reply.body
  }

  types(): ReadonlyArray<string> {
    const types = TYPES.slice(1).filter(() => this.random.chance(0.5))
    return types.length === 0 || this.random.chance(0.3) ? ["*"] : types
  }

  endpoint(): string | undefined {
    const { endpoints } = this.model
    return endpoints.size === 0 ? undefined : this.random.pick([...endpoints.keys()])
  }

  async take(step: Step): Promise<void> {
    const { model, random } = this
    if (step === "happen") return this.happen()
    if (step === "attempt") return this.attempt()
    if (step === "resend") return this.resend()
    if (step === "create") return this.create()
    if (step === "advance") {
      const seconds = 1 + random.below(300_000)
      await this.ok("POST", "/v1/test_helpers/clock/advance", { seconds })
      model.clockOffset += seconds * 1000
    } else if (step === "wipe") {
      await this.ok("DELETE", "/v1/test_helpers/data")
      model.wiped()
    } else {
      const id = this.endpoint()
      if (id !== undefined) await this.change(step, id)
    }
  }

  async change(step: "subscribe" | "disable" | "enable" | "remove", id: string): Promise<void> {
    const { model } = this
    const path = `${ENDPOINTS}/${id}`
    if (step === "remove") {
      await this.ok("DELETE", path)
      model.endpoints.delete(id)
    } else if (step === "subscribe") {
      const types = this.types()
      await this.ok("POST", path, { enabled_events: types })
      model.endpoints.get(id)!.types = types
    } else if (step === "disable") {
      await this.ok("POST", path, { status: "disabled" })
      model.disable(id)
    } else {
      await this.ok("POST", path, { status: "enabled" })
      model.endpoints.get(id)!.status = "enabled"
    }
  }

  async create(): Promise<void> {
    if (this.model.endpoints.size === 3) return
    const types = this.types()
    const body = { url: "https://merchant.example.test/hooks", enabled_events: types }
    const { id } = await this.ok("POST", ENDPOINTS, body)
    this.model.endpoints.set(id, { status: "enabled", types, deliveries: [] })
  }

  /** One event, or three in one record. */
  async happen(): Promise<void> {
    const { model, random } = this
    const payment = { amount: 10, currency: "usd", confirm: true, payment_method: "pm_card_visa" }
    const [path, body] = random.pick([
      ["/v1/customers", {}],
      ["/v1/products", { name: "Tea" }],
      ["/v1/payment_intents", payment]
    ] as const)
    await this.ok("POST", path, body)
    const { data } = await this.ok("GET", "/v1/events?limit=3")
    model.happened(data.filter(({ id }: { readonly id: string }) => !model.events.has(id)).toReversed())
  }

  async resend(): Promise<void> {
    const { model, random } = this
    if (model.events.size === 0) return
    const [event, type] = random.pick([...model.events])
    const path = `/v1/events/${event}/resend`
    const to = random.chance(0.5) ? this.endpoint() : undefined
    if (to !== undefined && model.endpoints.get(to)!.status === "disabled") {
      const refused = await this.request("POST", path, { webhook_endpoint: to })
      return assertError(refused, 400, "parameter_invalid", "webhook_endpoint")
    }
    const resent = await this.ok("POST", path, to === undefined ? {} : { webhook_endpoint: to })
    model.deliver(event, to === undefined ? model.subscribed(type) : [to])
    assert.strictEqual(resent.pending_webhooks, model.pending(event))
  }

  /** Reports an attempt's result. Sometimes the report is doubled, or the attempt or its delivery has ended before. */
  async attempt(): Promise<void> {
    const { model, random } = this
    const all = [...model.endpoints].flatMap(([id, { deliveries }]) => deliveries.map((delivery) => ({ id, delivery })))
    const pending = all.filter(({ delivery }) => delivery.status === "pending")
    const candidates = pending.length > 0 && random.chance(0.8) ? pending : all
    if (candidates.length === 0) return
    // Often the oldest, so that some reach the end of their schedule.
    const { delivery, id: destination } = random.chance(0.6) ? candidates[0]! : random.pick(candidates)
    const attempts = delivery.attempts.length
    const attempt = random.chance(0.9) ? attempts + 1 : 1 + random.below(8)
    const status = random.pick([200, 404, 500, 500, 302, null, null, null])
    const outcome: AttemptOutcome = {
      id: delivery.id!,
      destination,
      attempt,
      startedAt: Date.now() - random.below(1000),
      durationMillis: random.below(30_000),
      status,
      error: status === 200 ? null : "It was not accepted.",
      ...(status !== 200 &&
        status !== null &&
        random.chance(0.5) && { body: random.pick(["Not now", 'é "\\\n日本 💳']) }),
      next: nextOf(attempt, status)
    }
    const outcomes = random.chance(0.1) ? [outcome, outcome] : [outcome]
    const report = Effect.map(Transaction, (transaction) => {
      for (const one of outcomes) transaction.attempted(one)
    })
    await Effect.runPromise(server.accounts.run(`${this.keys.merchantId}:test`, report))
    for (const one of outcomes) model.attempted(one)
  }

  async check(): Promise<void> {
    for (const [id, { deliveries }] of this.model.endpoints) {
      const { data } = await this.ok("GET", `${ENDPOINTS}/${id}/deliveries?limit=100`)
      const shown: ReadonlyArray<WebhookDelivery> = data.toReversed()
      assert.deepStrictEqual(
        shown.map(({ event }) => event),
        deliveries.map(({ event }) => event)
      )
      for (const [index, delivery] of deliveries.entries()) {
        const one = shown[index]!
        delivery.id ??= one.id
        assert.strictEqual(one.id, delivery.id)
        const { nextAttemptAt } = delivery
        const expected = nextAttemptAt === undefined ? one.created : nextAttemptAt && Math.floor(nextAttemptAt / 1000)
        const last = delivery.attempts.at(-1)
        assert.deepInclude(one, {
          webhook_endpoint: id,
          status: delivery.status,
          attempts: delivery.attempts,
          attempt_count: delivery.attempts.length,
          next_attempt_at: expected,
          last_response_status: last?.response_status ?? null,
          last_error: last?.error ?? null
        })
      }
    }
    const { data } = await this.ok("GET", "/v1/events?limit=100")
    const newest = [...this.model.events.keys()].toReversed().slice(0, 100)
    assert.deepStrictEqual(
      data.map(({ id, pending_webhooks }: Record<string, unknown>) => [id, pending_webhooks]),
      newest.map((id) => [id, this.model.pending(id)])
    )
  }
}

describe("webhook deliveries", () => {
  it.effect.prop(
    "webhooks.states: match their state table after any steps",
    { seed: Seed },
    ({ seed }) =>
      eventually(async () => {
        const run = new Run(await server.merchant(), new Random(seed))
        await run.create()
        for (let step = 0; step < STEPS; step++) {
          await run.take(run.random.pick(CHOICES))
          await run.check()
        }
      }),
    { arbitrary: { runs: 15 } }
  )
})
