/** The judge of payments through a gateway, and the network before it. */
import { assert, describe, it } from "@effect/vitest"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { Random } from "../support/SeededRandom.ts"
import { Findings } from "./Finding.ts"
import { GatewayProxy } from "./GatewayProxy.ts"
import { type Books, compare } from "./Ledger.ts"

/** A payment that is captured and partly refunded, one that is held, and a declined one. */
const books = (): Books => ({
  payments: [
    { id: "pi_1", status: "succeeded", amount_received: 900, amount_capturable: 0 },
    { id: "pi_2", status: "requires_capture", amount_received: 0, amount_capturable: 500 },
    { id: "pi_3", status: "requires_payment_method", amount_received: 0, amount_capturable: 0 }
  ],
  refunds: [{ payment_intent: "pi_1", status: "succeeded", amount: 100 }],
  operations: [
    { id: "op_1", payment_intent: "pi_1", status: "final", outcome: { kind: "approved" } },
    { id: "op_2", payment_intent: "pi_1", status: "final", outcome: { kind: "approved" } },
    { id: "op_3", payment_intent: "pi_2", status: "final", outcome: { kind: "approved" } },
    { id: "op_4", payment_intent: "pi_3", status: "final", outcome: { kind: "declined" } }
  ],
  events: [{ type: "payment_intent.succeeded", data: { object: { id: "pi_1" } } }],
  lines: [
    {
      operation: { state: { id: "op_1", status: "pending" } },
      payment: { id: "pi_1", status: "pending", refunded: 0 }
    },
    {
      operation: { state: { id: "op_1", status: "approved" } },
      payment: { id: "pi_1", status: "captured", captured: 900, refunded: 0 }
    },
    {
      operation: { state: { id: "op_2", status: "approved" } },
      payment: { id: "pi_1", status: "captured", captured: 900, refunded: 100 }
    },
    {
      operation: { state: { id: "op_3", status: "approved" } },
      payment: { id: "pi_2", status: "held", held: 500, refunded: 0 }
    },
    { operation: { state: { id: "op_4", status: "declined" } }, payment: { id: "pi_3", status: "open", refunded: 0 } }
  ]
})

const found = (change: (all: Books) => Partial<Books>): ReadonlyArray<string> => {
  const findings = new Findings()
  compare({ ...books(), ...change(books()) }, findings)
  return findings.all.map(({ kind, text }) => `${kind}: ${text}`)
}

const assertFound = (change: (all: Books) => Partial<Books>, ...patterns: ReadonlyArray<RegExp>) => {
  const texts = found(change)
  assert.lengthOf(texts, patterns.length, texts.join("\n"))
  for (const [i, pattern] of patterns.entries()) assert.match(texts[i]!, pattern)
}

describe("the books of Till and of the gateway", () => {
  it("agree where nothing is wrong", () => assertFound(() => ({})))

  it("differ by money that the gateway has moved twice, or Till alone", () => {
    const moved = (id: string, payment: object) => (all: Books) => ({
      lines: [...all.lines, { payment: { id, status: "captured", refunded: 0, ...payment } }]
    })
    assertFound(moved("pi_1", { captured: 900, refunded: 200 }), /doubled: pi_1 .* refunded are 100 at Till and 200/)
    assertFound(moved("pi_3", { captured: 700 }), /doubled: pi_3 .* captured are 0 at Till and 700/)
    assertFound(moved("pi_1", { captured: 900, refunded: 0 }), /wrong: pi_1 .* refunded are 100 at Till and 0/)
    assertFound(moved("pi_9", { captured: 100 }), /lost: the gateway has the payment pi_9/)
  })

  it("agree on what was given back, and on payments that a person decides about", () => {
    const back = { id: "pi_3", status: "captured", captured: 700, refunded: 700 }
    assertFound(({ lines }) => ({ lines: [...lines, { payment: back }] }))
    assertFound(({ lines, operations }) => ({
      lines: [...lines, { payment: { ...back, refunded: 0 } }],
      operations: [...operations, { id: "op_5", payment_intent: "pi_3", status: "decide", outcome: null }]
    }))
  })

  it("differ by an operation", () => {
    const last = (change: object) => (all: Books) => ({
      operations: [...all.operations.slice(0, -1), { ...all.operations.at(-1), ...change }]
    })
    assertFound(last({ outcome: { kind: "approved" } }), /wrong: .* op_4 is final and approved at Till, and declined/)
    assertFound(last({ status: "unresolved", outcome: null }), /wrong: the operation op_4 is still unresolved/)
    assertFound(
      ({ operations }) => ({ operations: operations.map((one) => ({ ...one, outcome: { kind: "not_executed" } })) }),
      ...["op_1", "op_2", "op_3"].map((id) => new RegExp(`doubled: .* ${id} is final and not_executed at Till`))
    )
    const again = { operation: { state: { id: "op_2", status: "approved" } } }
    assertFound(({ lines }) => ({ lines: [...lines, again] }), /doubled: the operation op_2 was approved 2 times/)
    const foreign = { operation: { state: { id: "op_9", status: "approved" } } }
    assertFound(({ lines }) => ({ lines: [...lines, foreign] }), /doubled: .* op_9, which Till does not have/)
  })

  it("differ by an event", () => {
    assertFound(() => ({ events: [] }), /lost: pi_1 is succeeded and has 0 successes/)
    assertFound(({ events }) => ({ events: [...events, ...events] }), /doubled: pi_1 is succeeded and has 2 successes/)
  })
})

describe("the network before the gateway", () => {
  it("passes requests on unchanged, and treats them in every way when it is faulty", async () => {
    let received = 0
    const gateway = http.createServer((request, response) => {
      received++
      request.resume().on("end", () => response.writeHead(200, { "webhook-signature": "v1,x" }).end('{"whole":true}'))
    })
    await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve))
    const delays = { lateMillisMax: 20, tooLateMillis: 50 }
    const proxy = await GatewayProxy.start((gateway.address() as AddressInfo).port, new Random(1), delays)
    const body = JSON.stringify({ type: "operation.execute", operation: { id: "op_1", amount: 1 } })
    const ask = () => fetch(proxy.url, { method: "POST", body }).then((answer) => answer.text())
    for (let i = 0; i < 20; i++) assert.strictEqual(await ask(), '{"whole":true}')
    assert.strictEqual(received, 20)
    proxy.isFaulty = true
    await Promise.allSettled(Array.from({ length: 600 }, () => ask()))
    assert.strictEqual(proxy.counts.size, 11)
    proxy.close()
    gateway.close()
    gateway.closeAllConnections()
  })
})
