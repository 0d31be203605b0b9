// All that the gateway remembers: a file with a line per change, which holds the whole state of all that changed.
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"

export const operations = new Map()
export const payments = new Map()
export const tokens = new Map()

const apply = ({ operation, payment, token }) => {
  if (operation) operations.set(operation.state.id, operation)
  if (payment) payments.set(payment.id, payment)
  if (token) tokens.set(token.id, token)
}

const PATH = process.env.GATEWAY_FILE ?? "gateway.log"
const file = fs.openSync(PATH, "a+")
// A kill can cut off the last line. Its request had no answer.
const stored = fs.readFileSync(PATH, "utf8")
const whole = stored.slice(0, stored.lastIndexOf("\n") + 1)
fs.ftruncateSync(file, Buffer.byteLength(whole))
for (const line of whole.split("\n").slice(0, -1)) apply(JSON.parse(line))

let lines = ""
let flush

/** Applies a change in memory. No answer may depend on it before `durable` resolves. */
export const put = (change) => {
  apply(change)
  lines += `${JSON.stringify(change)}\n`
}

/** Resolves once every change so far is on the disk. An error ends the process, so that nothing is answered. */
export const durable = () =>
  (flush ??= new Promise((resolve) => {
    setImmediate(() => {
      if (lines !== "") {
        fs.writeFileSync(file, lines)
        fs.fsyncSync(file)
      }
      lines = ""
      flush = undefined
      resolve()
    })
  }))

/** Keeps a card under a new token. Every card of this gateway is a Visa of 2034. */
export const addToken = (behaviour, last4, id = `tok_${randomBytes(12).toString("hex")}`) => {
  const card = { brand: "visa", last4, exp_month: 12, exp_year: 2034, funding: "credit", country: "US" }
  if (!tokens.has(id)) put({ token: { id, behaviour, card: { ...card, fingerprint: last4 } } })
  return id
}
