/** `/openapi.json` and `/docs`: complete, public, and without external resources. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import { hash } from "node:crypto"
import * as Document from "../../../src/api/openapi/Document.ts"
import { TEST_CARDS } from "../../../src/domain/TestCards.ts"
import { type MemoryTill, type Reply, start } from "../../support/MemoryTill.ts"

let server: MemoryTill
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const document = Document.make("https://pay.example.test")

const ajv = new Ajv2020({ strict: false, validateFormats: false })
ajv.addSchema(document, "document")

/** Headers of the transfer, which the server adds. */
const TRANSFER = ["connection", "content-length", "content-type", "date", "keep-alive"]

/** The page without line-break opportunities. */
const unbroken = (page: string): string => page.replaceAll("<wbr>", "")

describe("documentation", () => {
  it("serves the document without authentication", async () => {
    const reply = await server.request("GET", "/openapi.json", { key: null })
    assert.strictEqual(reply.status, 200)
    assert.strictEqual(reply.headers.get("content-type"), "application/json")
    assert.deepStrictEqual(reply.body, JSON.parse(JSON.stringify(document)))
  })

  it("serves a page with every operation, without scripts and external resources", async () => {
    const response = await fetch(`http://127.0.0.1:${server.port}/docs`)
    const page = unbroken(await response.text())
    assert.strictEqual(response.headers.get("content-type"), "text/html; charset=utf-8")
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
    // Till may be served below a path.
    const links = [...page.matchAll(/href="([^"#][^"]*)"/g)].map(([, link]) => link)
    assert.deepStrictEqual(links, ["openapi.json", "docs/errors"])
    const style = /<style>([^<]*)<\/style>/.exec(page)![1]!
    const policy = response.headers.get("content-security-policy")!
    assert.match(policy, /^default-src 'none'; /)
    assert.include(policy, `style-src 'sha256-${hash("sha256", style, "base64")}';`)
    assert.notInclude(policy, "unsafe")
  })

  it("shows the descriptions of operations and parameters", async () => {
    const page = await (await fetch(`http://127.0.0.1:${server.port}/docs`)).text()
    assert.include(page, "Also accepts a publishable key, with the object&#39;s <code>client_secret</code>")
    assert.include(page, "Test mode only: a live key gets <code>400 test_mode_only</code>.")
    assert.include(page, "becomes $10.00 with <code>usd</code>")
    assert.include(page, "Only with <code>confirm: true</code>.")
    assert.include(page, "The <code>next_cursor</code> of a page leads to the next one.")
    assert.include(page, "give each of several concurrent test runs a merchant of its own")
    assert.include(page, "<code>till.payment_intents.capture</code>")
    assert.notInclude(page, String(Number.MAX_SAFE_INTEGER))
  })

  it("shows test cards, and links to lists", async () => {
    const page = unbroken(await (await fetch(`http://127.0.0.1:${server.port}/docs`)).text())
    assert.include(page, '<a href="#test_cards">')
    const section = page.slice(page.indexOf('<section id="test_cards">'))
    for (const { ids, numbers } of TEST_CARDS) {
      for (const one of [...ids, ...numbers]) assert.include(section, `<code>${one}</code>`)
    }
    assert.include(section, "asks for authentication, then is declined: insufficient funds")
    assert.include(page, "&quot;url&quot;: &quot;/v1/customers&quot;")
  })

  it("declares the headers of responses", async () => {
    const assertDeclared = (operation: Document.Operation, { headers, status }: Reply, expected: number) => {
      assert.strictEqual(status, expected)
      const declared = Document.responseOf(operation.responses[status]!, document).headers ?? {}
      const sent = [...headers.keys()].filter((name) => !TRANSFER.includes(name))
      assert.includeMembers(
        Object.keys(declared).map((name) => name.toLowerCase()),
        sent
      )
    }
    const { get, post } = document.paths["/v1/customers"]!
    const options = { body: { name: "Jane Doe" }, idempotencyKey: "declared" }
    assertDeclared(post!, await server.request("POST", "/v1/customers", options), 200)
    assertDeclared(post!, await server.request("POST", "/v1/customers", options), 200)
    assertDeclared(post!, await server.request("POST", "/v1/customers", { body: { name: 1 } }), 400)
    assertDeclared(get!, await server.request("GET", "/v1/customers"), 200)
    assertDeclared(get!, await server.request("GET", "/v1/customers", { key: null }), 401)
  })

  it("keys.publishable.payment_intents: allows the responses to publishable and to secret keys", async () => {
    const body = { amount: 2000, currency: "usd", payment_method: "pm_card_visa" }
    const { client_secret, id } = (await server.request("POST", "/v1/payment_intents", { body })).body
    const { publishableTest, secretTest } = server.keys
    const path = `/v1/payment_intents/${id}`
    const assertAllowed = (route: readonly [string, string], { body, status }: Reply) => {
      assert.strictEqual(status, 200)
      const parts = ["paths", ...route, "responses", "200", "content", "application/json", "schema"]
      const pointer = parts.map((part) => encodeURIComponent(part.replaceAll("/", "~1"))).join("/")
      const validate = ajv.compile({ $ref: `document#/${pointer}` })
      assert.isTrue(validate(body), ajv.errorsText(validate.errors))
      assert.isFalse(validate({ ...body, status: undefined }))
    }
    for (const key of [publishableTest, secretTest]) {
      const read = await server.request("GET", `${path}?client_secret=${client_secret}`, { key })
      assert.strictEqual("metadata" in read.body, key === secretTest)
      assertAllowed(["/v1/payment_intents/{id}", "get"], read)
    }
    const confirmed = await server.request("POST", `${path}/confirm`, { key: publishableTest, body: { client_secret } })
    assert.notProperty(confirmed.body, "metadata")
    assertAllowed(["/v1/payment_intents/{id}/confirm", "post"], confirmed)
  })
})
