/** Every id leads to its object, by search and by link, and texts find objects (semantics dashboard.find). */
import { afterAll, assert, beforeAll, describe, it, vi } from "@effect/vitest"
import { PREFIXES } from "../../../src/domain/Identifiers.ts"
import { type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import { layerFreshLog } from "../../support/RequestLog.ts"
import { type Page, signedIn, type Tab } from "../People.ts"
import { makeWorld, type World } from "../../support/fixtures/World.ts"

/** Kinds of ids that no page and no response shows. */
const UNSEEN: ReadonlySet<string> = new Set([
  PREFIXES.dashboard_session,
  PREFIXES.sign_in,
  PREFIXES.audit_entry,
  PREFIXES.mail
])

const ID = new RegExp(String.raw`(?<![\w@])(?:${Object.values(PREFIXES).join("|")})_[0-9A-Za-z]{20,}\b`, "g")
const idsIn = (text: string): ReadonlyArray<string> => text.match(ID) ?? []

const LISTS = [
  "customers",
  "payment_intents",
  "checkout_sessions",
  "products",
  "prices",
  "refunds",
  "operations",
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

  it("leads to its page from within a text", async () => {
    const id = ids.find((id) => id.startsWith("prod_"))!
    for (const text of [`https://pay.example/dashboard/test/products/${id}?x=1`, `see ${id}, please`]) {
      assert.strictEqual((await open(findPath(text))).url, (await open(findPath(id))).url, text)
    }
  })

  it("that does not exist is reported, and a query leads to the payments", async () => {
    const missing = await open(findPath("pi_none"))
    assert.strictEqual(missing.status, 404)
    assert.include(missing.text, "has the ID <code>pi_none</code>")
    for (const query of ["amount>5", 'status:"succeeded" amount<9', "amount>five"]) {
      const { pathname, searchParams } = new URL((await open(findPath(query))).url)
      assert.deepStrictEqual([pathname, searchParams.get("query")], ["/dashboard/test/payments", query])
    }
  })
})

describe("dashboard.search: a text", () => {
  let server: MemoryTillWithPages
  let tab: Tab
  beforeAll(async () => {
    server = await start({ merchantName: "Lumen" })
    tab = await signedIn(server)
  })
  afterAll(() => server.close())

  const open = (text: string): Promise<Page> => tab.get(`/dashboard/test/find?${new URLSearchParams({ query: text })}`)

  /** The ids that the rows of each group link to, by the group's heading. */
  const groupsIn = (text: string): Readonly<Record<string, ReadonlyArray<string>>> =>
    Object.fromEntries(
      [...text.matchAll(/<h2>([^<]*)<\/h2>([^]*?)<\/section>/g)].map(([, name, group]) => [
        name!,
        [...group!.matchAll(/<tr role="row">\s*<td [^>]*>\s*<a href="[^"]*\/(\w+)"/g)].map(([, id]) => id!)
      ])
    )

  const pay = async (parameters: object): Promise<string> => {
    const body = { amount: 4321, currency: "usd", payment_method: "pm_card_visa", confirm: true, ...parameters }
    return (await server.post("/v1/payment_intents", body)).id
  }
  const make = async (list: string, parameters: object): Promise<string> =>
    (await server.post(`/v1/${list}`, parameters)).id

  it("shows the objects that it finds, in groups, with the best first", async () => {
    const annabel = await make("customers", { name: "Annabel Lee", email: "ann@example.com" })
    const ann = await make("customers", { name: "Ann", description: "Annabel's sister" })
    const joann = await make("customers", { name: "Joann" })
    const product = await make("products", { name: "Cann opener" })
    const order = await pay({ description: "For Annabel" })
    const hers = await pay({ customer: ann })
    const exact = await pay({ description: "For Ann" })
    const later = await pay({ description: "Announced" })
    assert.deepStrictEqual(groupsIn((await open("ann")).text), {
      Payments: [exact, later, hers, order],
      Customers: [ann, annabel, joann],
      Products: [product]
    })
    assert.deepStrictEqual(groupsIn((await open("ANN@example.com")).text), { Customers: [annabel] })
    assert.deepStrictEqual(groupsIn((await open("ann bel")).text), { Payments: [hers], Customers: [ann, annabel] })
  })

  it("says why, if metadata is why, and links to all matches beyond ten", async () => {
    const made: Array<string> = []
    for (let i = 0; i < 12; i++) made.push(await pay({ metadata: { order_id: String(7000 + i), lot: "B7" } }))
    const one = await open("Order 7003")
    assert.deepStrictEqual(groupsIn(one.text), { Payments: [made[3]!] })
    assert.match(one.text, /data-name="Metadata"[^>]*>\s*order_id: 7003\s*</)
    assert.notInclude(one.text, "All matching")
    const many = await open("lot b7")
    assert.deepStrictEqual(groupsIn(many.text), { Payments: made.toReversed().slice(0, 10) })
    const [, href] = /href="([^"]*)"\s*>All matching payments</.exec(many.text)!
    const list = await tab.get(new URL(href!.replaceAll("&amp;", "&"), many.url).href)
    for (const id of made) assert.include(list.text, `/payments/${id}"`)
  })

  it.each([
    ["customers", { name: "Zoë Quartz" }, "quartz", "Customers"],
    ["customers", { phone: "+1 (555) 123-9876" }, "5551239876", "Customers"],
    ["customers", { metadata: { crm: "Q-90001" } }, "crm 90001", "Customers"],
    ["products", { name: "Kürbiskernöl" }, "kernol", "Products"],
    ["products", { name: "東京タワー" }, "タワー", "Products"]
  ] as const)("finds %s of %o by %s", async (list, parameters, text, group) => {
    const id = await make(list, parameters)
    assert.deepStrictEqual(groupsIn((await open(text)).text), { [group]: [id] })
    const page = await tab.get(`/dashboard/test/${list}?${new URLSearchParams({ query: text })}`)
    assert.strictEqual(page.status, 200)
    assert.include(page.text, `/${list}/${id}"`)
    assert.strictEqual([...page.text.matchAll(/<tr role="row">/g)].length, 2)
  })

  it("finds payment links by their own words, in every state", async () => {
    const price_data = { currency: "usd", unit_amount: 500, product: await make("products", { name: "Mug" }) }
    const line_items = [{ price: await make("prices", price_data), quantity: 1 }]
    const link = await make("payment_links", { line_items, metadata: { campaign: "harvest" } })
    const ended = await make("payment_links", { line_items, payment_intent_data: { description: "Harvest 2" } })
    await server.post(`/v1/payment_links/${ended}`, { active: false })
    assert.deepStrictEqual(groupsIn((await open("harvest")).text), { "Payment links": [ended, link] })
    const active = await tab.get("/dashboard/test/payment-links?query=harvest&status=active")
    assert.include(active.text, `/payment-links/${link}"`)
    assert.notInclude(active.text, `/payment-links/${ended}"`)
  })

  it("that finds nothing gets advice, and no error", async () => {
    for (const text of ["Order 36 of nobody", "There is no field Order", "???", "0"]) {
      const page = await open(text)
      assert.strictEqual(page.status, 200, text)
      assert.include(page.text, "Nothing matches", text)
      assert.notInclude(page.text, "At character")
    }
    const empty = await tab.get("/dashboard/test/find")
    assert.notInclude(empty.text, "Nothing matches")
  })

  it("finds nothing of another account", async () => {
    await make("customers", { name: "Foreigner" })
    const other = await tab.get("/dashboard/live/find?query=foreigner")
    assert.deepStrictEqual(groupsIn(other.text), {})
  })
})
