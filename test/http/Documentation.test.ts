/** `/openapi.json` and `/docs` as they are served: whole, public, and with nothing from elsewhere. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { hash } from "node:crypto"
import * as Document from "../../src/api/Document.ts"
import type { TestServer } from "./TestServer.ts"
import { start } from "./TestServer.ts"

let server: TestServer
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

describe("documentation", () => {
  it("serves the document without authentication", async () => {
    const reply = await server.request("GET", "/openapi.json", { key: null })
    assert.strictEqual(reply.status, 200)
    assert.strictEqual(reply.headers.get("content-type"), "application/json")
    assert.deepStrictEqual(reply.body, JSON.parse(JSON.stringify(Document.make("https://pay.example.test"))))
  })

  it("serves a page that names every operation, runs nothing and loads nothing", async () => {
    const response = await fetch(`http://127.0.0.1:${server.port}/docs`)
    const page = await response.text()
    assert.strictEqual(response.headers.get("content-type"), "text/html; charset=utf-8")
    const document = Document.make("https://pay.example.test")
    for (const [path, item] of Object.entries(document.paths)) {
      for (const { operationId } of Object.values(item)) {
        assert.include(page, `<section id="${operationId}">`)
        assert.include(page, `<a href="#${operationId}">`)
      }
      assert.include(page, path)
    }
    for (const { post } of Object.values(document.webhooks)) {
      assert.include(page, `<section id="${post.operationId}">`)
      assert.include(page, `<a href="#${post.operationId}">`)
      for (const { name } of post.parameters) assert.include(page, `<code>${name}</code>`)
    }
    assert.notMatch(page, /<script|<link|<img|<iframe|@import|url\(| src=| style=| on[a-z]+=/)
    const style = /<style>([^<]*)<\/style>/.exec(page)![1]!
    const policy = response.headers.get("content-security-policy")!
    assert.match(policy, /^default-src 'none'; /)
    assert.include(policy, `style-src 'sha256-${hash("sha256", style, "base64")}';`)
    assert.notInclude(policy, "unsafe")
  })
})
