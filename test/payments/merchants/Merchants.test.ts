/** Merchants and their keys, which are found by hash and stored nowhere (semantics keys.storage). */
import { hash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { NO_BRAND } from "../../../src/domain/Brand.ts"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import { API_KEY, API_KEY_LOOKUP, lookupIdOf } from "../../../src/payments/merchants/ApiKeys.ts"
import * as Merchants from "../../../src/payments/merchants/Merchants.ts"
import { API_KEY_SLOTS, type ApiKeys, type ApiKeySlot, MERCHANT } from "../../../src/payments/merchants/Merchants.ts"
import { MemoryAccount } from "../../support/MemoryAccount.ts"

const PREFIXES: Readonly<Record<ApiKeySlot, string>> = {
  secretTest: "sk_test_",
  publishableTest: "pk_test_",
  secretLive: "sk_live_",
  publishableLive: "pk_live_"
}

const ensure = (account: MemoryAccount, given: ApiKeys = {}) => account.run(Merchants.ensureDefault(given), null)

const lookup = (account: MemoryAccount, key: string) =>
  account.value(API_KEY_LOOKUP, `keyhash_${hash("sha256", key, "hex")}`)

describe("The default merchant", () => {
  it.effect("gets four keys, each of which leads to it, and none of which is stored", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount(INSTALLATION)
      const { generated, merchant } = yield* ensure(account)
      assert.sameMembers(Object.keys(generated), Object.keys(PREFIXES))
      for (const [slot, key] of Object.entries(generated) as Array<[ApiKeySlot, Redacted.Redacted<string>]>) {
        const text = Redacted.value(key)
        assert.match(text, new RegExp(`^${PREFIXES[slot]}[0-9A-Za-z]{32}$`, "u"))
        const found = lookup(account, text)!
        assert.strictEqual(found.id, lookupIdOf(text))
        assert.deepInclude(found, {
          ...API_KEY_SLOTS[slot],
          merchant_id: merchant.id,
          status: "active",
          expires_at: null
        })
        const { last4, prefix } = account.value(API_KEY, found.api_key)!
        assert.deepStrictEqual([prefix, last4], [PREFIXES[slot], text.slice(-4)])
        assert.notInclude(account.text, text.slice(PREFIXES[slot].length))
      }
      assert.strictEqual(merchant.api_version, "2026-03-09")
    })
  )

  it.effect("registers the given keys, and generates the others once", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount(INSTALLATION)
      const given = { secretTest: Redacted.make("sk_test_chosen_by_me") }
      const first = yield* ensure(account, given)
      assert.sameMembers(Object.keys(first.generated), ["publishableTest", "secretLive", "publishableLive"])
      const before = account.text
      const second = yield* ensure(account, given)
      assert.deepStrictEqual(second.generated, {})
      assert.strictEqual(second.merchant.id, first.merchant.id)
      assert.strictEqual(account.text, before)
      assert.notInclude(account.text, "chosen_by_me")
    })
  )

  it.effect("adds a key that differs, reports it once, and keeps the earlier one", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount(INSTALLATION)
      const { added, merchant } = yield* ensure(account, { secretTest: Redacted.make("sk_test_first_one") })
      assert.deepStrictEqual(added, [])
      const given = { secretTest: Redacted.make("sk_test_second_one") }
      assert.deepStrictEqual((yield* ensure(account, given)).added, ["secretTest"])
      assert.deepStrictEqual((yield* ensure(account, given)).added, [])
      for (const key of ["sk_test_first_one", "sk_test_second_one"]) {
        assert.strictEqual(lookup(account, key)?.merchant_id, merchant.id)
      }
      assert.lengthOf(account.all(MERCHANT), 1)
    })
  )

  it.effect("does not take a key from another merchant", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount(INSTALLATION)
      const key = { secretTest: Redacted.make("sk_test_of_another") }
      yield* account.run(Merchants.createWithKeys("Another", key))
      const error = yield* Effect.flip(ensure(account, key))
      assert.include(error, { _tag: "ApiKeyTaken", slot: "secretTest" })
      assert.lengthOf(account.all(MERCHANT), 1)
    })
  )
})

describe("The appearance of a merchant", () => {
  it.effect("dashboard.settings: is written only if it changes", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount(INSTALLATION)
      const { id, brand } = yield* account.run(Merchants.create("Acme"), null)
      assert.deepStrictEqual(brand, NO_BRAND)
      const changed = yield* account.run(Merchants.changeAppearance(id, { name: "Ajax", accent: "#1b7f5e" }), null)
      assert.deepInclude(changed, { name: "Ajax", brand: { ...NO_BRAND, accent: "#1b7f5e" } })
      const before = account.text
      yield* account.run(Merchants.changeAppearance(id, { name: "Ajax", accent: "#1b7f5e", icon: null }), null)
      yield* account.run(Merchants.changeAppearance(id, {}), null)
      assert.strictEqual(account.text, before)
      assert.isUndefined(yield* account.run(Merchants.changeAppearance("mer_x", {}), null))
    })
  )
})
