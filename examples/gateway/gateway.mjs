// A payment gateway that speaks Till's protocol, without any money, for Node 20 or newer. README.md has the commands.
import { createServer } from "node:http"
import { text as textOf } from "node:stream/consumers"
import { addToken, durable, operations, payments, put, tokens } from "./journal.mjs"
import { notify, page } from "./payer.mjs"
import { isSigned, seconds, signed } from "./signature.mjs"

const { GATEWAY_LIVEMODE, PORT = "4343" } = process.env
const livemode = GATEWAY_LIVEMODE === "true"
const HERE = `http://localhost:${PORT}`

class Refusal extends Error {
  constructor(code, message, param = null, status = 400) {
    super(message)
    Object.assign(this, { code, param, status })
  }
}
const tokenOf = (id) => {
  if (!tokens.has(id)) throw new Refusal("unknown_token", "There is no such token.", "token")
  return tokens.get(id)
}
const TEST_TOKENS = { approve: "4242", decline: "0002", challenge: "3220", pending: "0077" }
for (const [behaviour, last4] of Object.entries(TEST_TOKENS)) addToken(behaviour, last4, `tok_${behaviour}`)

/** The part of an operation's state that is its own, and its payment afterwards. */
const both = (part, payment) => [part, payment]
const approved = ({ amount, capture }, payment) => {
  if (capture === "automatic") return both({ status: "approved" }, { ...payment, status: "captured", captured: amount })
  const capture_before = seconds() + 604_800
  return both({ status: "approved", capture_before }, { ...payment, status: "held", held: amount })
}
const declined = (code, payment) => both({ status: "declined", decline: { code } }, { ...payment, status: "open" })
const change = (id, part, payment) => {
  const { body, state } = operations.get(id)
  put({ operation: { body, state: { ...state, challenge: null, ...part } }, payment })
}
const endChallenge = ({ status, waiting }) => status === "challenged" && change(waiting, { status: "not_executed" })
/** The answer to a capture or void of a payment that is final; undefined if it is not. */
const tooLate = (payment) => {
  const payment_status = { captured: "succeeded", canceled: "canceled" }[payment.status]
  return payment_status && both({ status: "too_late", payment_status }, payment)
}
/** A refusal changes nothing. */
const kinds = {
  authorize(operation, payment) {
    const { behaviour } = tokenOf(operation.token)
    const isFinal = !["open", "challenged"].includes(payment.status)
    if (isFinal) throw new Refusal("already_authorized", `The payment is ${payment.status}.`)
    endChallenge(payment)
    const waiting = operation.id
    if (behaviour === "decline") return declined("insufficient_funds", payment)
    if (behaviour === "pending") return both({ status: "pending" }, { ...payment, status: "pending", waiting })
    if (behaviour === "approve" || operation.authenticated) return approved(operation, payment)
    if (operation.off_session) return declined("authentication_required", payment)
    const challenge = { url: `${HERE}/challenge/${operation.id}` }
    return both({ status: "challenge", challenge }, { ...payment, status: "challenged", waiting })
  },
  capture(operation, payment) {
    if (tooLate(payment)) return tooLate(payment)
    if (payment.status !== "held") throw new Refusal("not_capturable", "Nothing is held.")
    if (operation.amount > payment.held) throw new Refusal("amount_too_large", `${payment.held} is held.`, "amount")
    return both({ status: "approved" }, { ...payment, status: "captured", captured: operation.amount })
  },
  void(_operation, payment) {
    if (tooLate(payment)) return tooLate(payment)
    if (payment.status === "pending") throw new Refusal("not_capturable", "The payment is pending.")
    endChallenge(payment)
    return both({ status: "approved" }, { ...payment, status: "canceled" })
  },
  refund({ amount, id }, payment) {
    const left = payment.status === "captured" ? payment.captured - payment.refunded : 0
    if (amount > left) throw new Refusal("amount_too_large", `${left} is left to refund.`, "amount")
    const reference = `gwr_${id}`
    return both({ status: "approved", reference }, { ...payment, refunded: payment.refunded + amount })
  }
}
/** Carries out an operation that is new. */
const carryOut = (operation, body) => {
  const { amount, currency, id, kind, payment: paymentId } = operation
  const isValid = Object.hasOwn(kinds, kind) && paymentId && Number.isSafeInteger(amount) && amount > 0
  if (!isValid) throw new Refusal("bad_request", "The operation is not valid.")
  const isKnown = kind === "authorize" || payments.has(paymentId)
  if (!isKnown) throw new Refusal("unknown_payment", "There is no such payment.", "payment")
  const start = { id: paymentId, status: "open", currency, refunded: 0, reference: `gw_${paymentId}` }
  const payment = payments.get(paymentId) ?? start
  if (currency !== payment.currency) throw new Refusal("bad_request", "The payment has another currency.", "currency")
  const [part, next] = kinds[kind](operation, payment)
  const state = { id, kind, payment: paymentId, reference: next.reference, amount, currency, at: seconds(), ...part }
  put({ operation: { body, state }, payment: next })
  if (state.status === "pending") settleLater(id)
  return state
}
const execute = (operation) => {
  const { id } = operation
  const body = JSON.stringify(operation)
  const known = operations.get(id)
  if (known?.body && known.body !== body) throw new Refusal("mismatch", "The operation has another body.", null, 409)
  if (known?.refusal) throw new Refusal(...known.refusal)
  if (known) return known.state
  try {
    return carryOut(operation, body)
  } catch (error) {
    // What was refused once stays refused: the request may arrive again, later.
    const refusal = [error.code, error.message, error.param]
    if (id && error instanceof Refusal) put({ operation: { body, refusal, state: notExecuted(id) } })
    throw error
  }
}
const notExecuted = (id) => ({ id, status: "not_executed", at: seconds() })

/** Ends an operation that waits for a payer or for time. */
const settle = async (id, passed) => {
  const { body, state } = operations.get(id) ?? {}
  const payment = payments.get(state?.payment)
  if (payment?.waiting !== id || !["challenge", "pending"].includes(state.status)) return
  change(id, ...(passed ? approved(JSON.parse(body), payment) : declined("authentication_required", payment)))
  await durable()
  void notify({ type: "operation.updated", operation: { id, payment: payment.id } })
}
const settleLater = (id) => setTimeout(settle, 3000, id, true)
for (const { state } of operations.values()) if (state.status === "pending") settleLater(state.id)

const handlers = {
  check: () => ({
    protocol: 1,
    name: "Example gateway",
    livemode,
    fields: { frame: `${HERE}/fields` },
    test_tokens: livemode ? null : Object.fromEntries(Object.keys(TEST_TOKENS).map((name) => [name, `tok_${name}`]))
  }),
  "token.describe": ({ token }) => tokenOf(token).card,
  "operation.execute": ({ operation }) => execute(operation),
  "operation.retrieve": ({ id }) => operations.get(id)?.state ?? { id, status: "never_seen" },
  "operation.abandon": ({ id }) => {
    if (!operations.has(id)) put({ operation: { state: notExecuted(id) } })
    const { payment, status } = operations.get(id).state
    if (status === "challenge") change(id, { status: "not_executed" }, { ...payments.get(payment), status: "open" })
    return operations.get(id).state
  },
  "operation.list": ({ after, limit, since }) => {
    const all = [...operations.values()].map(({ state }) => state).filter(({ at }) => at >= since)
    const from = all.findIndex(({ id }) => id === after) + 1
    const data = all.slice(from, from + limit)
    return { data, next: from + limit < all.length ? data.at(-1).id : null }
  }
}
const answerTo = (headers, text) => {
  if (!isSigned(headers, text)) throw new Refusal("unauthorized", "The signature is not valid.", null, 401)
  const message = JSON.parse(text)
  if (!Object.hasOwn(handlers, message?.type)) throw new Refusal("unsupported", "There is no such type.", "type")
  return handlers[message.type](message)
}
const server = createServer(async (request, response) => {
  const text = await textOf(request)
  if (request.url !== "/") return page(request, response, text, settle)
  let [status, body] = [200]
  try {
    body = answerTo(request.headers, text)
  } catch (error) {
    // An answer without a signature: it is unknown whether anything happened.
    if (!(error instanceof Refusal || error instanceof SyntaxError)) return response.writeHead(500).end()
    const { code = "bad_request", message, param = null } = error
    status = error.status ?? 400
    body = { error: { code, message, param } }
  }
  await durable()
  const json = JSON.stringify(body)
  response.writeHead(status, signed(request.headers["webhook-id"] ?? "none", json)).end(json)
})
server.listen(Number(PORT), "127.0.0.1", () => console.log(`The example gateway listens at ${HERE}`))
