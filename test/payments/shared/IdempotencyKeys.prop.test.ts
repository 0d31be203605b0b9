/**
 * Idempotency keys of servers, browsers and forms never collide, for any key that a client sends (semantics
 * idempotency.scope).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { formKey, requestKey, sentKey } from "../../../src/payments/shared/IdempotencyKeys.ts"

/** Texts that a header can hold, including some that look like another sender's stored key. */
const sent = Schema.Union([
  Schema.String.check(Schema.isPattern(/^[\t\x20-\x7e\x80-\xff]{1,255}$/u)),
  Schema.Literals(["publishable/a", "a", "form/cs_1/n", "publishable/form/cs_1/n"])
])
const keyType = Schema.Literals(["secret", "publishable"])

describe("idempotency keys", () => {
  it.effect.prop(
    "are separate for different senders, and equal only for the same key of one sender",
    { a: sent, b: sent },
    ({ a, b }) =>
      Effect.sync(() => {
        assert.strictEqual(requestKey("secret", a), a, "records hold a server's key as it was sent")
        assert.notStrictEqual(requestKey("publishable", a), requestKey("secret", b))
        assert.strictEqual(requestKey("publishable", a) === requestKey("publishable", b), a === b)
        for (const type of ["secret", "publishable"] as const) {
          assert.notStrictEqual(requestKey(type, a), formKey("cs_1", "n"))
          assert.notStrictEqual(requestKey(type, a), formKey(b, a))
        }
      })
  )

  it.effect.prop(
    "are shown as they were sent, except those of forms, which are never shown",
    { key: sent, type: keyType },
    ({ key, type }) =>
      Effect.sync(() => {
        assert.strictEqual(sentKey(requestKey(type, key)), key)
        assert.isNull(sentKey(formKey(key, "n")))
        assert.isNull(sentKey(null))
      })
  )
})
