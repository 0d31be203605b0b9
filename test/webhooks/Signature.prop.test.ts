/**
 * The signature of deliveries, and the schedule of attempts (spec: Events; semantics webhooks.signature,
 * webhooks.schedule).
 */
import { assert, describe, it } from "@effect/vitest"
import { Redacted, Schema } from "effect"
import { createHash } from "node:crypto"
import { type AttemptResult, nextAfter, unanswered } from "../../src/webhooks/AttemptResult.ts"
import { signatureOf } from "../../src/domain/WebhookSignature.ts"

/** HMAC-SHA256 by RFC 2104, from the hash alone. */
const hmacSha256 = (key: Buffer, text: Buffer): Buffer => {
  const sha256 = (...parts: ReadonlyArray<Buffer>) => createHash("sha256").update(Buffer.concat(parts)).digest()
  const block = Buffer.alloc(64)
  ;(key.length > 64 ? sha256(key) : key).copy(block)
  const padded = (pad: number) => block.map((byte) => byte ^ pad) as Buffer
  return sha256(padded(0x5c), sha256(padded(0x36), text))
}

const signs = (secrets: ReadonlyArray<string>, seconds: number, body: string): string =>
  signatureOf(
    secrets.map((secret) => Redacted.make(secret)),
    seconds,
    body
  )

/** Well-formed text, as all secrets and bodies are: they come from a random generator and from JSON. */
const text = (maximum: number) =>
  Schema.String.check(
    Schema.isMaxLength(maximum),
    Schema.makeFilter((value: string) => value.isWellFormed())
  )

const signed = Schema.Struct({
  secrets: Schema.Array(text(150)).check(Schema.isMinLength(1), Schema.isMaxLength(3)),
  seconds: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 99_999_999_999 })),
  body: text(400)
})

describe("a delivery's signature", () => {
  it("matches the test vector", () => {
    const body = '{"id":"evt_123","type":"payment_intent.succeeded"}'
    const signature = "2ad968208b3f4ecfded3a7607f0df647249560fb9e9febeec80ff784f0276a1e"
    assert.strictEqual(signs(["whsec_your_secret"], 1_709_913_600, body), `t=1709913600,v1=${signature}`)
  })

  it.prop("is an HMAC with each secret, in their order", [signed], ([{ body, seconds, secrets }]) => {
    const entries = secrets.map((secret) => {
      const hmac = hmacSha256(Buffer.from(secret, "utf8"), Buffer.from(`v1=${seconds}.${body}`, "utf8"))
      return `,v1=${hmac.toString("hex")}`
    })
    assert.strictEqual(signs(secrets, seconds, body), `t=${seconds}${entries.join("")}`)
  })
})

/** Minutes before each attempt but the first, from the specification's table. */
const MINUTES: Readonly<Record<number, number>> = {
  2: 1,
  3: 5,
  4: 30,
  5: 2 * 60,
  6: 8 * 60,
  7: 24 * 60,
  8: 72 * 60
}

const FAILED = unanswered("The connection was refused.")
const DELIVERED: AttemptResult = { status: 204, error: null }

describe("the schedule of attempts", () => {
  it("matches the specification", () => {
    for (let attempt = 1; attempt < 8; attempt++) {
      assert.deepStrictEqual(nextAfter(attempt, FAILED), { retryAfterMillis: MINUTES[attempt + 1]! * 60_000 })
    }
    assert.strictEqual(nextAfter(8, FAILED), "exhausted")
    for (let attempt = 1; attempt <= 8; attempt++) assert.strictEqual(nextAfter(attempt, DELIVERED), "delivered")
  })
})
