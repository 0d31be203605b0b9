/**
 * The lifecycle of a key, over any sequence of rolls, elapsed time and revocations (semantics keys.first, keys.roll,
 * keys.revoke, keys.states).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import type { ApiKey } from "../../../src/domain/ApiKey.ts"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import { API_KEY, API_KEY_LOOKUP, lookupIdOf, revoke, roll } from "../../../src/payments/merchants/ApiKeys.ts"
import * as Merchants from "../../../src/payments/merchants/Merchants.ts"
import { MemoryAccount } from "../../support/MemoryAccount.ts"

const seconds = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 86_400 }))

describe("A key", () => {
  it.effect.prop(
    "is valid until the earliest expiry that was set, shows it, and is stored nowhere in plain text",
    { steps: Schema.Array(Schema.Struct({ expiresIn: Schema.optionalKey(seconds), pause: seconds })) },
    ({ steps }) =>
      Effect.gen(function* () {
        const account = new MemoryAccount(INSTALLATION)
        const { generated } = yield* account.run(Merchants.createWithKeys("A merchant"), null)
        const first = Redacted.value(generated.secretTest!)
        const { api_key: id } = account.value(API_KEY_LOOKUP, lookupIdOf(first))!
        let end: number | null = null
        for (const { expiresIn, pause } of steps) {
          const wanted: number = Math.floor(account.now / 1000) + (expiresIn ?? 86_400)
          const { secret: key, value: apiKey } = yield* account.run(roll(id, { expiresIn }), null)
          end = end === null ? wanted : Math.min(end, wanted)
          assert.include(apiKey, { status: "active", expires_at: null, prefix: "sk_test_" })
          assert.notInclude(account.text, Redacted.value(key))
          assert.strictEqual(account.value(API_KEY_LOOKUP, lookupIdOf(Redacted.value(key)))?.api_key, apiKey.id)
          yield* account.advance(pause * 1000)
          const old: ApiKey = account.value(API_KEY, id)!
          const isOver = account.now >= end * 1000
          assert.include(old, { expires_at: end, status: isOver ? "expired" : "rolling" })
          const { expires_at, status } = old
          assert.include(account.value(API_KEY_LOOKUP, lookupIdOf(first))!, { expires_at, status })
        }
        assert.lengthOf(account.all(API_KEY), 4 + steps.length)
        yield* account.advance(86_400_000)
        assert.strictEqual(account.timers.size, 0)
      }),
    { arbitrary: { runs: 100 } }
  )

  it.effect.prop(
    "is revoked once, from any state, for good: no timer, roll or start restores it",
    { steps: Schema.Array(Schema.Struct({ expiresIn: seconds, pause: seconds })), pause: seconds },
    ({ pause, steps }) =>
      Effect.gen(function* () {
        const account = new MemoryAccount(INSTALLATION)
        const given = { secretTest: Redacted.make("sk_test_chosen") }
        yield* account.run(Merchants.ensureDefault(given), null)
        const lookup = () => account.value(API_KEY_LOOKUP, lookupIdOf("sk_test_chosen"))!
        const { api_key: id } = lookup()
        for (const { expiresIn, pause } of steps) {
          yield* account.run(roll(id, { expiresIn }), null)
          yield* account.advance(pause * 1000)
        }
        const before: ApiKey = account.value(API_KEY, id)!
        const revoked = yield* account.run(revoke(id), null)
        assert.deepStrictEqual(revoked, { ...before, status: "revoked" })
        assert.include(lookup(), { status: "revoked", expires_at: before.expires_at })
        assert.strictEqual(account.timers.size, 0)
        yield* account.advance(pause * 1000)
        for (const change of [Effect.asVoid(revoke(id)), Effect.asVoid(roll(id, {}))]) {
          assert.strictEqual((yield* Effect.flip(account.run(change, null)))._tag, "ResourceMissing")
        }
        assert.deepStrictEqual((yield* account.run(Merchants.ensureDefault(given), null)).added, [])
        assert.deepStrictEqual(account.value(API_KEY, id), revoked)
      }),
    { arbitrary: { runs: 50 } }
  )
})
