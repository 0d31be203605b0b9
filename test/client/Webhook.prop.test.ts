/** `verifyWebhook` accepts only genuine webhooks (spec: Events, Signature; semantics webhooks.signature). */
import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { TestClock } from "effect/testing"
import { createHmac } from "node:crypto"
import { runInNewContext } from "node:vm"
import { verifyWebhookEffect } from "../../src/client/effect.ts"
import {
  verifyWebhook,
  type VerifyWebhookOptions,
  type WebhookEvent,
  WebhookVerificationError
} from "../../src/client/index.ts"
import type { Charge } from "../../src/domain/Charge.ts"
import type { Customer } from "../../src/domain/Customer.ts"
import type { PaymentIntent } from "../../src/domain/PaymentIntent.ts"
import { parseJson } from "../../src/json/JsonParse.ts"

const VECTOR = {
  secret: "whsec_your_secret",
  time: 1_709_913_600,
  body: '{"id":"evt_123","type":"payment_intent.succeeded"}',
  signature: "2ad968208b3f4ecfded3a7607f0df647249560fb9e9febeec80ff784f0276a1e"
}

/** Signs by the specification: one string, hashed at once. */
const signatureOf = (secret: string, time: number, body: string): string =>
  createHmac("sha256", secret).update(`v1=${time}.${body}`, "utf8").digest("hex")

/** Returns the reason for rejecting a webhook; undefined if it is accepted. */
const reasonOf = (options: VerifyWebhookOptions) => {
  try {
    verifyWebhook(options)
    return undefined
  } catch (error) {
    assert.instanceOf(error, WebhookVerificationError)
    return error.reason
  }
}

/** Secrets that are different HMAC keys: without lone surrogates, and without the zeros that HMAC appends to a key. */
const secretArbitrary = Schema.String.check(
  Schema.isMinLength(1),
  Schema.isMaxLength(40),
  Schema.makeFilter((secret: string) => secret.isWellFormed() && !secret.includes("\0"))
)

const webhook = Schema.Struct({
  secret: secretArbitrary,
  otherSecret: secretArbitrary,
  time: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 99_999_999_999 })),
  /** Seconds from the signature to the receipt. */
  age: Schema.Int.check(Schema.isBetween({ minimum: -700, maximum: 700 })),
  event: Schema.Struct({ id: Schema.String, type: Schema.String, data: Schema.Record(Schema.String, Schema.Json) }),
  /** Selects a bit. */
  position: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 }))
})

/** A genuine webhook, received immediately. */
const genuine = ({ event, secret, time }: typeof webhook.Type) => {
  const body = JSON.stringify(event)
  return { body, header: `t=${time},v1=${signatureOf(secret, time, body)}`, secret, nowMillis: time * 1000 }
}

/** Returns a copy with one bit flipped. */
const flipped = (bytes: Uint8Array<ArrayBuffer>, position: number): Uint8Array<ArrayBuffer> => {
  const copy = Uint8Array.from(bytes)
  const bit = position % (copy.length * 8)
  copy[bit >> 3]! ^= 1 << (bit & 7)
  return copy
}

const inAnotherRealm = (bytes: Uint8Array): Uint8Array =>
  runInNewContext("Uint8Array.from(bytes)", { bytes: Array.from(bytes) })

const shared = (bytes: Uint8Array): Uint8Array => {
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.length))
  copy.set(bytes)
  return copy
}

/** Returns a buffer that contains the bytes from its ninth on, between others. */
const amid = (bytes: Uint8Array): ArrayBuffer => {
  const buffer = new Uint8Array(bytes.length + 16).fill(0x7b)
  buffer.set(bytes, 8)
  return buffer.buffer
}

describe("a webhook", () => {
  it("passes for the test vector", () => {
    const { body, secret, signature, time } = VECTOR
    assert.strictEqual(signatureOf(secret, time, body), signature)
    const event = verifyWebhook({ body, header: `t=${time},v1=${signature}`, secret, nowMillis: time * 1000 })
    assert.deepStrictEqual<unknown>(event, { id: "evt_123", type: "payment_intent.succeeded" })
  })

  it.prop("passes if it is genuine, as text and as bytes, for 300 seconds either way", [webhook], ([sent]) => {
    const options = genuine(sent)
    const bytes = new TextEncoder().encode(options.body)
    assert.deepStrictEqual<unknown>(verifyWebhook(options), parseJson(options.body))
    assert.deepStrictEqual<unknown>(verifyWebhook({ ...options, body: bytes }), parseJson(options.body))
    const nowMillis = options.nowMillis + sent.age * 1000
    const expected = Math.abs(sent.age) <= 300 ? undefined : "timestamp_outside_tolerance"
    assert.strictEqual(reasonOf({ ...options, nowMillis }), expected)
    // Nothing changes within a second, because the sender counts whole ones.
    assert.strictEqual(reasonOf({ ...options, nowMillis: nowMillis + 999 }), expected)
    assert.isUndefined(reasonOf({ ...options, nowMillis, toleranceSeconds: Math.abs(sent.age) }))
  })

  it.prop("fails with any bit of body, signature, time or secret changed", [webhook], ([sent]) => {
    const options = genuine(sent)
    const { position, secret, time } = sent
    const bytes = new TextEncoder().encode(options.body)
    assert.strictEqual(reasonOf({ ...options, body: flipped(bytes, position) }), "signature_mismatch")
    const signature = flipped(Buffer.from(signatureOf(secret, time, options.body), "hex"), position)
    const header = `t=${time},v1=${Buffer.from(signature).toString("hex")}`
    assert.strictEqual(reasonOf({ ...options, header }), "signature_mismatch")
    // Another time within the tolerance, which only the signature can detect.
    const later = options.header.replace(/^t=\d+/u, `t=${time + 1}`)
    assert.strictEqual(reasonOf({ ...options, header: later }), "signature_mismatch")
    const fails = sent.otherSecret === secret ? undefined : "signature_mismatch"
    assert.strictEqual(reasonOf({ ...options, secret: sent.otherSecret }), fails)
  })

  it.prop("passes with any of several signatures and any of several secrets", [webhook], ([sent]) => {
    const options = genuine(sent)
    const { otherSecret, secret, time } = sent
    const [mine, other] = [signatureOf(secret, time, options.body), signatureOf(otherSecret, time, options.body)]
    for (const signatures of [`v1=${other},v1=${mine}`, `v1=${mine},v1=${other}`, `v1=${mine}, v0=x`]) {
      assert.isUndefined(reasonOf({ ...options, header: `t=${time},${signatures}` }))
    }
    assert.isUndefined(reasonOf({ ...options, header: [`t=${time},v1=${mine}`], secret: [`${secret}?`, secret] }))
    const wrong = [`${secret}?`, `${secret}!`]
    assert.strictEqual(reasonOf({ ...options, secret: wrong }), "signature_mismatch")
  })

  it("fails without a well-formed header", () => {
    const { body, secret, signature, time } = VECTOR
    const options = { body, secret, nowMillis: time * 1000 }
    for (const header of [undefined, null, "", []]) {
      const reason = Array.isArray(header) ? "header_malformed" : "header_missing"
      assert.strictEqual(reasonOf({ ...options, header }), reason, JSON.stringify(header))
    }
    for (const header of [
      "nonsense",
      signature,
      `t=${time}`,
      `v1=${signature}`,
      `t=,v1=${signature}`,
      `t=${time}.0,v1=${signature}`,
      `t=-${time},v1=${signature}`,
      `t=0${time},v1=${signature}`,
      `t=1e9,v1=${signature}`,
      `t=${"9".repeat(400)},v1=${signature}`,
      `t=${time},t=${time},v1=${signature}`,
      `t=${time},v1=`,
      `t=${time},v1=${signature.slice(2)}`,
      `t=${time},v1=${signature}00`,
      `t=${time},v1=${signature.toUpperCase()}`,
      `t=${time},v1=${signature.replace("2a", "zz")}`,
      `t=${time},v1=${signature},v1=1`,
      `t=${time};v1=${signature}`,
      [`t=${time},v1=${signature}`, `t=${time},v1=${signature}`]
    ]) {
      assert.strictEqual(reasonOf({ ...options, header }), "header_malformed", JSON.stringify(header))
    }
  })

  it("fails if it is genuine, but not an event", () => {
    const { secret, time } = VECTOR
    for (const body of ["", "{", "null", "[]", '"evt_1"', '{"id":"evt_1"}', '{"id":1,"type":"a"}']) {
      const header = `t=${time},v1=${signatureOf(secret, time, body)}`
      assert.strictEqual(reasonOf({ body, header, secret, nowMillis: time * 1000 }), "body_malformed", body)
    }
  })

  it("cannot be verified without a secret, or with a parsed body", () => {
    const { body, signature, time } = VECTOR
    const header = `t=${time},v1=${signature}`
    for (const secret of ["", [], [""], undefined as never]) {
      assert.throws(() => verifyWebhook({ body, header, secret, nowMillis: time * 1000 }), TypeError)
    }
    const parsed = parseJson(body) as never
    assert.throws(() => verifyWebhook({ body: parsed, header, secret: VECTOR.secret }), TypeError)
  })

  const carriers: ReadonlyArray<readonly [string, (bytes: Uint8Array<ArrayBuffer>) => VerifyWebhookOptions["body"]]> = [
    ["a Buffer", (bytes) => Buffer.from(bytes)],
    ["an ArrayBuffer", (bytes) => bytes.slice().buffer],
    ["an ArrayBuffer of another realm", (bytes) => inAnotherRealm(bytes).buffer],
    ["a Uint8Array of another realm", inAnotherRealm],
    ["a SharedArrayBuffer", (bytes) => shared(bytes).buffer],
    ["a Uint8Array on a SharedArrayBuffer", shared],
    ["a DataView on a part of a buffer", (bytes) => new DataView(amid(bytes), 8, bytes.length)],
    ["an Int8Array on a part of a buffer", (bytes) => new Int8Array(amid(bytes), 8, bytes.length)],
    ["a Uint8ClampedArray", (bytes) => new Uint8ClampedArray(bytes)],
    ["a Uint16Array on a part of a buffer", (bytes) => new Uint16Array(amid(bytes), 8, bytes.length / 2)],
    ["a Float64Array", (bytes) => new Float64Array(bytes.slice().buffer)]
  ]

  it.prop("passes as bytes in any container, and with no other bytes", [webhook], ([{ event, secret, time }]) => {
    const text = JSON.stringify(event)
    // Blanks fill the last element of a typed array.
    const body = text + " ".repeat(7 - ((Buffer.byteLength(text) + 7) % 8))
    const header = `t=${time},v1=${signatureOf(secret, time, body)}`
    const bytes = new TextEncoder().encode(body)
    for (const [carrier, carry] of carriers) {
      const options = { header, secret, nowMillis: time * 1000, body: carry(bytes) }
      assert.deepStrictEqual<unknown>(verifyWebhook(options), JSON.parse(body), carrier)
      assert.strictEqual(reasonOf({ ...options, body: carry(flipped(bytes, time)) }), "signature_mismatch", carrier)
    }
  })

  it.effect("is verified with the clock and the secrets of an Effect program", () =>
    Effect.gen(function* () {
      const { body, secret, signature, time } = VECTOR
      yield* TestClock.setTime(time * 1000)
      const options = { body, header: `t=${time},v1=${signature}`, secret: Redacted.make(secret) }
      assert.strictEqual((yield* verifyWebhookEffect(options)).type, "payment_intent.succeeded")
      const bytes = new TextEncoder().encode(body).buffer
      assert.strictEqual((yield* verifyWebhookEffect({ ...options, body: bytes })).type, "payment_intent.succeeded")
      const rolled = [Redacted.make("whsec_new"), options.secret]
      assert.strictEqual((yield* verifyWebhookEffect({ ...options, secret: rolled })).id, "evt_123")
      yield* TestClock.adjust("301 seconds")
      const error = yield* Effect.flip(verifyWebhookEffect(options))
      assert.strictEqual(error.reason, "timestamp_outside_tolerance")
      assert.notInclude(error.message, signature)
    })
  )
})

/** For the compiler, never called: the type of an event determines that of its object. */
export const narrowed = (event: WebhookEvent): void => {
  if (event.type === "payment_intent.succeeded") expectTypeOf(event.data.object).toEqualTypeOf<PaymentIntent>()
  if (event.type === "charge.refunded") expectTypeOf(event.data.object).toEqualTypeOf<Charge>()
  if (event.type === "customer.updated") {
    expectTypeOf(event.data.object).toEqualTypeOf<Customer>()
    expectTypeOf(event.data.previous_attributes?.email).toEqualTypeOf<string | null | undefined>()
    // @ts-expect-error a customer has no amount
    void event.data.object.amount
  }
  // @ts-expect-error an unknown type
  if (event.type === "customer.paid") throw new Error("never")
}
