/** Iterations over many pages, in both directions, as an async iterator and as a stream. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Redacted, Stream } from "effect"
import { Till } from "../../src/client/effect.ts"
import { TillClient } from "../../src/client/index.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"
import { FaultyProxy } from "../support/FaultyProxy.ts"

let server: MemoryTill
let proxy: FaultyProxy
let till: TillClient
/** Newest first, like lists. */
const ids: Array<string> = []
beforeAll(async () => {
  server = await start()
  proxy = await FaultyProxy.start(server.port)
  till = new TillClient({ apiKey: server.keys.secretTest, baseUrl: proxy.baseUrl })
  for (let i = 0; i < 23; i++) ids.unshift((await till.customers.create({ email: `${i % 2}@example.com` })).id)
})
afterAll(async () => {
  await proxy.close()
  await server.close()
})

type ListParameters = NonNullable<Parameters<TillClient["customers"]["list"]>[0]>

const WALKS: ReadonlyArray<readonly [string, () => ListParameters, () => ReadonlyArray<string>]> = [
  ["everything", () => ({ limit: 5 }), () => ids],
  ["everything in one page", () => ({ limit: 100 }), () => ids],
  ["everything, when pages come out even", () => ({ limit: 23 }), () => ids],
  ["what is older", () => ({ limit: 4, starting_after: ids[3]! }), () => ids.slice(4)],
  ["newer items, oldest first", () => ({ limit: 4, ending_before: ids[20]! }), () => ids.slice(0, 20).toReversed()],
  ["nothing older", () => ({ starting_after: ids.at(-1)! }), () => []],
  ["nothing newer", () => ({ ending_before: ids[0]! }), () => []],
  ["what passes a filter", () => ({ limit: 3, email: "1@example.com" }), () => ids.filter((_, i) => i % 2 === 1)]
]

const idsOf = async (customers: AsyncIterable<{ readonly id: string }>): Promise<ReadonlyArray<string>> => {
  const seen: Array<string> = []
  for await (const { id } of customers) seen.push(id)
  return seen
}

describe("an iteration", () => {
  it.each(WALKS)("sees %s", async (_, parameters, expected) => {
    assert.deepStrictEqual(await idsOf(till.customers.list(parameters())), expected())
  })

  it.live.each(WALKS)("sees %s, as a stream", ([, parameters, expected]) =>
    Effect.gen(function* () {
      const till = yield* Till
      const seen = yield* Stream.runCollect(till.customers.list.stream(parameters()))
      assert.deepStrictEqual(
        seen.map(({ id }) => id),
        expected()
      )
    }).pipe(Effect.provide(Till.layerFetch({ apiKey: Redacted.make(server.keys.secretTest), baseUrl: proxy.baseUrl })))
  )

  it("fetches pages on demand, and the first one once", async () => {
    const count = proxy.attempts.length
    const pages = till.customers.list({ limit: 5 })
    assert.strictEqual((await pages).next_cursor, ids[4])
    let seen = 0
    for await (const customer of pages) {
      assert.strictEqual(customer.id, ids[seen])
      if (++seen === 7) break
    }
    assert.deepStrictEqual(
      proxy.attempts.slice(count).map(({ url }) => url),
      ["/v1/customers?limit=5", `/v1/customers?limit=5&starting_after=${ids[4]}`]
    )
    assert.deepStrictEqual(await idsOf(pages), ids)
  })

  it("ends with the error of a page, and with its signal", async () => {
    const controller = new AbortController()
    const { signal } = controller
    let seen = 0
    const walk = async () => {
      for await (const _ of till.customers.list({ limit: 5 }, { signal })) if (++seen === 5) controller.abort()
    }
    assert.strictEqual(await walk().catch((error: unknown) => error), signal.reason)
    assert.strictEqual(seen, 5)
    const missing = await idsOf(till.customers.list({ starting_after: "cus_none" })).catch((error: unknown) => error)
    assert.deepInclude(missing, { _tag: "InvalidRequestError", code: "resource_missing", param: "starting_after" })
  })
})
