/** Many concurrent clients with the programs of the kill tests, here with the engine in memory. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { HttpExchange } from "../support/HttpExchange.ts"
import { runSeed } from "../support/Random.ts"
import { Traffic } from "../support/fixtures/Traffic.ts"
import { TrafficAudit } from "../support/fixtures/TrafficAudit.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"

const CLIENTS = 16
const CHANGES = 800

let server: MemoryTill
let http: HttpExchange
beforeAll(async () => {
  server = await start()
  http = new HttpExchange(server.port, server.keys.secretTest)
})
afterAll(async () => {
  http.close()
  await server.close()
})

describe("many concurrent clients", () => {
  it("each get the answers of the table, and every change has its events once", async () => {
    const traffic = new Traffic(http, runSeed, CLIENTS)
    const keys = Array.from({ length: 12 }, (_, i) => `shared-${i}`)
    for (const idempotencyKey of keys) {
      const body = { amount: 500, currency: "eur" }
      const { body: payment } = await http.request("POST", "/v1/payment_intents", { body, idempotencyKey })
      traffic.shared.set(payment.id, new Set([JSON.stringify(payment)]))
    }
    const audit = new TrafficAudit(traffic, keys)
    await traffic.run(() => traffic.deeds.length >= CHANGES)
    assert.isTrue(await traffic.settle())
    assert.deepStrictEqual(await audit.checkNew(), [])
    // Processing payments settle.
    const idempotencyKey = "advance"
    await http.request("POST", "/v1/test_helpers/clock/advance", { body: { seconds: 2 }, idempotencyKey })
    assert.deepStrictEqual(await audit.checkAll(), [])
    assert.isAbove(audit.eventCount, CHANGES / 4)
  })
})
