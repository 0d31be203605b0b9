/**
 * Bounds on `created` select from every list exactly the objects created within them (semantics lists.created): for any
 * clock, with any cursor, in both directions. Ids contain their creation time and may be ahead of the objects' own
 * time: here the clock steps back, the test clock steps ahead, and data is wiped.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Random, Seed } from "../support/Random.ts"
import { assertError, assertOk } from "./Assertions.ts"
import { clockOf } from "../support/SettableClock.ts"
import { type MemoryTill, type Reply, start } from "../support/MemoryTill.ts"

const START = Date.UTC(2026, 10, 20)

let server: MemoryTill
let now = START
beforeAll(async () => void (server = await start({ clock: clockOf(() => now) })))
afterAll(() => server.close())

interface Created {
  readonly id: string
  readonly created: number
}

/** All pages of a list, or the pages up to its end in the other direction, in the list's order. */
const walk = async (path: string, key: string, query: string, cursor: string | null, backward: boolean) => {
  const seen: Array<Created> = []
  let from = cursor
  for (;;) {
    const at = from === null ? "" : `&${backward ? "ending_before" : "starting_after"}=${from}`
    const reply: Reply = await server.request("GET", `/v1/${path}?${query}${at}`, { key })
    assertOk(reply)
    const { data, has_more, next_cursor } = reply.body
    assert.strictEqual(next_cursor, has_more ? data.at(-1).id : null)
    if (backward) seen.unshift(...data)
    else seen.push(...data)
    if (!has_more) return seen
    from = backward ? data[0].id : next_cursor
  }
}

const BOUNDS = ["created", "created[gt]", "created[gte]", "created[lt]", "created[lte]"] as const

const within = (created: number, name: (typeof BOUNDS)[number], bound: number): boolean => {
  if (name === "created") return created === bound
  if (name === "created[gt]") return created > bound
  if (name === "created[gte]") return created >= bound
  return name === "created[lt]" ? created < bound : created <= bound
}

/** A merchant with a few objects of each kind, created while its clock goes back and forth. */
const shop = async (random: Random) => {
  const { secretTest: key } = await server.merchant()
  const made = async (path: string, body: object) => {
    const reply = await server.request("POST", `/v1/${path}`, { key, body })
    assertOk(reply)
    return reply.body
  }
  now = START + random.below(3000)
  if (random.chance(0.3)) {
    await made("test_helpers/clock/advance", { seconds: 100_000 })
    await made("customers", {})
    assertOk(await server.request("DELETE", "/v1/test_helpers/data", { key }))
  }
  const { id: endpoint } = await made("webhook_endpoints", { url: "http://127.0.0.1:1/", enabled_events: ["*"] })
  for (let i = 0; i < 14; i++) {
    now += random.pick([0, 1, 400, 1000, 3000, random.chance(0.3) ? -2500 : 1])
    if (random.chance(0.1)) await made("test_helpers/clock/advance", { seconds: 1 + random.below(3) })
    const kind = random.below(4)
    if (kind === 0) await made("products", { name: "Tea" })
    else if (kind === 1) await made("customers", { email: random.pick(["a@b.co", "c@d.co"]) })
    else {
      const paid = kind === 2 ? { payment_method: "pm_card_visa", confirm: true } : {}
      await made("payment_intents", { amount: 100, currency: "usd", ...paid })
    }
  }
  const lists = ["customers", "customers?email=a@b.co", "products?active=true", "payment_intents", "charges"]
  return {
    key,
    lists: [...lists, "events", "api_keys", "webhook_endpoints", `webhook_endpoints/${endpoint}/deliveries`]
  }
}

describe("lists.created: created", () => {
  it.effect.prop(
    "selects from every list the objects created within all bounds",
    [Seed],
    ([seed]) =>
      Effect.promise(async () => {
        const random = new Random(seed)
        const { key, lists } = await shop(random)
        for (const list of lists) {
          const [path = "", filter = ""] = list.split("?")
          const all = await walk(path, key, `limit=100&${filter}`, null, false)
          for (let round = 0; round < 4; round++) {
            const bounds = BOUNDS.filter(() => random.chance(0.3)).map((name) => {
              const near = random.pick(all)?.created ?? START / 1000
              return [name, random.chance(0.1) ? 0 : near + random.integer(-1, 1)] as const
            })
            const cursor = random.chance(0.5) ? (random.pick(all)?.id ?? null) : null
            const backward = cursor !== null && random.chance(0.5)
            const query = [`limit=${random.integer(1, 4)}`, filter, ...bounds.map(([name, at]) => `${name}=${at}`)]
            const expected = all.filter(
              ({ created, id }) =>
                bounds.every(([name, at]) => within(created, name, at)) &&
                (cursor === null || (backward ? id > cursor : id < cursor))
            )
            const found = await walk(path, key, query.filter((part) => part !== "").join("&"), cursor, backward)
            assert.deepStrictEqual(
              found.map(({ id }) => id),
              expected.map(({ id }) => id),
              `${list} ${query.join("&")} ${cursor}`
            )
          }
        }
      }),
    { arbitrary: { runs: 25, maxShrinks: 3 } }
  )

  it("accepts only times as bounds, and crossed bounds select nothing", async () => {
    const get = (query: string) => server.request("GET", `/v1/customers?${query}`)
    for (const name of BOUNDS) {
      for (const value of ["", "-1", "1.5", "1e9", "now", "01", "100000000000", "%200"]) {
        assertError(await get(`${name}=${value}`), 400, "parameter_invalid", name)
      }
      assertError(await get(`${name}=1&${name}=1`), 400, "parameter_invalid", name)
    }
    assertError(await get("created[eq]=1"), 400, "parameter_unknown", "created[eq]")
    assertOk(await server.request("POST", "/v1/customers"))
    const crossed = await get("created[gte]=5&created[lt]=5")
    assertOk(crossed)
    assert.deepStrictEqual([crossed.body.data, crossed.body.has_more, crossed.body.next_cursor], [[], false, null])
    assert.isNotEmpty((await get("created[gte]=5&created[lt]=99999999999")).body.data)
  })

  it("is no parameter of line items, which are not created by themselves", async () => {
    const reply = await server.request("GET", "/v1/checkout_sessions/cs_x/line_items?created=1")
    assertError(reply, 400, "parameter_unknown", "created")
  })
})
