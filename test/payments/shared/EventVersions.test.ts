/**
 * The version of an event is the default of its account when it happens (semantics versions.events, webhooks.body).
 * Only one version is published so far; a second one, defined in this test, stands for later ones.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { ApiVersion } from "../../../src/domain/ApiVersion.ts"
import { Accounts } from "../../../src/engine/Accounts.ts"
import { Deliveries } from "../../../src/engine/Deliveries.ts"
import { Projector } from "../../../src/engine/actor/Projector.ts"
import { Transaction } from "../../../src/engine/actor/Transaction.ts"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import * as Customers from "../../../src/payments/lifecycles/Customers.ts"
import { render } from "../../../src/payments/shared/Events.ts"
import * as Merchants from "../../../src/payments/merchants/Merchants.ts"
import { PaymentsConfig } from "../../../src/payments/shared/PaymentsConfig.ts"
import { resend } from "../../../src/payments/webhooks/WebhookDeliveries.ts"
import { createMerchant } from "../../support/fixtures/Merchants.ts"
import * as MemoryEngine from "../../support/MemoryEngine.ts"
import { FIRST as OLDEST, NEWEST, VERSIONS as TEST_VERSIONS } from "../../support/TestVersions.ts"
import { paymentsConfig } from "../../support/PaymentsConfig.ts"

const FIRST: ApiVersion = "2026-03-09"
const SECOND = "2027-01-01" as ApiVersion

const versioned = MemoryEngine.engine(undefined, TEST_VERSIONS).pipe(
  Layer.provideMerge(Layer.succeed(PaymentsConfig, paymentsConfig()))
)
const service = MemoryEngine.engine().pipe(Layer.provideMerge(Layer.succeed(PaymentsConfig, paymentsConfig())))

/** The bodies of the deliveries that are due, as the dispatcher renders them. */
const dueBodies = Effect.gen(function* () {
  const deliveries = yield* Deliveries
  yield* Effect.andThen(Projector, ({ drained }) => drained)
  const due = yield* deliveries.take({ limit: 100, busy: [] })
  return yield* Effect.forEach(due, (delivery) =>
    Effect.map(deliveries.content(delivery), (event) => ({
      delivery,
      event,
      body: render(event, { account: delivery.account, pendingWebhooks: event.deliveries })
    }))
  )
})

/** A merchant, with operations on its test environment and its default version. */
const makeMerchant = Effect.gen(function* () {
  const accounts = yield* Accounts
  const { merchantId } = yield* createMerchant("A merchant")
  const account = `${merchantId}:test`
  return {
    account,
    setVersion: (version: ApiVersion) => accounts.run(INSTALLATION, Merchants.setVersion(merchantId, version)),
    subscribe: accounts.run(
      account,
      Effect.map(Transaction, (transaction) => transaction.subscribe("we_1", ["*"]))
    ),
    createCustomer: accounts.run(account, Customers.create({})),
    events: Effect.map(accounts.events(account, { limit: 100 }), ({ events }) => events)
  }
})

describe("the version of an event", () => {
  it.live("is the default when it happened, at every attempt and resend, in the same bytes", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const deliveries = yield* Deliveries
      const { account, createCustomer, events, setVersion, subscribe } = yield* makeMerchant
      yield* subscribe
      yield* createCustomer
      yield* setVersion(SECOND)
      yield* createCustomer
      const bodies = new Map<string, string>()
      for (let attempt = 1; attempt <= 3; attempt++) {
        const due = yield* dueBodies
        assert.lengthOf(due, 2)
        for (const { body, delivery, event } of due) {
          assert.strictEqual(delivery.attempt, attempt)
          assert.strictEqual(bodies.get(event.id) ?? body, body)
          bodies.set(event.id, body)
          const outcome = { ...delivery, startedAt: 0, durationMillis: 0, status: 500, error: null }
          yield* deliveries.report(account, [{ ...outcome, next: { retryAfterMillis: 0 } }])
        }
        yield* setVersion(attempt === 1 ? FIRST : SECOND)
      }
      const versions = [...bodies.values()].map((body) => JSON.parse(body).api_version)
      assert.deepStrictEqual(versions.toSorted(), [FIRST, SECOND])
      for (const event of yield* events) {
        const answered = yield* accounts.run(account, resend({ event, pendingWebhooks: 0, webhookEndpoint: null }))
        assert.strictEqual(answered.api_version, event.apiVersion)
      }
      const again = (yield* dueBodies).filter(({ delivery }) => delivery.attempt === 1)
      assert.lengthOf(again, 2)
      for (const { body, event } of again) assert.strictEqual(body, bodies.get(event.id))
    }).pipe(Effect.provide(service))
  )

  it.live("is that of its webhooks at every attempt, even after the default has changed", () =>
    Effect.gen(function* () {
      const deliveries = yield* Deliveries
      const { account, createCustomer, setVersion, subscribe } = yield* makeMerchant
      yield* subscribe
      yield* createCustomer
      yield* setVersion(NEWEST as ApiVersion)
      yield* createCustomer
      const bodies = new Map<string, string>()
      for (let attempt = 1; attempt <= 2; attempt++) {
        for (const { body, delivery, event } of yield* dueBodies) {
          assert.strictEqual(bodies.get(event.id) ?? body, body)
          bodies.set(event.id, body)
          const outcome = { ...delivery, startedAt: 0, durationMillis: 0, status: 500, error: null }
          yield* deliveries.report(account, [{ ...outcome, next: { retryAfterMillis: 0 } }])
        }
        yield* setVersion(OLDEST as ApiVersion)
      }
      const seen = [...bodies.values()].map((body) => {
        const { api_version, data } = JSON.parse(body)
        return [api_version, "telephone" in data.object, "phone" in data.object]
      })
      assert.deepStrictEqual(seen.toSorted(), [
        [OLDEST, true, false],
        [NEWEST, false, true]
      ])
    }).pipe(Effect.provide(versioned))
  )

  it.live("is the merchant's own in both environments, from the next event on", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const [one, other] = [yield* makeMerchant, yield* makeMerchant]
      const versionsOf = (account: string) =>
        Effect.map(accounts.events(account, { limit: 100 }), ({ events }) =>
          events.map(({ apiVersion }) => apiVersion).toReversed()
        )
      const live = one.account.replace(":test", ":live")
      for (const version of [SECOND, FIRST, SECOND]) {
        yield* one.setVersion(version)
        yield* one.createCustomer
        yield* accounts.run(live, Customers.create({}))
        yield* other.createCustomer
      }
      assert.deepStrictEqual(yield* versionsOf(one.account), [SECOND, FIRST, SECOND])
      assert.deepStrictEqual(yield* versionsOf(live), [SECOND, FIRST, SECOND])
      assert.deepStrictEqual(yield* versionsOf(other.account), [FIRST, FIRST, FIRST])
    }).pipe(Effect.provide(service))
  )
})
