// A shop with its own form: checkout.js sends the card from the payer's browser to Till, never to this server.
//
//   TILL_API_KEY=sk_test_… TILL_PK_TEST=pk_test_… node examples/custom/shop.mjs
import { randomUUID } from "node:crypto"
import { readFile } from "node:fs/promises"
import { createServer } from "node:http"

const till = process.env.TILL_URL ?? "http://localhost:4242"
const secretKey = process.env.TILL_API_KEY ?? ""
const publishableKey = process.env.TILL_PK_TEST ?? ""

/** Sends a POST to Till's API. */
const post = async (path, body) => {
  const authorization = `Basic ${btoa(`${secretKey}:`)}`
  const headers = { authorization, "content-type": "application/json", "idempotency-key": randomUUID() }
  const response = await fetch(`${till}/v1/${path}`, { method: "POST", headers, body: JSON.stringify(body) })
  const answer = await response.json()
  if (!response.ok) throw new Error(`${answer.error.message} See ${answer.error.doc_url}`)
  return answer
}

/** The only product. A real shop makes its products once and keeps their ids. */
const espresso = await post("products", {
  name: "House Espresso, 1 kg",
  default_price_data: { currency: "usd", unit_amount: 2450 }
})

const routes = {
  "GET /": async () => {
    const html = await readFile(new URL("shop.html", import.meta.url), "utf8")
    return { type: "text/html", body: html.replaceAll("{TILL}", till).replaceAll("{PUBLISHABLE_KEY}", publishableKey) }
  },

  "POST /sessions": async () => {
    const session = await post("checkout_sessions", {
      mode: "payment",
      ui_mode: "custom",
      line_items: [{ price: espresso.default_price, quantity: 1 }]
    })
    return { type: "application/json", body: JSON.stringify(session.client_secret) }
  }
}

const server = createServer(async (request, response) => {
  try {
    const answer = await routes[`${request.method} ${request.url?.split("?")[0]}`]?.()
    if (answer === undefined) response.writeHead(404).end("Not found")
    else response.writeHead(200, { "content-type": `${answer.type}; charset=utf-8` }).end(answer.body)
  } catch (error) {
    console.error(error.message)
    response.writeHead(500).end("Something went wrong. You have not been charged.")
  }
})
server.listen(Number(process.env.PORT ?? 3000), "localhost", () =>
  console.log(`The shop is open: http://localhost:${server.address().port}`)
)
