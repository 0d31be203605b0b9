// Signatures as in Standard Webhooks, of requests, answers and messages. GATEWAY_SECRET is whsec_ and base64.
import { createHmac, timingSafeEqual } from "node:crypto"

const TOLERANCE_SECONDS = 300
const key = Buffer.from((process.env.GATEWAY_SECRET ?? "").replace(/^whsec_/, ""), "base64")
if (key.length < 24) throw new Error("GATEWAY_SECRET must be whsec_ and the base64 of at least 24 random bytes")

export const seconds = () => Math.floor(Date.now() / 1000)

const signatureOf = (id, time, body) =>
  `v1,${createHmac("sha256", key).update(`${id}.${time}.`).update(body).digest("base64")}`

/** The headers of an answer to the request with this id, or of a message with it. */
export const signed = (id, body, time = String(seconds())) => ({
  "content-type": "application/json",
  "webhook-id": id,
  "webhook-timestamp": time,
  "webhook-signature": signatureOf(id, time, body)
})

/** True if Till has signed exactly this body in the last five minutes. */
export const isSigned = ({ "webhook-id": id, "webhook-timestamp": time, "webhook-signature": given = "" }, body) => {
  if (!(Math.abs(seconds() - Number(time)) <= TOLERANCE_SECONDS)) return false
  const expected = Buffer.from(signatureOf(id, time, body))
  return given.split(" ").some((one) => {
    const bytes = Buffer.from(one)
    return bytes.length === expected.length && timingSafeEqual(bytes, expected)
  })
}
