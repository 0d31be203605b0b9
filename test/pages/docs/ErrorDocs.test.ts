/** Error documentation (semantics errors.table): every error's `doc_url` leads to a page about its code. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { DECLINE_MESSAGES } from "../../../src/domain/Cards.ts"
import { envelope, internalError, wireErrorOf } from "../../../src/http/ErrorTable.ts"
import { examples, FAILURES } from "../../../src/pages/docs/ErrorExamples.ts"
import { EXPLANATIONS } from "../../../src/pages/docs/ErrorExplanations.ts"
import { basic } from "../../support/HttpExchange.ts"
import { type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import { visit } from "../../support/fixtures/CheckoutPages.ts"

/** Codes of semantics errors.table and of semantics request_log.list, and further ones that an HTTP server needs. */
const CODES =
  `parameter_missing parameter_invalid parameter_unknown parameters_exclusive invalid_json invalid_api_version
  amount_too_large payment_intent_unexpected_state checkout_session_unexpected_state payment_link_inactive
  operation_in_progress customer_has_payment processor_refused card_data_refused
  charge_already_refunded
  price_inactive product_inactive resource_already_exists resource_in_use processor_not_configured authentication_failed
  api_key_expired card_declined payment_intent_authentication_failure secret_key_required resource_missing
  route_not_found method_not_allowed idempotency_key_in_use request_too_large unsupported_media_type
  idempotency_key_reuse rate_limit_exceeded internal_error processor_unavailable service_unavailable
  test_mode_only request_log_off invalid_http request_headers_too_large request_timeout`.split(/\s+/)

let server: MemoryTillWithPages
beforeAll(async () => {
  server = await start()
})
afterAll(() => server.close())

describe("the codes", () => {
  it("of the error table are explained, and no others", () => {
    const answered = new Set(examples("https://till.example/docs").map(({ code }) => code))
    assert.deepStrictEqual([...answered].toSorted(), [...EXPLANATIONS.keys()].toSorted())
    assert.deepStrictEqual(CODES.toSorted(), [...EXPLANATIONS.keys()].toSorted())
  })
})

const headingOf = (code: string): RegExp => new RegExp(`<h1 class="name"><code(?: class="long")?>${code}</code></h1>`)

describe("the page of an error", () => {
  const failures = Object.entries(FAILURES).map(([tag, failure]) => [tag, wireErrorOf(failure)] as const)

  it.each([...failures, ["a defect", internalError] as const])("%s is where its doc_url leads", async (_, error) => {
    const body = envelope(error, `${server.url}/docs`)
    const { headers, status, text } = await visit(JSON.parse(body).error.doc_url)
    assert.strictEqual(status, 200)
    assert.include(headers.get("content-type"), "text/html")
    assert.match(text, headingOf(error.code))
    assert.include(text, `HTTP status <code>${error.status}</code>, type <code>${error.type}</code>`)
    // The example is the API's response, with its own address.
    assert.include(text.replaceAll("&quot;", '"'), `"doc_url": "${server.url}/docs/errors/${error.code}"`)
  })

  it.each(CODES)("%s explains meaning, causes and remedies", async (code) => {
    const { status, text } = await visit(`${server.url}/docs/errors/${code}`)
    assert.strictEqual(status, 200)
    const { causes, meaning, remedies } = EXPLANATIONS.get(code)!
    const plain = text
      .replaceAll(/<\/?code>/g, "")
      .replaceAll("&quot;", '"')
      .replaceAll("&#39;", "'")
    assert.isAbove(causes.length, 0)
    assert.isAbove(remedies.length, 0)
    for (const sentence of [meaning, ...causes, ...remedies]) assert.include(plain, sentence.replaceAll("`", ""))
  })

  it("has every decline code with its message", async () => {
    const { text } = await visit(`${server.url}/docs/errors/card_declined`)
    for (const [code, message] of Object.entries(DECLINE_MESSAGES)) {
      assert.include(text, `<code>${code}</code>`)
      assert.include(text, message.replaceAll("'", "&#39;"))
    }
  })

  it.each(["/docs/errors", "/docs/errors/card_declined", "/docs/errors/nothing"])(
    "%s has relative links to existing pages and files",
    async (path) => {
      const { text } = await visit(server.url + path)
      const names = new Set([...text.matchAll(/(?:href|src)="([^"]+)"/g)].map((found) => found[1]!))
      assert.isAbove(names.size, 20)
      for (const name of [...names].filter((one) => !/^(?:data:|#)/.test(one))) {
        assert.match(name, /^\.\.?\//)
        // The dashboard redirects to its sign-in.
        const expected = name.endsWith("/dashboard") ? 303 : 200
        assert.strictEqual((await visit(new URL(name, server.url + path).href)).status, expected, name)
      }
    }
  )

  it("is linked from an actual error", async () => {
    const answers = await Promise.all([
      fetch(`${server.url}/v1/customers`),
      fetch(`${server.url}/v1/nothing`, { headers: { authorization: basic(server.secretTest) } }),
      fetch(`${server.url}/nothing`),
      fetch(`${server.url}/v1/customers`, { method: "POST", headers: { authorization: basic(server.secretTest) } })
    ])
    const codes = ["authentication_failed", "route_not_found", "route_not_found", "parameter_missing"]
    for (const [index, answer] of answers.entries()) {
      const { error } = (await answer.json()) as { error: { code: string; doc_url: string } }
      assert.strictEqual(error.code, codes[index])
      const { status, text } = await visit(error.doc_url)
      assert.strictEqual(status, 200)
      assert.match(text, headingOf(error.code))
    }
  })

  it("links to the operations that return it, and back", async () => {
    const { text } = await visit(`${server.url}/docs/errors/charge_already_refunded`)
    assert.include(text, `<a href="../../docs/api/refunds#create">Create a refund</a>`)
    const refunds = await visit(`${server.url}/docs/api/refunds`)
    assert.include(refunds.text, `<a href="../../docs/errors/charge_already_refunded">`)
  })

  it("is cached for minutes only, and cannot be framed", async () => {
    const { headers } = await visit(`${server.url}/docs/errors/card_declined`)
    assert.strictEqual(headers.get("cache-control"), "public, max-age=300")
    assert.include(headers.get("content-security-policy"), "frame-ancestors 'none'")
    assert.strictEqual(headers.get("x-frame-options"), "DENY")
  })
})

describe("a page's address", () => {
  it.each(["/docs", "/docs/errors", "/docs/errors/card_declined?from=a/b/"])(
    "%s works with a trailing slash, in spite of relative links",
    async (address) => {
      const [path, query] = address.split("?")
      const reply = await fetch(`${server.url}${path}/${query === undefined ? "" : `?${query}`}`)
      assert.strictEqual(reply.status, 200)
      assert.strictEqual(reply.url, `${server.url}${address}`)
    }
  )
})

describe("the index of errors", () => {
  it("is linked from the API's reference", async () => {
    const { text } = await visit(`${server.url}/docs`)
    const link = /href="([^"]*docs\/errors)"/.exec(text)?.[1] ?? ""
    assert.strictEqual(new URL(link, `${server.url}/docs`).pathname, "/docs/errors")
  })

  it("leads to every page", async () => {
    const { status, text } = await visit(`${server.url}/docs/errors`)
    assert.strictEqual(status, 200)
    const links = [...text.matchAll(/<dt>\s*<a href="([^"]+)"/g)].map((found) => found[1]!)
    assert.deepStrictEqual(links.toSorted(), CODES.map((code) => `../docs/errors/${code}`).toSorted())
  })

  it.each(["nothing", "toString", "%3Cscript%3E", "CARD_DECLINED"])("has no page for %s", async (code) => {
    const { status, text } = await visit(`${server.url}/docs/errors/${code}`)
    assert.strictEqual(status, 404)
    assert.notInclude(text, "<script>")
  })
})
