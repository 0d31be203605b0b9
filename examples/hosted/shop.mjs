// A shop with Till's hosted checkout: the payer goes to Till's page, and returns after paying.
//
//   TILL_API_KEY=sk_test_… node examples/hosted/shop.mjs
import { randomUUID } from "node:crypto"
import { createServer } from "node:http"

const till = process.env.TILL_URL ?? "http://localhost:4242"
const secretKey = process.env.TILL_API_KEY ?? ""

/** Calls Till's API: POST with a body, GET without. */
const api = async (path, body) => {
  const headers = { authorization: `Basic ${btoa(`${secretKey}:`)}` }
  const json = { ...headers, "content-type": "application/json", "idempotency-key": randomUUID() }
  const post = { method: "POST", headers: json, body: JSON.stringify(body) }
  const response = await fetch(`${till}/v1/${path}`, body === undefined ? { headers } : post)
  const answer = await response.json()
  if (!response.ok) throw new Error(`${answer.error.message} See ${answer.error.doc_url}`)
  return answer
}

/** The only product. A real shop makes its products once and keeps their ids. */
const espresso = await api("products", {
  name: "House Espresso, 1 kg",
  default_price_data: { currency: "usd", unit_amount: 2450 }
})

const page = (content) => `<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Lumen Coffee</title><style>
:root { color-scheme: light dark; font: 1rem/1.5 system-ui } main { max-width: 72rem; margin: auto; padding: 1rem }
button { font: inherit; padding: 0.5rem 1.5rem }</style><main>${content}</main>`

const routes = {
  "GET /": () => ({
    html: page(`<h1>Lumen Coffee</h1><p>House Espresso, 1 kg: $24.50</p>
      <form method="post" action="/buy"><button>Buy</button></form>`)
  }),

  "POST /buy": async (_, origin) => {
    const session = await api("checkout_sessions", {
      mode: "payment",
      line_items: [{ price: espresso.default_price, quantity: 1 }],
      success_url: `${origin}/thanks?session={CHECKOUT_SESSION_ID}`,
      cancel_url: `${origin}/`
    })
    return { location: session.url }
  },

  // Anybody can open this address, so it fetches the session from Till. To ship an order, use a webhook (see ../webhooks):
  // some payers close the window before they return.
  "GET /thanks": async (query) => {
    const session = await api(`checkout_sessions/${encodeURIComponent(query.get("session") ?? "")}`)
    const isPaid = session.payment_status === "paid"
    return { html: page(`<h1>${isPaid ? "Thank you, it is paid" : "Your payment is being processed"}</h1>`) }
  }
}

const server = createServer(async (request, response) => {
  const url = new URL(request.url ?? "/", `http://${request.headers.host}`)
  try {
    const route = routes[`${request.method} ${url.pathname}`]
    const answer = await route?.(url.searchParams, url.origin)
    if (answer === undefined) response.writeHead(404).end("Not found")
    else if (answer.location !== undefined) response.writeHead(303, { location: answer.location }).end()
    else response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(answer.html)
  } catch (error) {
    console.error(error.message)
    response.writeHead(500).end("Something went wrong. You have not been charged.")
  }
})
server.listen(Number(process.env.PORT ?? 3000), "localhost", () =>
  console.log(`The shop is open: http://localhost:${server.address().port}`)
)
