/**
 * GET, HEAD and OPTIONS never change anything, on any route (semantics dashboard.browser): browsers, mail scanners and
 * link previews send them without a person's action. All routes are tested, including those of forms and commands.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { basic } from "../support/HttpExchange.ts"
import { type MemoryTillWithPages, type Route, start } from "../support/MemoryTillWithPages.ts"
import { linkFor, openTab, signedIn } from "./People.ts"
import { makeWorld, type World } from "../support/fixtures/World.ts"

const QUERY = "?to=%2Ftest&done=refund.create&confirm=true&amount=1&token=x"

type Headers = Readonly<Record<string, string>>

describe("GET, HEAD and OPTIONS", () => {
  let shared: MemoryTillWithPages
  let world: World
  let link: string
  let pathsOf: (route: Route) => ReadonlyArray<string>
  let keys: ReadonlyArray<Headers>
  let browsers: ReadonlyArray<Headers>
  beforeAll(async () => {
    shared = await start({ merchantName: "Till" })
    world = await makeWorld(shared, (max) => "A kettle".slice(0, max))
    const { server } = world
    const tabs = await Promise.all((["owner", "developer", "support"] as const).map((role) => signedIn(server, role)))
    link = await linkFor(server, "support")
    const elsewhere = { "sec-fetch-site": "cross-site", origin: "https://evil.example" }
    browsers = [{}, { cookie: tabs[0]!.cookie, ...elsewhere }, ...tabs.map(({ cookie }) => ({ cookie }))]
    keys = [
      {},
      ...[server.secretTest, server.secretLive, server.publishableTest].map((key) => ({ authorization: basic(key) }))
    ]
    pathsOf = await filled()
  })
  afterAll(() => shared.close())

  /** Ids of the world by list of the API. */
  const idsOf = async (): Promise<Readonly<Record<string, string>>> => {
    const { get } = world.server
    const { id: event } = (await get("/v1/events?limit=1")).data[0]
    const lists = ["customers", "products", "prices", "payment_intents", "refunds", "charges", "webhook_endpoints"]
    const newest = await Promise.all(
      [...lists, "checkout_sessions", "payment_links", "api_keys"].map(
        async (list) => [list, (await get(`/v1/${list}?limit=1`)).data[0].id] as const
      )
    )
    return { ...Object.fromEntries(newest), events: event }
  }

  /** Fills ids of the world into the routes' paths. */
  const filled = async () => {
    const ids = await idsOf()
    const pages = Object.entries(world.pages).toSorted(([a], [b]) => b.length - a.length)
    const session = /cs_\w+/.exec(world.pages["/checkout-sessions/:id"]!)![0]
    const payment = /pi_\w+/.exec(world.pages["/payments/:id"]!)![0]
    return ({ path }: Route): ReadonlyArray<string> => {
      if (path.startsWith("/v1/")) {
        return [path.replace(/(?<=\/v1\/(?:test_helpers\/)?(\w+)\/):\w+/, (_, list: string) => ids[list] ?? payment)]
      }
      if (path === "/pay/:token") return [path.replace(":token", ids["payment_links"]!.slice("plink_".length))]
      if (path === "/dashboard/link/:secret") return [new URL(link).pathname]
      const of = /^\/(?:authenticate|challenge)/.test(path) ? payment : session
      const below = /^\/dashboard\/:mode(.*)$/.exec(path)?.[1]
      if (below === undefined) return [path.replace("*", "nothing").replaceAll(/:\w+/g, of)]
      const [route, page] = pages.find(([route]) => below === route || below.startsWith(`${route}/`))!
      const rest = below.slice(route.length).replaceAll(/:\w+/g, of)
      const [base, query = ""] = page.split("?", 2) as [string, string?]
      return ["test", "live"].map((mode) => `/dashboard/${mode}${base}${rest}${query && `?${query}`}`)
    }
  }

  const ask = async (path: string, method: string, headers: Headers): Promise<number> => {
    const response = await fetch(shared.url + path, { method, headers, redirect: "manual" })
    await response.arrayBuffer()
    assert.deepStrictEqual([path, method, response.headers.getSetCookie()], [path, method, []])
    assert.isBelow(response.status, 500, `${method} ${path}`)
    return response.status
  }

  it.each([
    ["the API", /^\/v1\//, 10],
    ["the dashboard in test mode", /^\/dashboard\/test(?:\/|$)/, 35],
    ["the dashboard in live mode", /^\/dashboard\/live(?:\/|$)/, 10],
    ["all other addresses", /^(?!\/v1\/|\/dashboard\/(?:test|live)(?:\/|$))/, 10]
  ] as const)("write nothing, set no cookie and open no session, at %s, for anybody", async (_, pattern, shownMin) => {
    // A live stream does not end.
    const paths = [...new Set(shared.routes.flatMap(pathsOf))].filter((path) => !/^\/dashboard\/\w+\/live$/.test(path))
    const here = paths.filter((path) => pattern.test(path))
    const before = await shared.journalOfAll()
    let shown = 0
    for (const path of here) {
      const callers = path.startsWith("/v1/") ? keys : browsers
      const methods = ["GET", "HEAD", "OPTIONS"].flatMap((method) => callers.map((headers) => ({ method, headers })))
      const statuses = await Promise.all([
        ...methods.map(({ headers, method }) => ask(path, method, headers)),
        ...(path.includes("?") ? [] : callers.map((headers) => ask(path + QUERY, "GET", headers)))
      ])
      if (statuses.includes(200)) shown++
    }
    assert.isAtLeast(shown, shownMin)
    assert.strictEqual(await shared.journalOfAll(), before)
  })

  it("leave a sign-in link valid", async () => {
    assert.strictEqual(new URL((await openTab(shared).signIn(link)).url).pathname, "/dashboard/test")
  })
})
