/** Signatures as in Standard Webhooks (semantics gateways.signature). */
import { assert, describe, it } from "@effect/vitest"
import { Redacted, Schema } from "effect"
import { createHmac, randomBytes } from "node:crypto"
import { isSecret, sign, TOLERANCE_SECONDS, verify } from "../../src/domain/StandardWebhooks.ts"

const secretOf = (bytes: Uint8Array) => Redacted.make(`whsec_${Buffer.from(bytes).toString("base64")}`)
const SECRET = secretOf(Buffer.alloc(32, 7))
const OTHER = secretOf(Buffer.alloc(32, 8))

const Message = Schema.Struct({
  id: Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(40)),
  seconds: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 99_999_999_999 })),
  body: Schema.String.check(Schema.isMaxLength(300))
})

describe("gateways.signature: a signature", () => {
  it("matches the test vector of Standard Webhooks", () => {
    const secret = Redacted.make("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    const headers = sign([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, '{"test": 2432232314}')
    assert.deepStrictEqual(headers, {
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    })
  })

  it.prop("is the HMAC of id, time and body, for each secret in order", [Message], ([{ body, id, seconds }]) => {
    const expected = [7, 8].map(
      (byte) => `v1,${createHmac("sha256", Buffer.alloc(32, byte)).update(`${id}.${seconds}.${body}`).digest("base64")}`
    )
    assert.strictEqual(sign([SECRET, OTHER], id, seconds, body)["webhook-signature"], expected.join(" "))
  })

  it.prop("of any of the secrets proves a message's id", [Message], ([{ body, id, seconds }]) => {
    const bytes = Buffer.from(body)
    const headers = sign([OTHER], id, seconds, bytes)
    assert.strictEqual(verify([SECRET, OTHER], headers, bytes, seconds), id)
    assert.strictEqual(verify([OTHER], sign([SECRET, OTHER], id, seconds, bytes), bytes, seconds), id)
    assert.strictEqual(verify([SECRET], headers, bytes, seconds), null)
  })

  it.prop("is lost with any change of the body, the id or the time", [Message, Schema.Int], ([message, at]) => {
    const body = Buffer.from(message.body)
    const headers = sign([SECRET], message.id, message.seconds, body)
    const changed = Buffer.concat([body, Buffer.from("x")])
    changed[Math.abs(at) % changed.length]! ^= 1
    assert.strictEqual(verify([SECRET], headers, changed, message.seconds), null)
    const { seconds } = message
    assert.strictEqual(verify([SECRET], { ...headers, "webhook-id": `${message.id}x` }, body, seconds), null)
    assert.strictEqual(verify([SECRET], { ...headers, "webhook-timestamp": String(seconds + 1) }, body, seconds), null)
  })

  it("counts for 300 seconds before and after its time", () => {
    const body = Buffer.from("{}")
    const headers = sign([SECRET], "msg_1", 1000, body)
    for (const now of [1000 - TOLERANCE_SECONDS, 1000, 1000 + TOLERANCE_SECONDS]) {
      assert.strictEqual(verify([SECRET], headers, body, now), "msg_1")
    }
    for (const now of [999 - TOLERANCE_SECONDS, 1001 + TOLERANCE_SECONDS]) {
      assert.isNull(verify([SECRET], headers, body, now))
    }
  })

  const any = Schema.Record(Schema.String, Schema.String)
  it.prop("is found in no other headers", [any, Schema.String], ([headers, body]) => {
    assert.isNull(verify([SECRET], headers, Buffer.from(body), 0))
    const named = {
      "webhook-id": "msg_1",
      "webhook-timestamp": "0",
      "webhook-signature": Object.values(headers).join(" ")
    }
    assert.isNull(verify([SECRET], named, Buffer.from(body), 0))
  })
})

describe("gateways.signature: a secret", () => {
  it.each([24, 32, 64])("has %i bytes", (length) => {
    assert.isTrue(isSecret(Redacted.value(secretOf(randomBytes(length)))))
  })

  it.each([
    ["too few bytes", `whsec_${Buffer.alloc(23).toString("base64")}`],
    ["too many bytes", `whsec_${Buffer.alloc(65).toString("base64")}`],
    ["no prefix", Buffer.alloc(32).toString("base64")],
    ["other characters", `whsec_${"-_".repeat(20)}`],
    ["something behind it", `whsec_${Buffer.alloc(32).toString("base64")}\n`],
    ["nothing", ""]
  ])("is refused with %s", (_, secret) => {
    assert.isFalse(isSecret(secret))
  })
})
