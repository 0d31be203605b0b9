/**
 * The limit: `node:http` that reads the request and answers a constant of the same shape and size as Till's answer.
 * It parses nothing, computes nothing and stores nothing; no Node server can be faster by much.
 */
import { listText, newPaymentIntent } from "./PaymentIntent.ts"
import { bodyOf, serve } from "./serve.ts"

const body = { amount: 2000, currency: "usd", description: "Order 6735", metadata: { order: "6735" } }
const created = JSON.stringify(newPaymentIntent(body))
const confirmed = JSON.stringify(newPaymentIntent({ ...body, payment_method: "pm_card_visa", confirm: true }))
const list = listText(Array.from({ length: 10 }, () => JSON.stringify(newPaymentIntent(body))))

serve(async (request) => {
  if (request.method === "GET") return request.url!.includes("?") ? list : created
  return (await bodyOf(request)).includes(`"confirm":true`) ? confirmed : created
})
