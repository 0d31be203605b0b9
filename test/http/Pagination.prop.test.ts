/**
 * A client reads page after page, in either direction, while objects are created and deleted. It sees every object that
 * existed throughout exactly once, and all in order (semantics lists.*; spec: Pagination 4).
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { type MemoryTill, start } from "../support/MemoryTill.ts"

let server: MemoryTill
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

/** A change between two pages. `at` selects one of the existing objects. */
const change = Schema.Union([
  Schema.Struct({ op: Schema.Literal("create") }),
  Schema.Struct({ op: Schema.Literal("delete"), at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 })) }),
  Schema.Struct({ op: Schema.Literal("update"), at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 })) })
])

const walk = {
  size: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 15 })),
  limit: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 6 })),
  backward: Schema.Boolean,
  changes: Schema.Array(Schema.Array(change).check(Schema.isMaxLength(4))).check(Schema.isMaxLength(12))
}

describe("pagination", () => {
  it.effect.prop(
    "returns the objects that existed throughout exactly once, in order",
    walk,
    ({ backward, changes, limit, size }) =>
      Effect.promise(async () => {
        const key = (await server.merchant()).secretTest
        const create = async (): Promise<string> => (await server.request("POST", "/v1/customers", { key })).body.id
        let updates = 0
        const standing: Array<string> = []
        for (let i = 0; i < size; i++) standing.push(await create())
        const before = new Set(standing)
        const deleted = new Set<string>()
        const apply = async (step: typeof change.Type): Promise<void> => {
          if (step.op === "create") return void standing.push(await create())
          const id = standing[step.at % standing.length]
          if (id === undefined) return
          if (step.op === "update") {
            await server.request("POST", `/v1/customers/${id}`, { key, body: { name: `change ${++updates}` } })
            return
          }
          await server.request("DELETE", `/v1/customers/${id}`, { key })
          deleted.add(id)
          standing.splice(standing.indexOf(id), 1)
        }

        // Backward reads begin after the oldest object: a cursor that was deleted before is valid, too.
        const seen: Array<string> = []
        let cursor: string | undefined
        if (backward) {
          const oldest = standing[0]
          if (oldest === undefined) return
          seen.push(oldest)
          cursor = oldest
        }
        for (let page = 0; ; page++) {
          const from = cursor === undefined ? "" : `&${backward ? "ending_before" : "starting_after"}=${cursor}`
          const { body } = await server.request("GET", `/v1/customers?limit=${limit}${from}`, { key })
          const ids: ReadonlyArray<string> = body.data.map(({ id }: { id: string }) => id)
          assert.isAtMost(ids.length, limit)
          assert.strictEqual(body.next_cursor, body.has_more ? ids.at(-1)! : null)
          seen.push(...(backward ? ids.toReversed() : ids))
          if (!body.has_more) break
          assert.strictEqual(ids.length, limit)
          cursor = backward ? ids[0] : body.next_cursor
          for (const step of changes[page] ?? []) await apply(step)
        }

        assert.deepStrictEqual(seen, backward ? seen.toSorted() : seen.toSorted().toReversed())
        assert.strictEqual(new Set(seen).size, seen.length)
        for (const id of before) if (!deleted.has(id)) assert.include(seen, id)
      }),
    { arbitrary: { runs: 60, size: 12 } }
  )

  it.effect.prop(
    "returns for every cursor the slice next to it",
    {
      size: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 8 })),
      at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 7 })),
      limit: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 })),
      backward: Schema.Boolean
    },
    ({ at, backward, limit, size }) =>
      Effect.promise(async () => {
        const key = (await server.merchant()).secretTest
        const ids: Array<string> = []
        for (let i = 0; i < size; i++) ids.unshift((await server.request("POST", "/v1/customers", { key })).body.id)
        const index = at % size
        const cursor = `${backward ? "ending_before" : "starting_after"}=${ids[index]}`
        const { body } = await server.request("GET", `/v1/customers?limit=${limit}&${cursor}`, { key })
        const expected = backward
          ? ids.slice(Math.max(0, index - limit), index)
          : ids.slice(index + 1, index + 1 + limit)
        const hasMore = backward ? index - limit > 0 : index + 1 + limit < size
        assert.deepStrictEqual(
          body.data.map(({ id }: { id: string }) => id),
          expected
        )
        assert.strictEqual(body.has_more, hasMore)
        assert.strictEqual(body.next_cursor, hasMore ? expected.at(-1)! : null)
      }),
    { arbitrary: { runs: 40 } }
  )
})
