/** Every id leads to the page of its object, by search and by link (semantics dashboard.find). */
import { afterAll, assert, beforeAll, describe, it, vi } from "@effect/vitest"
import { PREFIXES } from "../../../src/domain/Identifiers.ts"
import { type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import { layerFreshLog } from "../../support/RequestLog.ts"
import { type Page, signedIn, type Tab } from "../People.ts"
import { makeWorld, type World } from "../../support/fixtures/World.ts"

/** Kinds of ids that no page and no response shows. */
const UNSEEN: ReadonlySet<string> = new Set([PREFIXES.dashboard_session, PREFIXES.sign_in, PREFIXES.audit_entry])

const ID = new RegExp(String.raw`(?<![\w@])(?:${Object.values(PREFIXES).join("|")})_[0-9A-Za-z]{20,}\b`, "g")
const idsIn = (text: string): ReadonlyArray<string> => text.match(ID) ?? []

const LISTS = [
  "customers",
  "payment_intents",
  "checkout_sessions",
  "products",
  "prices",
  "refunds",
  "events",
  "payment_links",
  "webhook_endpoints"
]

describe("an id", () => {
  let shared: MemoryTillWithPages
  let world: World
  let tab: Tab
  /** All ids of the world in API responses and pages. */
  let ids: ReadonlyArray<string>
  beforeAll(async () => {
    shared = await start({ merchantName: "Lumen", requestLog: layerFreshLog({ batchMillis: 20 }) })
    world = await makeWorld(shared, (max) => "A kettle".slice(0, max))
    tab = await signedIn(world.server)
    await vi.waitFor(async () => assert.strictEqual((await open(world.pages["/requests/:id"]!)).status, 200), 120_000)
    const session = world.pages["/checkout-sessions/:id"]!.split("/").at(-1)!
    const endpoint = world.pages["/webhooks/:id"]!.split("/").at(-1)!
    const link = world.pages["/payment-links/:id"]!.split("/").at(-1)!
    const lines = [`checkout_sessions/${session}/line_items`, `payment_links/${link}/line_items`]
    const lists = [...LISTS, ...lines, `webhook_endpoints/${endpoint}/deliveries`]
    const answers = await Promise.all(lists.map((list) => world.server.get(`/v1/${list}?limit=100`)))
    const pages = await Promise.all(Object.values(world.pages).map((path) => open(path)))
    ids = [
      ...new Set([...answers.map((answer) => JSON.stringify(answer)), ...pages.map(({ text }) => text)].flatMap(idsIn))
    ]
  })
  afterAll(() => shared.close())

  const open = (path: string, mode: "test" | "live" = "test"): Promise<Page> => tab.get(`/dashboard/${mode}${path}`)
  const findPath = (text: string): string => `/find?${new URLSearchParams({ query: text })}`

  it("is in this list, for every kind", () => {
    const seen = new Set(ids.map((id) => id.split("_", 1)[0]!))
    assert.deepStrictEqual(
      Object.values(PREFIXES).filter((prefix) => !seen.has(prefix)),
      [...UNSEEN]
    )
  })

  it("leads to its page, in either environment", async () => {
    for (const id of ids) {
      const page = await open(findPath(id))
      assert.strictEqual(page.status, 200, id)
      assert.notInclude(page.url, "/find", id)
      const isOfNoEnvironment = /^(?:mer|per)_/.test(id)
      if (!isOfNoEnvironment && !/^(?:csli|plli)_/.test(id)) assert.include(page.text, id)
      const fromLive = (await open(findPath(id), "live")).url
      assert.strictEqual(fromLive, isOfNoEnvironment ? page.url.replace("/test", "/live") : page.url, id)
    }
  })

  it("leads there from the payment search, which finds payments by id and by customer", async () => {
    for (const id of ids.filter((id) => !/^(?:pi|cus)_/.test(id))) {
      const page = await open(`/payments?${new URLSearchParams({ query: id })}`)
      assert.strictEqual(page.url, (await open(findPath(id))).url, id)
    }
  })

  it("is a working link on every page that shows it", async () => {
    const links = new Map<string, string>()
    for (const path of Object.values(world.pages)) {
      const page = await open(path)
      for (const [, href, content] of page.text.matchAll(/<a [^>]*?href="([^"]+)"[^>]*>([\s\S]*?)<\/a>/g)) {
        const id = idsIn(content!)[0]
        if (id !== undefined) links.set(id, new URL(href!.replaceAll("&amp;", "&"), page.url).href)
      }
    }
    assert.isAbove(links.size, 15)
    for (const [id, href] of links) {
      const page = await tab.get(href)
      assert.strictEqual(page.status, 200, id)
      assert.notInclude(page.url, "/find", id)
    }
  })

  it("of another merchant is not found", async () => {
    const other = await makeWorld(shared, (max) => "Another".slice(0, max))
    const foreign = await signedIn(other.server)
    for (const id of ids) {
      const page = await foreign.get(`/dashboard/test${findPath(id)}`)
      assert.strictEqual(page.status, 404, id)
    }
  })

  it("that does not exist is reported, and other texts lead to payments or customers", async () => {
    await world.server.post("/v1/customers", { email: "known@example.com" })
    const missing = await open(findPath("pi_none"))
    assert.strictEqual(missing.status, 404)
    assert.include(missing.text, "pi_none")
    for (const [text, place] of [
      ["amount>5", "/payments?query=amount%3E5"],
      ["4242", "/payments?query=4242"],
      ["ada@example.com", "/payments?query=ada%40example.com"],
      ["Known@Example.com", "/customers?email=Known%40Example.com"],
      ["@example.com", "/customers?email=%40example.com"],
      ["Ada Lovelace", "/customers?name=Ada+Lovelace"]
    ] as const) {
      const page = await open(findPath(text))
      assert.include(page.url, place)
      assert.strictEqual(page.status, 200)
    }
  })
})
