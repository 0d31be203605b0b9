/** The documentation: complete, public, small, and usable without a script (semantics pages.documentation). */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as fs from "node:fs"
import * as zlib from "node:zlib"
import * as Document from "../../../src/api/openapi/Document.ts"
import { EMITTED_EVENT_TYPES } from "../../../src/domain/Event.ts"
import { TEST_CARDS } from "../../../src/domain/TestCards.ts"
import { GUIDES } from "../../../src/pages/docs/Guides.ts"
import { patternInWords } from "../../../src/pages/docs/Fields.ts"
import type { Reply } from "../../support/MemoryTill.ts"
import { type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import { linksIn, visit } from "../../support/fixtures/CheckoutPages.ts"

let server: MemoryTillWithPages
let document: Document.Document
beforeAll(async () => {
  server = await start()
  document = Document.make(server.url)
})
afterAll(() => server.close())

type Visited = ReturnType<typeof visit>
const known = new Map<string, Visited>()

/** Loads a path once: most pages link to the same ones. */
const read = (path: string): Visited => {
  const visited = known.get(path) ?? visit(server.url + path)
  known.set(path, visited)
  return visited
}

/** The status that a link leads to: the dashboard redirects to its sign-in. */
const statusOf = (target: string): number => (target.endsWith("/dashboard") ? 303 : 200)

const RESOURCES = Document.make("https://pay.example.test").tags.map(({ name }) => name)
const PAGES = [
  "/docs",
  "/docs/errors",
  "/docs/test-cards",
  ...GUIDES.map((name) => `/docs/guide/${name}`),
  ...RESOURCES.map((name) => `/docs/api/${name}`)
]

describe("the documentation", () => {
  it("serves the contract without authentication", async () => {
    const reply = await read("/openapi.json")
    assert.strictEqual(reply.status, 200)
    assert.strictEqual(reply.headers.get("content-type"), "application/json")
    assert.deepStrictEqual(JSON.parse(reply.text), JSON.parse(JSON.stringify(document)))
  })

  it.each(PAGES)("pages.documentation: has %s, small, with links to pages that exist", async (path) => {
    const { headers, status, text } = await read(path)
    assert.strictEqual(status, 200)
    assert.strictEqual(headers.get("content-type"), "text/html; charset=utf-8")
    assert.strictEqual(headers.get("cache-control"), "public, max-age=300")
    assert.isBelow(zlib.gzipSync(text).length, 60_000)
    // Till may be served below a path.
    for (const link of linksIn(text)) assert.match(link, /^(?:\.|#|https:)/)
    assert.notMatch(text, /<script(?! src="\.)| style=| on[a-z]+=/)
    const targets = [...linksIn(text)].map((link) => new URL(link, server.url + path))
    const own = targets.filter(({ origin, pathname }) => origin === server.url && pathname !== path)
    const paths = new Set(own.map(({ pathname }) => pathname))
    for (const target of paths) assert.strictEqual((await read(target)).status, statusOf(target), target)
    for (const { hash, pathname } of own.filter((target) => target.hash !== "")) {
      assert.include((await read(pathname)).text, `id="${hash.slice(1)}"`, `${pathname}${hash}`)
    }
  })

  it.each(PAGES)("pages.documentation: has %s as Markdown, with the same heading", async (path) => {
    const { headers, status, text } = await read(`${path}.md`)
    assert.strictEqual(status, 200)
    assert.strictEqual(headers.get("content-type"), "text/markdown; charset=utf-8")
    const [, heading] = /<h1>(.*?)<\/h1>/.exec((await read(path)).text)!
    assert.strictEqual(text.split("\n", 1)[0], `# ${heading}`)
    for (const [, link] of text.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
      if (link!.startsWith(server.url)) assert.strictEqual((await visit(link!)).status, statusOf(link!), link)
      else assert.match(link!, /^https:/)
    }
  })

  it("has a place for every operation, with its nested fields, in words", async () => {
    for (const [path, item] of Object.entries(document.paths)) {
      for (const [method, { operationId, summary, tags }] of Object.entries(item)) {
        const { text } = await read(`/docs/api/${tags[0]}`)
        const section = text
          .slice(text.indexOf(`<section id="${operationId.split(".")[1]}"`))
          .split("</section>", 1)[0]!
        assert.include(section, `>${summary}</a>`, operationId)
        assert.include(section, `<b>${method.toUpperCase()}</b> <code>${path}</code>`)
        for (const language of ["curl", "typescript", "python", "php"]) {
          assert.include(section, `data-language="${language}"`, operationId)
        }
      }
    }
    const { text } = await read("/docs/api/checkout_sessions")
    const create = text.slice(text.indexOf(`<section id="create"`)).split("</section>", 1)[0]!
    for (const name of ["line_items", "quantity", "price_data", "unit_amount", "interval_count"]) {
      assert.include(create, `<code>${name}</code>`)
    }
    assert.include(create, "list of 1 to 100 objects")
    assert.include(create, "becomes $10.00 with <code>usd</code>")
    assert.include(create, "text of at most 200 characters")
    assert.notMatch(text, /\[A-Za-z\]|\^[a-z]+_/)
    assert.notInclude(text, String(Number.MAX_SAFE_INTEGER))
    const helpers = (await read("/docs/api/test_helpers")).text
    assert.include(helpers, "Test mode only: a live key gets <code>400 test_mode_only</code>.")
    assert.include(helpers, "give each of several concurrent test runs a merchant of its own")
    const payments = (await read("/docs/api/payment_intents")).text
    assert.include(payments, "Only with <code>confirm: true</code>.")
    assert.include(payments, "The <code>next_cursor</code> of a page leads to the next one.")
    assert.include(payments, "&quot;url&quot;: &quot;/v1/payment_intents&quot;")
    assert.include(payments, "till.payment_intents.capture(payment_intent.id")
  })

  it("has words for every pattern of the contract", () => {
    const patterns = new Set(
      [...JSON.stringify(document).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)].map(([, text]) => JSON.parse(text!))
    )
    // These two have words by their format, or are those of keys of maps.
    const others = ["^[^\\s@]+@[^\\s@]+\\.[^\\s@]+$", "^[^\\[\\]]*$"]
    assert.isAbove(patterns.size, 20)
    for (const pattern of patterns) if (!others.includes(pattern)) assert.isDefined(patternInWords(pattern), pattern)
  })

  it("lists the test cards and the events", async () => {
    const { text } = await read("/docs/test-cards")
    for (const { ids, numbers } of TEST_CARDS) {
      for (const one of [...ids, ...numbers]) assert.include(text, `<code>${one}</code>`)
    }
    assert.include(text, "asks for authentication, then is declined: insufficient funds")
    const webhooks = (await read("/docs/guide/webhooks")).text
    for (const type of Object.keys(EMITTED_EVENT_TYPES)) assert.include(webhooks, `<code>${type}</code>`)
  })

  it("has every guide of the folder", () => {
    const files = fs.readdirSync(new URL("../../../docs/guide", import.meta.url))
    assert.sameMembers(
      files,
      GUIDES.map((name) => `${name}.md`)
    )
  })

  it("searches without a script, and has the index for the script", async () => {
    const { headers, text } = await read("/docs/search?q=Refund%20metadata")
    assert.strictEqual(headers.get("cache-control"), "no-store")
    assert.include(text, `<a href="../docs/api/refunds`)
    assert.include((await read("/docs/search?q=%3Cb%3Enothing")).text, "Nothing found for “&lt;b&gt;nothing”")
    const index = JSON.parse((await read("/docs/search.json")).text) as ReadonlyArray<[string, string, string]>
    for (const [title, path] of index) {
      assert.isNotEmpty(title)
      assert.strictEqual((await read(path)).status, 200, path)
    }
    assert.isTrue(index.some(([, path]) => path === "/docs/api/payment_intents#capture"))
  })

  it("lists all pages in llms.txt", async () => {
    const { text } = await read("/llms.txt")
    const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => new URL(link!).pathname)
    for (const path of PAGES.slice(1)) assert.include(links, `${path}.md`)
    for (const link of links) assert.strictEqual((await read(link)).status, 200, link)
  })

  it.each(["/docs/nothing", "/docs/api/nothing", "/docs/guide/../x", "/docs/api/refunds/more", "/docs/nothing.md"])(
    "has no page at %s",
    async (path) => {
      const { headers, status } = await read(path)
      assert.strictEqual(status, 404)
      if (!path.endsWith(".md")) assert.strictEqual(headers.get("cache-control"), "no-store")
    }
  )
})

/** Headers of the transfer, which the server adds. */
const TRANSFER = ["connection", "content-length", "content-type", "date", "keep-alive"]

describe("the contract", () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  beforeAll(() => void ajv.addSchema(document, "document"))

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
