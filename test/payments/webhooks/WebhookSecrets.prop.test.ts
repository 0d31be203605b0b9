/**
 * The secrets that sign an endpoint's webhooks, over any sequence of rolls and updates: the newest one always signs,
 * first; the one before it also signs, exactly until the end of its grace period; no other signs. A disabled endpoint
 * has no signatures, because it gets no webhooks.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { WEBHOOK_SECRET_GRACE_SECONDS_MAX } from "../../../src/domain/WebhookEndpoint.ts"
import { WEBHOOK_ENDPOINT } from "../../../src/payments/shared/Documents.ts"
import * as WebhookEndpoints from "../../../src/payments/webhooks/WebhookEndpoints.ts"
import { MemoryAccount } from "../../support/MemoryAccount.ts"
import { ANY, PUBLIC } from "../../webhooks/Sending.ts"

const seconds = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum }))

const step = Schema.Union([
  Schema.Struct({ op: Schema.Literal("roll"), expiresIn: seconds(WEBHOOK_SECRET_GRACE_SECONDS_MAX) }),
  Schema.Struct({ op: Schema.Literal("roll"), expiresIn: seconds(3) }),
  Schema.Struct({ op: Schema.Literal("update"), status: Schema.Literals(["enabled", "disabled"]) }),
  Schema.Struct({ op: Schema.Literal("wait"), seconds: seconds(WEBHOOK_SECRET_GRACE_SECONDS_MAX) })
])

describe("webhook secrets", () => {
  it.effect.prop(
    "sign from their creation until the next roll, or the end of their grace period",
    { steps: Schema.Array(step).check(Schema.isMaxLength(12)) },
    ({ steps }) =>
      Effect.gen(function* () {
        const account = new MemoryAccount()
        const created = yield* account.run(
          WebhookEndpoints.create({ url: "https://merchant.example.test", enabled_events: ["*"] }, "2026-03-09")
        )
        const { id } = created.value
        let status: string = "enabled"
        let newest = Redacted.value(created.secret)
        let previous: { readonly secret: string; readonly endsAt: number } | undefined
        const given = new Set([newest])
        for (const next of steps) {
          if (next.op === "wait") account.now += next.seconds * 1000
          if (next.op === "update") {
            yield* account.run(WebhookEndpoints.update(id, { status: next.status }))
            status = next.status
          }
          if (next.op === "roll") {
            const { secret } = yield* account.run(WebhookEndpoints.rollSecret(id, next))
            previous = { secret: newest, endsAt: account.now + next.expiresIn * 1000 }
            newest = Redacted.value(secret)
            given.add(newest)
          }
          const document = account.all(WEBHOOK_ENDPOINT)[0]!
          const moments = [account.now, account.now + 1000]
          if (previous !== undefined) moments.push(previous.endsAt - 1, previous.endsAt)
          for (const moment of moments.filter((at) => at >= account.now)) {
            const signing = WebhookEndpoints.secretsOf(account.config, account.account, document, moment)
            const graced = previous !== undefined && moment < previous.endsAt ? [previous.secret] : []
            assert.deepStrictEqual(signing.map(Redacted.value), [newest, ...graced])
            const destination = WebhookEndpoints.destinationOf(account.config, account.account, document, moment)
            assert.deepStrictEqual(destination?.secrets, status === "enabled" ? signing : undefined)
          }
        }
        // One secret per roll, and none of them in the account's text.
        assert.strictEqual(given.size, 1 + steps.filter(({ op }) => op === "roll").length)
        for (const secret of given) assert.notInclude(account.text, secret)
        assert.lengthOf(account.events, 0)
      }),
    { arbitrary: { runs: 200 } }
  )

  it.effect("sign for their own endpoint only", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const url = "https://merchant.example.test"
      for (let i = 0; i < 2; i++) {
        yield* account.run(WebhookEndpoints.create({ url, enabled_events: ["*"] }, "2026-03-09"))
      }
      const [one, other] = account.all(WEBHOOK_ENDPOINT)
      const secretsOf = (document: WebhookEndpoints.WebhookEndpointDocument) =>
        WebhookEndpoints.secretsOf(account.config, account.account, document, account.now)
      assert.lengthOf(secretsOf(one!), 1)
      assert.throws(() => secretsOf({ ...one!, hidden: other!.hidden }))
    })
  )
})

describe("webhooks", () => {
  it.effect.each([
    ["test", ANY],
    ["live", PUBLIC]
  ] as const)("webhooks.url, webhooks.test_hosts: of %s go where that mode may", ([environment, hosts]) =>
    Effect.gen(function* () {
      const account = new MemoryAccount(`mer_1:${environment}`, { webhookHosts: { test: ANY, live: PUBLIC } })
      const url = "https://merchant.example.test"
      yield* account.run(WebhookEndpoints.create({ url, enabled_events: ["*"] }, "2026-03-09"))
      const document = account.all(WEBHOOK_ENDPOINT)[0]!
      const destination = WebhookEndpoints.destinationOf(account.config, account.account, document, account.now)
      assert.deepInclude(destination, { url })
      assert.strictEqual(destination?.hosts, hosts)
    })
  )
})
