/** Properties of every page of the dashboard (semantics dashboard.roles, dashboard.browser), without scripts. */
import { afterAll, assert, beforeAll, describe, it, vi } from "@effect/vitest"
import { type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { layerFreshLog } from "../support/RequestLog.ts"
import { formTo, openTab, signedIn, type Tab } from "./People.ts"
import { makeWorld, type World } from "../support/fixtures/World.ts"

/** Pages that support does not see. */
const OTHERS = /^\/(?:team|settings|developers\/.+|products\/:id\/prices|payment-links\/new)/

describe("every page", () => {
  let shared: MemoryTillWithPages
  let world: World
  let owner: Tab
  beforeAll(async () => {
    shared = await start({ merchantName: "Till", requestLog: layerFreshLog({ batchMillis: 20 }) })
    world = await makeWorld(shared, (max) => "A kettle".slice(0, max))
    owner = await signedIn(world.server)
    const logged = `/dashboard/test${world.pages["/requests/:id"]!}`
    await vi.waitFor(async () => assert.strictEqual((await owner.get(logged)).status, 200), 120_000)
  })
  afterAll(() => shared.close())

  const eachPage = async (check: (route: string, path: string) => Promise<void>) => {
    for (const [route, path] of Object.entries(world.pages)) await check(route, path)
  }

  it("has navigation and sign-out, and is not cached", () =>
    eachPage(async (_, path) => {
      const page = await owner.get(`/dashboard/test${path}`)
      assert.deepStrictEqual([path, page.status], [path, 200])
      assert.strictEqual(page.headers.get("cache-control"), "no-store", path)
      assert.strictEqual(formTo(page, "/sign-out").action, "/dashboard/sign-out", path)
      for (const name of ["Payments", "Customers", "Products", "Webhooks", "Requests", "Developers"]) {
        assert.match(page.text, new RegExp(`<a href="[^"]+"[^>]*>${name}</a>`), path)
      }
    }))

  it("has no broken links, and shows no client secret", async () => {
    const seen = new Set<string>()
    const kindOf = (link: string) => link.replaceAll(/(?<=[a-z]_)\w{24}/g, "").replaceAll(/\d/g, "")
    const linksOf = async (link: string): Promise<ReadonlyArray<string>> => {
      const page = await owner.get(link)
      assert.deepStrictEqual([link, page.status], [link, 200])
      assert.notMatch(page.text, /client_secret|_secret_\w{8}/, link)
      return [...page.text.matchAll(/<a [^>]*href="([^"]+)"/g)]
        .map(([, href]) => new URL(href!.replaceAll("&amp;", "&"), page.url))
        .filter(({ href }) => href.startsWith(`${shared.url}/dashboard/`) && !/\.(?:csv|svg)/.test(href))
        .map(({ pathname, search }) => pathname + search)
    }
    // Follows the first link to each kind of page.
    const left = ["/dashboard/test", "/dashboard/live"]
    for (let link = left.pop(); link !== undefined; link = left.pop()) {
      if (seen.has(kindOf(link))) continue
      seen.add(kindOf(link))
      left.push(...(await linksOf(link)))
    }
    assert.isAbove(seen.size, 60)
    assert.includeMembers([...seen], ["/dashboard/test/prices/price_", "/dashboard/test/webhooks/we_/whd_"])
  })

  it("of an object is a 404 for another merchant and in the other environment", async () => {
    const stranger = await signedIn(shared)
    await eachPage(async (route, path) => {
      if (!route.includes(":")) return
      const page = await stranger.get(`/dashboard/test${path}`)
      assert.deepStrictEqual([path, page.status], [path, 404])
      assert.notInclude(page.text, "kettle", path)
      // People belong to a merchant, in both environments.
      if (route === "/team/:id") return
      const elsewhere = await owner.get(`/dashboard/live${path}`)
      assert.deepStrictEqual([path, elsewhere.status], [path, 404])
      const back = /<a href="([^"]+)">the test environment</.exec(elsewhere.text)![1]!
      const there = new URL(back, elsewhere.url)
      assert.strictEqual(there.pathname, new URL(`/dashboard/test${path}`, there).pathname)
    })
  })

  it("is shown to support unless it is about keys, settings or the team, and requires a session", async () => {
    const support = await signedIn(world.server, "support")
    await eachPage(async (route, path) => {
      const { status } = await support.get(`/dashboard/test${path}`)
      assert.deepStrictEqual([path, status], [path, OTHERS.test(route) ? 403 : 200])
      const stranger = await openTab(shared).get(`/dashboard/test${path}`)
      assert.include(stranger.url, "/dashboard/sign-in", path)
      assert.strictEqual(stranger.headers.get("cache-control"), "no-store", path)
    })
  })
})
