/**
 * The gateway's process: speaks Till's protocol over raw sockets, like the sink of webhooks, because every microsecond
 * here is taken from the server under test. It approves every authorization, keeps everything in memory, and counts
 * what would charge a payer twice.
 */
import { createHmac } from "node:crypto"
import { type AddressInfo, createServer, type Server, type Socket } from "node:net"
import { RequestReader } from "../webhooks/RequestReader.ts"
import { serve } from "../Worker.ts"
import type { GatewayAnswer, GatewayCommand, Ledger } from "./GatewayCommand.ts"

const HELD_MILLIS_MAX = 15_000
const HELD_PAUSE_MILLIS = 20

interface Operation {
  readonly id: string
  readonly payment: string
  readonly amount: number
  readonly currency: string
}

let key = Buffer.alloc(0)
let server: Server
let port = 0
let answer: GatewayAnswer = { kind: "after", millis: 0 }
const sockets = new Set<Socket>()
/** The bodies of the operations, by id. */
const bodies = new Map<string, string>()
const states = new Map<string, object>()
const charged = new Set<string>()
let [repeated, wrong, held] = [0, 0, 0]

const seconds = (): number => Math.floor(Date.now() / 1000)

const execute = (operation: Operation): object => {
  const { amount, currency, id, payment } = operation
  const body = JSON.stringify(operation)
  const known = bodies.get(id)
  if (known !== undefined) {
    repeated++
    if (known !== body) wrong++
    return states.get(id)!
  }
  if (charged.has(payment)) wrong++
  charged.add(payment)
  const state = { id, status: "approved", payment, reference: `gw_${payment}`, amount, currency, at: seconds() }
  bodies.set(id, body)
  states.set(id, state)
  return state
}

const CARD = { brand: "visa", last4: "4242", exp_month: 12, exp_year: 2034, funding: "credit", country: "US" }

const answerTo = (message: { readonly type: string; readonly id: string; readonly operation: Operation }): object => {
  switch (message.type) {
    case "check":
      return { protocol: 1, name: "Bench", livemode: true }
    case "token.describe":
      return CARD
    case "operation.execute":
      return execute(message.operation)
    case "operation.retrieve":
      return states.get(message.id) ?? { id: message.id, status: "never_seen" }
    default:
      throw new Error(`The bench's gateway has no ${message.type}`)
  }
}

const ID = /\r\nwebhook-id: *(\S+)\r\n/i

const respond = (socket: Socket, id: string, body: string): void => {
  const time = String(seconds())
  const signature = createHmac("sha256", key).update(`${id}.${time}.${body}`).digest("base64")
  socket.write(
    `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nwebhook-id: ${id}\r\n` +
      `webhook-timestamp: ${time}\r\nwebhook-signature: v1,${signature}\r\n\r\n${body}`,
    "latin1"
  )
}

const receive = (socket: Socket, text: string): void => {
  const id = ID.exec(text)?.[1] ?? ""
  const message = JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4))
  const body = JSON.stringify(answerTo(message))
  const isOperation = message.type === "operation.execute"
  if (!isOperation || (answer.kind === "after" && answer.millis === 0)) return respond(socket, id, body)
  held++
  socket.once("close", release)
  if (answer.kind === "after") setTimeout(() => respondLate(socket, id, body), answer.millis)
}

const release = (): void => void held--

const respondLate = (socket: Socket, id: string, body: string): void => {
  if (socket.destroyed) return
  socket.off("close", release)
  release()
  respond(socket, id, body)
}

const accept = (socket: Socket): void => {
  const reader = new RequestReader()
  sockets.add(socket)
  socket.setNoDelay(true)
  socket.on("data", (bytes: Buffer) => {
    if (!reader.push(bytes, bytes.length)) return
    const { text } = reader
    reader.reset()
    receive(socket, text)
  })
  // A killed Till resets its connections.
  socket.on("error", () => {})
  socket.once("close", () => sockets.delete(socket))
}

const listen = (wanted: number) =>
  new Promise<number>((resolve, reject) => {
    server = createServer(accept)
    server.once("error", reject)
    server.listen(wanted, "127.0.0.1", () => resolve((server.address() as AddressInfo).port))
  })

const change = async (how: GatewayAnswer): Promise<void> => {
  const wasGone = answer.kind === "gone"
  answer = how
  if (how.kind === "gone") {
    server.close()
    for (const socket of sockets) socket.destroy()
  } else if (wasGone) await listen(port)
}

const holds = (operations: number) =>
  new Promise<void>((resolve, reject) => {
    const end = performance.now() + HELD_MILLIS_MAX
    const look = () => {
      if (held >= operations) return resolve()
      if (performance.now() > end) return reject(new Error(`The gateway has ${held} of ${operations} operations.`))
      setTimeout(look, HELD_PAUSE_MILLIS)
    }
    look()
  })

const carryOut = async (command: GatewayCommand): Promise<unknown> => {
  switch (command.command) {
    case "listen":
      key = Buffer.from(command.secret.replace("whsec_", ""), "base64")
      return (port = await listen(0))
    case "answer":
      return change(command.how)
    case "holds":
      return holds(command.operations)
    case "ledger":
      return { operations: states.size, repeated, wrong, held } satisfies Ledger
  }
}

serve(carryOut)
