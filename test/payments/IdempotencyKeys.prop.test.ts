/** Idempotency keys of servers, browsers and forms never meet, whatever a client sends (semantics 9.4). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { formKey, requestKey, sentKey } from "../../src/payments/IdempotencyKeys.ts"

/** What a header can hold; also texts that look like the keys of others. */
const sent = Schema.Union([
  Schema.String.check(Schema.isPattern(/^[\t\x20-\x7e\x80-\xff]{1,255}$/u)),
  Schema.Literals(["publishable/a", "a", "form/cs_1/n", "publishable/form/cs_1/n"])
])
const keyType = Schema.Literals(["secret", "publishable"])

describe("idempotency keys", () => {
  it.effect.prop(
    "are apart by who sent them, and equal only for one sender's same key",
    { a: sent, b: sent },
    ({ a, b }) =>
      Effect.sync(() => {
        assert.strictEqual(requestKey("secret", a), a, "an older record holds a server's key like this")
        assert.notStrictEqual(requestKey("publishable", a), requestKey("secret", b))
        assert.strictEqual(requestKey("publishable", a) === requestKey("publishable", b), a === b)
        for (const type of ["secret", "publishable"] as const) {
          assert.notStrictEqual(requestKey(type, a), formKey("cs_1", "n"))
          assert.notStrictEqual(requestKey(type, a), formKey(b, a))
        }
      })
  )

  it.effect.prop(
    "are shown as they were sent; those of forms to nobody",
    { key: sent, type: keyType },
    ({ key, type }) =>
      Effect.sync(() => {
        assert.strictEqual(sentKey(requestKey(type, key)), key)
        assert.isNull(sentKey(formKey(key, "n")))
        assert.isNull(sentKey(null))
      })
  )
})
