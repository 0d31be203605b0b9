/**
 * An idempotency key identifies one request per merchant and type of API key, and has no meaning for others (semantics
 * idempotency.scope). Several callers send requests with few keys between them, one after the other or concurrently.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { Keys } from "../support/fixtures/Merchants.ts"
import { assertError, assertOk } from "./Assertions.ts"
import { eventually, type MemoryTill, type Reply, start } from "../support/MemoryTill.ts"

let server: MemoryTill
let merchants: Readonly<Record<"first" | "second", Keys>>
beforeAll(async () => {
  server = await start()
  merchants = { first: server.keys, second: await server.merchant() }
})
afterAll(() => server.close())

/** Requests that both types of key may make, and that always succeed. */
const request = Schema.Struct({
  merchant: Schema.Literals(["first", "second"]),
  keyType: Schema.Literals(["secretTest", "publishableTest"]),
  key: Schema.Literals(["a", "b"]),
  last4: Schema.Literals(["4242", "4444"])
})
type Request = typeof request.Type

const requests = Schema.Array(request).check(Schema.isMinLength(2), Schema.isMaxLength(12))

const NUMBERS = { "4242": "4242424242424242", "4444": "5555555555554444" }

let runs = 0
const send = ({ key, keyType, last4, merchant }: Request, run: number): Promise<Reply> =>
  server.request("POST", "/v1/payment_methods", {
    key: merchants[merchant][keyType],
    idempotencyKey: `run ${run}, ${key}`,
    body: { type: "card", card: { number: NUMBERS[last4], exp_month: 12, exp_year: 2040 } }
  })

const scopeOf = ({ key, keyType, merchant }: Request): string => `${merchant} ${keyType} ${key}`
const isReplay = ({ headers }: Reply): boolean => headers.get("idempotent-replayed") === "true"

describe("an idempotency key", () => {
  it.effect.prop(
    "belongs to one caller: requests one after the other",
    { sent: requests },
    ({ sent }) =>
      eventually(async () => {
        const run = ++runs
        const firsts = new Map<string, { readonly last4: string; readonly text: string }>()
        for (const next of sent) {
          const reply = await send(next, run)
          const first = firsts.get(scopeOf(next))
          if (first !== undefined && first.last4 !== next.last4) {
            assertError(reply, 422, "idempotency_key_reuse")
            continue
          }
          assertOk(reply)
          assert.strictEqual(isReplay(reply), first !== undefined)
          if (first === undefined) firsts.set(scopeOf(next), { last4: next.last4, text: reply.text })
          else assert.strictEqual(reply.text, first.text)
        }
      }),
    { arbitrary: { runs: 60 } }
  )

  it.effect.prop(
    "belongs to one caller: concurrent requests",
    { sent: requests },
    ({ sent }) =>
      eventually(async () => {
        const run = ++runs
        const replies = await Promise.all(sent.map((next) => send(next, run)))
        const made = new Set<string>()
        const scopes = Map.groupBy(sent.keys(), (i) => scopeOf(sent[i]!))
        for (const indices of scopes.values()) {
          const carriedOut = indices.filter((i) => replies[i]!.status === 200 && !isReplay(replies[i]!))
          assert.lengthOf(carriedOut, 1)
          const [first] = carriedOut
          made.add(replies[first!]!.body.id)
          for (const i of indices) {
            if (sent[i]!.last4 === sent[first!]!.last4) assert.strictEqual(replies[i]!.text, replies[first!]!.text)
            else assertError(replies[i]!, 422, "idempotency_key_reuse")
          }
        }
        assert.strictEqual(made.size, scopes.size)
      }),
    { arbitrary: { runs: 60 } }
  )
})
