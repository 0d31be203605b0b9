/** Till's home page, and invalid addresses below pages (semantics pages.home). */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as http from "node:http"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import * as Merchants from "../../src/payments/merchants/Merchants.ts"
import { type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { linksIn, openSession, send, tokenIn, visit } from "../support/fixtures/CheckoutPages.ts"

let server: MemoryTillWithPages
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const BROWSER = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" }

describe("Till's own address", () => {
  it("pages.home: is a page for browsers, with working links", async () => {
    const { headers, status, text } = await visit(`${server.url}/`, BROWSER)
    assert.strictEqual(status, 200)
    assert.strictEqual(headers.get("content-type"), "text/html; charset=utf-8")
    assert.strictEqual(headers.get("vary"), "accept, accept-encoding")
    assert.strictEqual(headers.get("x-frame-options"), "DENY")
    assert.include(headers.get("content-security-policy")!, "default-src 'self'")
    assert.include(text, server.url)
    assert.include(text, "For shops that have connected a card processor.")
    const links = linksIn(text)
    assert.includeMembers(
      [...links],
      [
        "./dashboard",
        "./docs",
        "./docs/guide/checkout",
        "./docs/guide/live",
        "./docs/errors",
        "./openapi.json",
        "./healthz",
        "./readyz"
      ]
    )
    for (const link of links) {
      // The dashboard redirects to its sign-in.
      const expected = link === "./dashboard" ? 303 : 200
      assert.strictEqual((await visit(new URL(link, `${server.url}/`).href)).status, expected, link)
    }
    const [, style] = /<link rel="stylesheet" href="([^"]+)"/.exec(text)!
    assert.strictEqual((await visit(new URL(style!, `${server.url}/`).href)).status, 200)
    assert.notMatch(text, /<form|<script/i)
  })

  it("pages.home: says whether live cards can be charged", async () => {
    const simulating = await start({ merchantName: "Shop", liveProcessor: "simulator" })
    assert.notInclude((await visit(`${simulating.url}/`, BROWSER)).text, "cannot take cards")
    await simulating.close()
  })

  it("pages.home: answers HEAD, and ignores a query", async () => {
    const response = await fetch(`${server.url}/`, { method: "HEAD", headers: BROWSER })
    assert.strictEqual(response.status, 200)
    assert.include(response.headers.get("content-type")!, "text/html")
    assert.strictEqual(await response.text(), "")
    assert.strictEqual((await visit(`${server.url}/?utm=1`, BROWSER)).status, 200)
  })

  it.each(["*/*", "application/json", "text/plain, application/json;q=0.5", "text/html;q=0, */*", "text/htmlx"])(
    "pages.home: is a line of text for a monitor that accepts %s",
    async (accept) => {
      const response = await fetch(`${server.url}/`, { headers: { accept } })
      assert.strictEqual(response.status, 200)
      assert.strictEqual(response.headers.get("content-type"), "text/plain; charset=utf-8")
      assert.strictEqual(response.headers.get("vary"), "accept")
      assert.strictEqual(await response.text(), `Till answers here. Documentation: ${server.url}/docs\n`)
      const head = await fetch(`${server.url}/`, { method: "HEAD", headers: { accept } })
      assert.deepStrictEqual([head.status, await head.text()], [200, ""])
    }
  )

  it.each([
    ["POST", "text/html"],
    ["DELETE", "*/*"]
  ])("pages.not_found: is a 404 for a %s that accepts %s", async (method, accept) => {
    const response = await fetch(`${server.url}/`, { method, headers: { accept } })
    assert.strictEqual(response.status, 404)
    assert.strictEqual(response.headers.get("content-type"), "application/json")
    assert.strictEqual((await response.json()).error.code, "route_not_found")
  })
})

describe("the checkout to try", () => {
  const launch = async () => {
    const own = await start({ isForThisMachine: true })
    const { generated } = await Effect.runPromise(own.accounts.run(INSTALLATION, Merchants.ensureDefault({})))
    const { text } = await visit(`${own.url}/`, BROWSER)
    const sessions = async (key: keyof typeof generated) =>
      (await own.get("/v1/checkout_sessions", Redacted.value(generated[key]!))).data
    return { own, sessions, text, token: tokenIn(text), click: (token: string) => send(`${own.url}/try`, { token }) }
  }

  it("pages.home: opens with one click, once per form, in test mode of the first start's merchant", async () => {
    const { click, own, sessions, text, token } = await launch()
    assert.match(text, /<form method="post" action="\.\/try">/u)
    const opened = await click(token)
    assert.strictEqual(opened.status, 303)
    const location = opened.headers.get("location")!
    const checkout = await visit(location)
    assert.strictEqual(checkout.status, 200)
    assert.include(checkout.text, "House Espresso")
    assert.include(checkout.text, "$24.00")
    assert.strictEqual((await click(token)).headers.get("location"), location)
    assert.lengthOf(await sessions("secretTest"), 1)
    const another = await click(tokenIn((await visit(`${own.url}/`, BROWSER)).text))
    assert.notStrictEqual(another.headers.get("location"), location)
    assert.lengthOf(await sessions("secretTest"), 2)
    assert.isEmpty(await sessions("secretLive"))
    assert.isEmpty((await own.get("/v1/checkout_sessions")).data)
    await own.close()
  })

  it("pages.home: is refused to other sites, under other names, and with a token that Till did not make", async () => {
    const { click, own, sessions, token } = await launch()
    assert.strictEqual((await click(`${token}x`)).status, 403)
    assert.strictEqual((await click("")).status, 403)
    for (const site of ["cross-site", "same-site"]) {
      assert.strictEqual((await send(`${own.url}/try`, { token }, { "sec-fetch-site": site })).status, 403)
    }
    const headers = { host: "shop.example", "content-type": "application/x-www-form-urlencoded" }
    const status = await new Promise((resolve) => {
      const request = http.request(`${own.url}/try`, { method: "POST", headers }, (response) => {
        resolve(response.resume().statusCode)
      })
      request.end(new URLSearchParams({ token }).toString())
    })
    assert.strictEqual(status, 403)
    assert.isEmpty(await sessions("secretTest"))
    await own.close()
  })

  it("pages.home: does not exist where others reach Till", async () => {
    const { status, text } = await send(`${server.url}/try`, { token: "x" })
    assert.strictEqual(status, 404)
    assert.strictEqual(JSON.parse(text).error.code, "route_not_found")
  })
})

describe("an invalid address", () => {
  const assertPage = async (method: string, path: string) => {
    const response = await fetch(server.url + path, { method, headers: { accept: "application/json" } })
    assert.strictEqual(response.status, 404, path)
    assert.strictEqual(response.headers.get("content-type"), "text/html; charset=utf-8", path)
    assert.strictEqual(response.headers.get("x-content-type-options"), "nosniff")
    assert.strictEqual(response.headers.get("referrer-policy"), "no-referrer")
    assert.strictEqual(response.headers.get("cache-control"), "no-store")
    assert.strictEqual(response.headers.get("x-frame-options"), "DENY")
    return response.text()
  }

  for (const page of ["checkout", "challenge", "authenticate", "pay"]) {
    it.each([
      "",
      "/",
      "//",
      "/nothing",
      "/cs_1/",
      "/cs_1/more",
      "/cs_1/more/",
      "/%zz",
      "/%00",
      "/%E0%A4%A",
      "/cs_%2F..%2F",
      "/cs_'%22%3Cscript%3E",
      `/cs_${"a".repeat(500)}`,
      "/cs_ä",
      "/%2e%2e%2fv1",
      "?client_secret=x"
    ])(`pages.not_found: below /${page} gets a page: %s`, async (rest) => {
      // A trailing slash after a possible id is redirected first.
      const path = rest === "/cs_1/" ? "/cs_1" : rest
      const text = await assertPage("GET", `/${page}${path}`)
      assert.include(text, "Page not found")
      const [, style] = /<link rel="stylesheet" href="([^"]+)"/.exec(text)!
      const base = new URL(`/${page}${path}`, server.url)
      assert.strictEqual((await visit(new URL(style!, base).href)).status, 200, "its style sheet")
      assert.strictEqual(await assertPage("HEAD", `/${page}${path}`), "")
    })

    it.each(["PUT", "PATCH", "DELETE"])(`pages.not_found: below /${page} gets a page for %s`, async (method) => {
      const { id } = await openSession(server)
      await assertPage(method, `/${page}/${id}`)
      await assertPage(method, `/${page}/%zz`)
    })
  }

  it("pages.not_found: elsewhere gets JSON, as before", async () => {
    for (const path of ["/checkouts", "/nothing", "/checkout.jsx", "/constructor", "/__proto__/a"]) {
      const response = await fetch(server.url + path, { headers: BROWSER })
      assert.strictEqual(response.status, 404)
      assert.strictEqual((await response.json()).error.code, "route_not_found", path)
    }
    assert.strictEqual((await visit(`${server.url}/checkout.js`)).status, 200)
  })
})
