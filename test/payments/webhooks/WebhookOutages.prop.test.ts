/** Outages of webhook endpoints (semantics mail.webhook_alert), over any outcomes and pauses. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { AttemptOutcome } from "../../../src/engine/Deliveries.ts"
import { WEBHOOK_ENDPOINT } from "../../../src/payments/shared/Documents.ts"
import * as Mails from "../../../src/payments/mail/Mails.ts"
import * as WebhookEndpoints from "../../../src/payments/webhooks/WebhookEndpoints.ts"
import * as WebhookOutages from "../../../src/payments/webhooks/WebhookOutages.ts"
import { MemoryAccount } from "../../support/MemoryAccount.ts"
import { ANY } from "../../webhooks/Sending.ts"

const HOUR_MILLIS = WebhookOutages.ALERT_AFTER_SECONDS * 1000

const step = Schema.Union([
  Schema.Struct({
    op: Schema.Literal("attempts"),
    delivered: Schema.Array(Schema.Boolean).check(Schema.isMinLength(1))
  }),
  Schema.Struct({
    op: Schema.Literal("wait"),
    minutes: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 90 }))
  }),
  Schema.Struct({ op: Schema.Literals(["roll", "move", "disable", "enable"]) })
])

const outcome = (destination: string, isDelivered: boolean): AttemptOutcome => ({
  id: "whd_1",
  destination,
  attempt: 1,
  startedAt: 0,
  durationMillis: 1,
  status: isDelivered ? 200 : 500,
  error: null,
  next: isDelivered ? "delivered" : { retryAfterMillis: 60_000 }
})

const begin = Effect.fnUntraced(function* (environment: "test" | "live") {
  const webhookHosts = { test: ANY, live: ANY }
  const account = new MemoryAccount(`mer_1:${environment}`, { sendsMail: true, webhookHosts })
  const url = "https://merchant.example.test"
  const { value } = yield* account.run(WebhookEndpoints.create({ url, enabled_events: ["*"] }, "2026-03-09"))
  const alerts = () => account.all(Mails.MAIL).filter(({ value }) => value.purpose === "webhook_alert")
  const outbox: Mails.OutboxShape = { offer: () => "taken" }
  return {
    account,
    id: value.id,
    alerts,
    advance: (millis: number) => account.advance(millis).pipe(Effect.orDie, Effect.provideService(Mails.Outbox, outbox))
  }
})

describe("an outage", () => {
  it.effect.prop(
    "leads to one mail after an hour without a success, and to none before",
    { steps: Schema.Array(step).check(Schema.isMaxLength(20)) },
    ({ steps }) =>
      Effect.gen(function* () {
        const { account, advance, alerts, id } = yield* begin("live")
        let since: number | null = null
        let isEnabled = true
        let expected = 0
        for (const next of steps) {
          if (next.op === "attempts") {
            yield* account.run(WebhookOutages.note(next.delivered.map((each) => outcome(id, each))))
            if (isEnabled) since = next.delivered.at(-1) === true ? null : (since ?? account.now)
          } else if (next.op === "wait") {
            const before = account.now
            yield* advance(next.minutes * 60_000)
            if (since !== null && since + HOUR_MILLIS > before && since + HOUR_MILLIS <= account.now) expected++
          } else if (next.op === "roll") {
            yield* account.run(WebhookEndpoints.rollSecret(id, { expiresIn: 60 }))
          } else if (next.op === "move") {
            const { url } = account.value(WEBHOOK_ENDPOINT, id)!
            yield* account.run(WebhookEndpoints.update(id, { url: `${url}/x` }))
            since = null
          } else {
            isEnabled = next.op === "enable"
            yield* account.run(WebhookEndpoints.update(id, { status: isEnabled ? "enabled" : "disabled" }))
            if (!isEnabled) since = null
          }
          assert.lengthOf(alerts(), expected)
          assert.strictEqual(account.all(WEBHOOK_ENDPOINT)[0]!.hidden.failingSince ?? null, since)
        }
      })
  )

  it.effect("changes nothing in test mode, and leaves no timer with its endpoint", () =>
    Effect.gen(function* () {
      const test = yield* begin("test")
      yield* test.account.run(WebhookOutages.note([outcome(test.id, false)]))
      assert.strictEqual(test.account.timers.size, 0)
      const live = yield* begin("live")
      yield* live.account.run(WebhookOutages.note([outcome(live.id, false)]))
      assert.strictEqual(live.account.timers.size, 1)
      yield* live.account.run(WebhookEndpoints.remove(live.id))
      assert.strictEqual(live.account.timers.size, 0)
      yield* live.account.run(WebhookOutages.note([outcome(live.id, false)]))
      assert.strictEqual(live.account.timers.size, 0)
    })
  )
})
