/**
 * More requests than the service can run: some are refused, without having had any effect (semantics limits.queue,
 * limits.refusals).
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Latch } from "effect"
import type * as Faults from "../engine/storage/Faults.ts"
import { assertError, assertHeaders, assertOk } from "./Assertions.ts"
import { type MemoryTill, type Reply, start } from "../support/MemoryTill.ts"

/** The most concurrent commands, beside a few of every account. */
const UNDER_WAY_MAX = 1024
const EXCESS = 60

const appends = Latch.makeUnsafe(true)
const faults: Faults.Faults = (point) => (point === "append.before" ? appends.await : Effect.void)

let server: MemoryTill
beforeAll(async () => void (server = await start({ faults })))
afterAll(() => server.close())

const create = (idempotencyKey: string, key: string = server.keys.secretTest): Promise<Reply> =>
  server.request("POST", "/v1/customers", { idempotencyKey, key, body: { name: idempotencyKey } })

describe("an overload", () => {
  it("refuses requests that have waited too long, without effect, and refuses none of other accounts", async () => {
    const other = await server.merchant()
    for (const key of [server.keys.secretTest, other.secretTest]) assertOk(await create("first", key))
    const { body: known } = await create("known")
    appends.closeUnsafe()

    const keys = Array.from({ length: UNDER_WAY_MAX + EXCESS }, (_, i) => `flood-${i}`)
    const refused = new Map<string, Reply>()
    const enough = Promise.withResolvers<void>()
    const flood = keys.map(async (key) => {
      const reply = await create(key)
      if (reply.status === 503) refused.set(key, reply)
      if (refused.size >= EXCESS) enough.resolve()
      return reply
    })
    await enough.promise
    // Other accounts' commands run in between, although the one account fills all places; reads need none.
    const others = Array.from({ length: 8 }, (_, i) => create(`other-${i}`, other.secretTest))
    assert.deepStrictEqual((await server.request("GET", `/v1/customers/${known.id}`)).body, known)
    appends.openUnsafe()
    for (const reply of await Promise.all(others)) assertOk(reply)
    const replies = await Promise.all(flood)

    for (const [key, reply] of refused) {
      assertError(reply, 503, "service_unavailable")
      assertHeaders(reply)
      assert.strictEqual(reply.headers.get("retry-after"), "1")
      assert.strictEqual(reply.headers.get("idempotency-key"), key)
    }
    const accepted = replies.filter(({ status }) => status === 200)
    assert.strictEqual(accepted.length + refused.size, keys.length)
    // The refused requests' keys are free.
    for (const key of refused.keys()) {
      const reply = await create(key)
      assertOk(reply)
      assert.isNull(reply.headers.get("idempotent-replayed"))
    }
    const names = new Set<string>()
    for (let after = "", hasMore = true; hasMore;) {
      const { body } = await server.request("GET", `/v1/customers?limit=100${after}`)
      for (const { name } of body.data) {
        assert.isFalse(names.has(name), `${name} was created twice`)
        names.add(name)
      }
      after = `&starting_after=${body.data.at(-1).id}`
      hasMore = body.has_more
    }
    assert.sameMembers([...names], ["first", "known", ...keys])
  })
})
