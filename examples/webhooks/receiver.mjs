// Receives Till's webhooks with nothing but Node (18 or newer):
//   TILL_WEBHOOK_SECRET=whsec_… PORT=3000 node receiver.mjs
import { createHmac, timingSafeEqual } from "node:crypto"
import { createServer } from "node:http"

// Two, separated by a comma, during the grace period of a rolled secret.
const secrets = (process.env.TILL_WEBHOOK_SECRET ?? "").split(",").filter((secret) => secret !== "")
if (secrets.length === 0) throw new Error("TILL_WEBHOOK_SECRET must hold the endpoint's secret, whsec_…")

const TOLERANCE_SECONDS = 300
const BODY_BYTES_MAX = 1024 * 1024

/** True if Till signed exactly these bytes, with one of our secrets, in the last five minutes. */
const isGenuine = (body, header = "") => {
  const entries = header.split(",").map((entry) => entry.trim().split("="))
  const time = entries.find(([name]) => name === "t")?.[1] ?? ""
  if (!/^\d{1,12}$/.test(time)) return false
  if (Math.abs(Math.floor(Date.now() / 1000) - Number(time)) > TOLERANCE_SECONDS) return false
  const signatures = entries.filter(([name]) => name === "v1").map(([, hex = ""]) => Buffer.from(hex, "hex"))
  return secrets.some((secret) => {
    const expected = createHmac("sha256", secret).update(`v1=${time}.`).update(body).digest()
    return signatures.some((given) => given.length === expected.length && timingSafeEqual(given, expected))
  })
}

// An event can arrive more than once. Programs with a database store the IDs in a unique column, in the transaction
// that processes the event.
const handled = new Map()

const handle = async (event) => {
  console.log(event.id, event.type)
}

/** Concurrent attempts wait for the same promise; after a failure, the next attempt starts again. */
const handleOnce = (event) => {
  if (!handled.has(event.id)) handled.set(event.id, (async () => handle(event))())
  return handled.get(event.id).catch((error) => {
    handled.delete(event.id)
    throw error
  })
}

/** Reads the request's body unchanged. Parsed and serialized again, it would have other bytes than Till signed. */
const bodyOf = async (request) => {
  const chunks = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += chunk.length
    if (bytes <= BODY_BYTES_MAX) chunks.push(chunk)
  }
  return bytes <= BODY_BYTES_MAX ? Buffer.concat(chunks) : undefined
}

const statusFor = async (request) => {
  const body = await bodyOf(request)
  if (body === undefined) return 413
  if (!isGenuine(body, request.headers["x-signature"])) return 400
  await handleOnce(JSON.parse(body.toString("utf8")))
  return 200
}

const server = createServer((request, response) => {
  statusFor(request)
    .catch((error) => {
      // After any status other than 2xx, Till sends the event again later.
      console.error(error)
      return 500
    })
    .then((status) => response.writeHead(status).end())
})
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`Listening on http://127.0.0.1:${server.address().port}`)
})
