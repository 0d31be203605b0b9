/**
 * Lists as files: customers, events and requests (semantics request_log.kept, dashboard.files, dashboard.customers).
 */
import { afterAll, assert, beforeAll, describe, it, vi } from "@effect/vitest"
import { type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { visit } from "../support/fixtures/CheckoutPages.ts"
import { layerFreshLog } from "../support/RequestLog.ts"
import { cellsIn, textOf } from "./Csv.ts"
import { openTab, signedIn, type Tab } from "./People.ts"

/** More than one page of the file. */
const MANY = 260

describe("files of the dashboard", () => {
  let server: MemoryTillWithPages
  let tab: Tab
  const texts = ["=1+1", "@SUM(A1)", '-1"', "a,b", "line\nof two", "Müßig", " =x", "Ann;=1;x", "plain"]
  beforeAll(async () => {
    const log = layerFreshLog({ batchMillis: 20 })
    server = await start({ merchantName: "Lumen", requestLog: log })
    tab = await signedIn(server, "support")
    for (let i = 0; i < MANY; i += 20) {
      await Promise.all(
        Array.from({ length: Math.min(20, MANY - i) }, (_, j) =>
          server.post("/v1/customers", {
            name: `Person ${i + j}`,
            email: `${i + j}@example.com`,
            description: texts[(i + j) % texts.length]
          })
        )
      )
    }
  })
  afterAll(() => server.close())

  /** The file that a list links to, by column. */
  const fileOf = async (list: string) => {
    const page = await tab.get(`/dashboard/test${list}`)
    const [, href] = /<a class="button" href="([^"]+)" download="">/.exec(page.text)!
    const file = await visit(new URL(href!.replaceAll("&amp;", "&"), page.url).href, { cookie: tab.cookie })
    assert.strictEqual(file.status, 200)
    assert.strictEqual(file.headers.get("content-type"), "text/csv; charset=utf-8")
    const [head, ...rows] = cellsIn(file.text)
    return rows.map((row) => {
      assert.strictEqual(row.length, head!.length)
      return Object.fromEntries(head!.map((name, i) => [name, row[i]!]))
    })
  }

  it("have the customers of all pages of a list, without formulas", async () => {
    const rows = await fileOf("/customers")
    assert.deepStrictEqual(
      rows.map(({ Name }) => Name).toSorted(),
      Array.from({ length: MANY }, (_, i) => `Person ${i}`).toSorted()
    )
    for (const { "Customer ID": id, Description: description, Email: email, Name: name } of rows) {
      const number = Number(name!.split(" ")[1])
      const text = texts[number % texts.length]!
      assert.strictEqual(textOf(description!), text)
      assert.strictEqual(description!.includes("'"), /[=@-]/.test(text), description)
      assert.strictEqual(email, `${number}@example.com`)
      assert.match(id!, /^cus_/)
    }
    const found = await fileOf("/customers?email=11%40example")
    assert.deepStrictEqual(
      found.map(({ Email }) => Email),
      ["211@example.com", "111@example.com", "11@example.com"]
    )
  })

  it("are offered for lists with objects or a filter", async () => {
    const asked = {
      "/payments": "currency=usd",
      "/customers": "name=x",
      "/events": "type=x.*",
      "/requests": "path=/v1"
    }
    for (const [list, query] of Object.entries(asked)) {
      for (const [page, isOffered] of [[list, false] as const, [`${list}?${query}`, true] as const]) {
        const { text } = await tab.get(`/dashboard/live${page}`)
        assert.strictEqual(text.includes("Download CSV"), isOffered, page)
      }
    }
  })

  it("have the events of a type, of all pages", async () => {
    await server.post("/v1/products", { name: "Mug" })
    const rows = await fileOf("/events?type=customer.*")
    assert.strictEqual(rows.length, MANY)
    assert.isTrue(rows.every(({ Object, Type }) => Type === "customer.created" && Object!.startsWith("cus_")))
    const [newest] = (await server.get("/v1/events?limit=1")).data
    const [product] = await fileOf("/events?type=product.created")
    assert.strictEqual(product!["Event ID"], newest.id)
    assert.strictEqual(
      product!["Created (UTC)"],
      new Date(newest.created * 1000).toISOString().replace("T", " ").slice(0, 19)
    )
    assert.strictEqual(product!["Request"], newest.request.id)
    assert.strictEqual(product!["Idempotency key"], newest.request.idempotency_key ?? "")
  })

  it("have the filtered requests of all pages, without bodies", async () => {
    await server.post("/v1/customers", { email: "nobody", description: "Kept to ourselves" }, { status: 400 })
    await vi.waitFor(async () => assert.strictEqual((await fileOf("/requests?status=4xx")).length, 1), 120_000)
    const [refused] = await fileOf("/requests?status=4xx")
    assert.deepInclude(refused, { Method: "POST", Path: "/v1/customers", Status: "400", Parameter: "email" })
    assert.notInclude(JSON.stringify(refused), "ourselves")
    assert.isAtLeast((await fileOf("/requests?status=200&path=/v1/customers")).length, MANY)
  })

  it.each(["customers", "events", "requests"])("require a session: %s", async (list) => {
    assert.include((await openTab(server).get(`/dashboard/test/${list}.csv`)).url, "/sign-in")
  })

  it.each(["customers", "events", "payments", "requests"])(
    "start so that Excel reads %s.csv as UTF-8",
    async (list) => {
      const file = await fetch(`${server.url}/dashboard/test/${list}.csv`, { headers: { cookie: tab.cookie } })
      const bytes = Buffer.from(await file.arrayBuffer())
      // A file that begins with the letters ID is taken for another format.
      assert.match(bytes.subarray(0, 6).toString("latin1"), /^\u00ef\u00bb\u00bf"(?!ID)[A-Z][a-z]$/)
      for (const line of bytes.toString().split("\r\n").slice(0, -1)) assert.match(line, /^\ufeff?".*"$/su)
    }
  )
})
