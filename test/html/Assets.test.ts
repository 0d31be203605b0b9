/** Assets: served under the hash of their content, and cached forever by browsers. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Assets from "../../src/html/Assets.ts"
import { type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"

let server: MemoryTillWithPages
beforeAll(async () => {
  server = await start()
})
afterAll(() => server.close())

describe.each([
  ["style sheet", Assets.stylesheet],
  ["script", Assets.script],
  ["module of amounts", Assets.amountScript]
])("the %s", (_, asset) => {
  it("is served with its type and cached forever", async () => {
    const response = await fetch(server.url + asset.path)
    assert.strictEqual(response.status, 200)
    assert.strictEqual(await response.text(), asset.text)
    assert.strictEqual(response.headers.get("content-type"), asset.contentType)
    assert.match(response.headers.get("cache-control")!, /immutable/)
    assert.strictEqual(response.headers.get("x-content-type-options"), "nosniff")
  })

  it("is compressed for clients that accept it only", async () => {
    const [plain, gzip] = await Promise.all(
      ["identity", "gzip"].map((encoding) =>
        fetch(server.url + asset.path, { headers: { "accept-encoding": encoding } })
      )
    )
    assert.isNull(plain!.headers.get("content-encoding"))
    assert.strictEqual(gzip!.headers.get("content-encoding"), "gzip")
    assert.strictEqual(await gzip!.text(), asset.text)
  })

  it("is not sent again if the client has it", async () => {
    const response = await fetch(server.url + asset.path, { headers: { "if-none-match": asset.etag } })
    assert.strictEqual(response.status, 304)
    assert.strictEqual(await response.text(), "")
  })
})

it("an asset with another hash does not exist", async () => {
  const response = await fetch(`${server.url}/assets/till-other.css`)
  assert.strictEqual(response.status, 404)
})

it.each([
  ["payers' pages", Assets.stylesheet],
  ["the dashboard", Assets.dashboardStylesheet]
])(
  "nothing of %s becomes a container by what is in it: of a thousand pages, Chromium showed one without its field",
  (_, { text }) => {
    const rules = [...text.matchAll(/([^{}]+)\{([^{}]*)\}/g)].map(([, selector, body]) => [selector!, body!] as const)
    const containers = rules.filter(([, body]) => /\bcontainer(?:-type)?:/.test(body)).map(([selector]) => selector)
    assert.isAbove(containers.length, 0)
    for (const selector of containers) assert.notInclude(selector.replaceAll(/\/\*.*?\*\//gs, ""), ":has(")
  }
)
