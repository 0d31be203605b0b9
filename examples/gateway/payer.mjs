// The pages that payers see, a back office that refunds, and the messages to Till. A real gateway's inputs would send the card to its vault.
import { randomBytes } from "node:crypto"
import { readFileSync } from "node:fs"
import { addToken, durable, operations, payments, put } from "./journal.mjs"
import { seconds, signed } from "./signature.mjs"

const { PAGE_ORIGINS = "http://localhost:4242", TILL_WEBHOOKS } = process.env
const ORIGINS = PAGE_ORIGINS.split(" ")

/** Test numbers, and what happens to their payments. */
const NUMBERS = { 4242424242424242: "approve", 4000000000000002: "decline", 4000000000003220: "challenge" }

/** Sends Till a message until Till has confirmed it. */
export const notify = async (message) => {
  const body = JSON.stringify(message)
  if (!TILL_WEBHOOKS) return
  for (let pause = 1000; pause < 3_600_000; pause *= 2) {
    const headers = signed(`msg_${randomBytes(9).toString("hex")}`, body)
    const answer = await fetch(TILL_WEBHOOKS, { method: "POST", headers, body }).catch(() => null)
    if (answer?.ok) return
    await new Promise((resolve) => setTimeout(resolve, pause))
  }
}

const FIELDS = readFileSync(new URL("fields.html", import.meta.url), "utf8").replace(
  "const origins = ORIGINS",
  `const origins = ${JSON.stringify(ORIGINS)}`
)

const challenge = (id) => `<!doctype html><title>Your bank</title><h1>Is it you?</h1>
<form method="post" action="/challenge/${id}"><button name="passed" value="yes">Yes</button>
<button name="passed" value="no">No</button></form>`

const html = (response, status, body, frames = "'none'") => {
  const headers = { "content-type": "text/html; charset=utf-8", "content-security-policy": `frame-ancestors ${frames}` }
  response.writeHead(status, headers).end(body)
}

/** Refunds a payment as an employee of the gateway would. The refund's reference is the id of its state. */
const refund = async (response, payment, amount) => {
  const left = payment?.status === "captured" ? payment.captured - payment.refunded : 0
  if (!(Number.isSafeInteger(amount) && amount > 0 && amount <= left)) return response.writeHead(400).end()
  const { currency, id: paid } = payment
  const id = `gwr_${randomBytes(9).toString("hex")}`
  const state = {
    id,
    kind: "refund",
    payment: paid,
    reference: id,
    amount,
    currency,
    at: seconds(),
    status: "approved"
  }
  put({ operation: { state }, payment: { ...payment, refunded: payment.refunded + amount } })
  await durable()
  void notify({ type: "refund.created", payment: paid, refund: { reference: id, amount } })
  response.end(id)
}

export const page = async ({ method, url }, response, text, settle) => {
  if (url === "/fields") return html(response, 200, FIELDS, PAGE_ORIGINS)
  if (url === "/tokens" && method === "POST") {
    const number = text.replace(/\D/g, "")
    if (!Object.hasOwn(NUMBERS, number)) return response.writeHead(400).end()
    const token = addToken(NUMBERS[number], number.slice(-4))
    await durable()
    return response.end(token)
  }
  const refunded = /^\/refunds\/(\w+)$/.exec(url)?.[1]
  if (refunded !== undefined && method === "POST") return refund(response, payments.get(refunded), Number(text))
  const id = /^\/challenge\/([\w-]+)$/.exec(url)?.[1]
  const operation = operations.get(id)
  if (operation?.body === undefined) return html(response, 404, "There is no such page.")
  if (method !== "POST") return html(response, 200, challenge(id))
  await settle(id, text === "passed=yes")
  const back = JSON.parse(operation.body).return_url ?? ORIGINS[0]
  response.writeHead(303, { location: back }).end()
}
