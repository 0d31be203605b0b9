/** The pages of embedded and custom sessions open only with their secret, and only in an allowed frame. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { embedderOf, mayOpen, pathOf } from "../../../src/pages/checkout/Embedding.ts"
import { type Answer, type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import {
  answerChallenge,
  CARDS,
  filledIn,
  openSession,
  send,
  tokenIn,
  visit
} from "../../support/fixtures/CheckoutPages.ts"

let server: MemoryTillWithPages
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const SHOP = "https://shop.example"

const openEmbedded = (parameters = {}): Promise<Answer> =>
  openSession(server, { ui_mode: "embedded", cancel_url: null, ...parameters })

const addressOf = ({ client_secret, id }: Answer, origin: string | null = SHOP): string => {
  const query = new URLSearchParams({ client_secret, ...(origin !== null && { origin }) })
  return `${server.url}/checkout/${id}?${query}`
}

const ancestorsIn = ({ headers }: { readonly headers: Headers }): string | undefined =>
  /frame-ancestors ([^;]+)/.exec(headers.get("content-security-policy")!)?.[1]

/** Sends the form like the page's script. */
const sendAsScript = async (url: string, values = filledIn()) => {
  const token = tokenIn((await visit(url)).text)
  const { status, text } = await send(url, { token, ...values }, { accept: "application/json" })
  return { status, body: JSON.parse(text) }
}

describe("the page of an embedded session", () => {
  it("may be framed by the origin in its address only", async () => {
    const answer = await visit(addressOf(await openEmbedded()))
    assert.strictEqual(answer.status, 200)
    assert.strictEqual(ancestorsIn(answer), SHOP)
    assert.isNull(answer.headers.get("x-frame-options"))
    assert.include(answer.text, `data-embedder="${SHOP}" data-status="open"`)
    assert.include(answer.text, "House Espresso")
  })

  it.each([
    null,
    "",
    "*",
    "null",
    "https://shop.example/",
    "https://shop.example https://other.example",
    "https://*.example",
    "https://shop.example; script-src *",
    "'self'",
    "javascript://shop.example",
    "http://[::1]:3000",
    "https:"
  ])("may not be framed if it is opened for %j", async (origin) => {
    const answer = await visit(addressOf(await openEmbedded(), origin))
    assert.strictEqual(answer.status, 200)
    assert.strictEqual(ancestorsIn(answer), "'none'")
    assert.strictEqual(answer.headers.get("x-frame-options"), "DENY")
    assert.notInclude(answer.text, "data-embedder")
  })

  it("requires the client secret", async () => {
    const { id } = await openEmbedded()
    const none = await visit(`${server.url}/checkout/cs_000000000000000000000000`)
    for (const query of ["", "?client_secret=", `?client_secret=${id}_secret_x`]) {
      const answer = await visit(`${server.url}/checkout/${id}${query}`)
      assert.strictEqual(answer.status, 404)
      assert.strictEqual(answer.text, none.text)
      const sent = await send(`${server.url}/checkout/${id}${query}`, { token: "a.b", ...filledIn() })
      assert.strictEqual(sent.status, 404)
    }
  })

  it("accepts another question mark in the query", async () => {
    const url = addressOf(await openEmbedded()).replace("?", "?from=a?b&")
    assert.strictEqual((await visit(url)).status, 200)
  })

  it("is paid like a hosted one, and reports it to the surrounding page", async () => {
    const session = await openEmbedded()
    const url = addressOf(session)
    assert.deepStrictEqual(await sendAsScript(url), { status: 200, body: { reload: true } })
    const { headers, status, text } = await visit(url)
    assert.strictEqual(status, 200)
    assert.strictEqual(ancestorsIn({ headers }), SHOP)
    assert.include(text, 'data-status="complete"')
    assert.include(text, `data-location="${server.url}/healthz?session=${session.id}"`)
    assert.strictEqual((await server.get(`/v1/checkout_sessions/${session.id}`)).payment_status, "paid")
  })

  it("keeps a decline in the form", async () => {
    const { body, status } = await sendAsScript(addressOf(await openEmbedded()), filledIn(CARDS.insufficientFunds))
    assert.strictEqual(status, 402)
    assert.strictEqual(body.message, "Your card has insufficient funds. You have not been charged.")
    assert.deepStrictEqual(Object.keys(body.errors), ["card_number"])
  })

  it("redirects out of the frame to an authentication, and back to its own page", async () => {
    const session = await openEmbedded()
    const { body } = await sendAsScript(addressOf(session), filledIn(CARDS.challenged))
    const challenge = await visit(body.location)
    assert.strictEqual(challenge.headers.get("x-frame-options"), "DENY")
    const answered = await answerChallenge(body.location, "success")
    const back = await visit(answered.headers.get("location")!)
    assert.strictEqual(back.headers.get("location"), `${server.url}/healthz?session=${session.id}`)
  })

  it("continues as its own page after a failed authentication, without the payment's secret", async () => {
    const session = await openEmbedded()
    const { body } = await sendAsScript(addressOf(session), filledIn(CARDS.challenged))
    const answered = await answerChallenge(body.location, "failure")
    const back = (await visit(answered.headers.get("location")!)).headers.get("location")!
    assert.strictEqual(back, addressOf(session, null))
    const { headers, text } = await visit(back)
    assert.include(text, "Your bank could not confirm that it was you.")
    assert.strictEqual(headers.get("x-frame-options"), "DENY")
  })
})

describe("pages.framing: a page of another kind of session", () => {
  it("cannot be framed, whatever its address", async () => {
    const { id, url } = await openSession(server)
    const query = `?${new URLSearchParams({ origin: SHOP, client_secret: `${id}_secret_x` })}`
    const led = await visit(url + query)
    assert.deepStrictEqual([led.status, led.headers.get("location")], [303, url])
    const { client_secret, id: custom } = await openSession(server, { ui_mode: "custom", cancel_url: null })
    const customQuery = new URLSearchParams({ origin: SHOP, client_secret })
    for (const [address, status] of [
      [url, 200],
      [`${server.url}/checkout/${custom}?${customQuery}`, 404],
      [`${server.url}/checkout/cs_1${query}`, 404],
      [`${server.url}/challenge/${id}${query}`, 404],
      [`${server.url}/authenticate/pi_1${query}`, 404],
      [`${server.url}/docs/errors${query}`, 200]
    ] as const) {
      const answer = await visit(address)
      assert.strictEqual(answer.status, status, address)
      assert.strictEqual(ancestorsIn(answer), "'none'", address)
      assert.strictEqual(answer.headers.get("x-frame-options"), "DENY", address)
      assert.isNull(answer.headers.get("access-control-allow-origin"))
    }
  })
})

describe("origins that may embed", () => {
  it("pages.framing: are none in live mode unless the installation names them", async () => {
    const parameters = { ui_mode: "embedded", cancel_url: null }
    const answer = await visit(addressOf(await openSession(server, parameters, { key: server.secretLive })))
    assert.strictEqual(answer.status, 200)
    assert.strictEqual(ancestorsIn(answer), "'none'")
    assert.strictEqual(answer.headers.get("x-frame-options"), "DENY")
  })

  it("are those that the installation names", async () => {
    const named = await start({ merchantName: "Shop", embedOrigins: new Set([SHOP]) })
    const { client_secret, id } = await openSession(named, { ui_mode: "embedded", cancel_url: null })
    const ancestorsFor = async (origin: string) =>
      ancestorsIn(await visit(`${named.url}/checkout/${id}?${new URLSearchParams({ client_secret, origin })}`))
    assert.strictEqual(await ancestorsFor(SHOP), SHOP)
    assert.strictEqual(await ancestorsFor("https://other.example"), "'none'")
    await named.close()
  })

  const embedded = { id: "cs_1", ui_mode: "embedded", livemode: false, client_secret: "cs_1_secret_a" } as Answer
  const query = new URLSearchParams({ origin: SHOP })

  it("are all in test mode and none in live mode, unless the installation names them", () => {
    const named = { embedOrigins: new Set([SHOP]) }
    const others = { embedOrigins: new Set(["https://other.example"]) }
    for (const [livemode, config, expected] of [
      [false, { embedOrigins: null }, SHOP],
      [true, { embedOrigins: null }, null],
      [false, named, SHOP],
      [true, named, SHOP],
      [false, others, null],
      [true, others, null]
    ] as const) {
      assert.strictEqual(embedderOf({ ...embedded, livemode }, query, config), expected)
    }
  })

  it("are none for a session that is hosted or custom", () => {
    for (const ui_mode of ["hosted", "custom"]) {
      assert.isNull(embedderOf({ ...embedded, ui_mode }, query, { embedOrigins: null }))
    }
  })

  it("find no page of a custom session", () => {
    const secret = new URLSearchParams({ client_secret: embedded.client_secret })
    assert.isTrue(mayOpen(embedded, secret))
    assert.isFalse(mayOpen({ ...embedded, ui_mode: "custom" }, secret))
    assert.isTrue(mayOpen({ ...embedded, ui_mode: "hosted", client_secret: null }, new URLSearchParams()))
    assert.strictEqual(pathOf({ ...embedded, client_secret: null }), "/checkout/cs_1")
  })
})

describe("the redirect of a custom session's payer to an authentication", () => {
  const openCustom = (): Promise<Answer> => openSession(server, { ui_mode: "custom", cancel_url: null })
  const wayOf = ({ client_secret, id }: Answer) => `${server.url}/challenge/${id}?client_secret=${client_secret}`
  const confirm = (session: Answer, number: string) =>
    server.post(
      `/v1/checkout_sessions/${session.id}/confirm`,
      {
        client_secret: session.client_secret,
        return_url: `${SHOP}/pay`,
        customer_details: { email: "ana@example.com" },
        payment_method_data: { type: "card", card: { number, exp_month: 12, exp_year: 2034, cvc: "123" } }
      },
      { key: server.publishableTest }
    )

  it("pages.challenge: leads to the challenge while it exists", async () => {
    const session = await openCustom()
    assert.strictEqual((await visit(wayOf(session))).status, 404)
    assert.strictEqual((await confirm(session, CARDS.challenged)).status, "open")
    const { headers, status } = await visit(wayOf(session))
    assert.strictEqual(status, 303)
    assert.isTrue(headers.get("location")!.startsWith(`${server.url}/authenticate/${session.payment_intent}?`))
  })

  it("is found by what comes after another question mark", async () => {
    const session = await openCustom()
    await confirm(session, CARDS.challenged)
    assert.strictEqual((await visit(wayOf(session).replace("?", "?from=a?b&"))).status, 303)
  })

  it("shows the outcome of a closed session", async () => {
    const session = await openCustom()
    await confirm(session, CARDS.approved)
    const { status, text } = await visit(wayOf(session))
    assert.strictEqual(status, 410)
    assert.include(text, "This order is paid")
  })

  it("pages.framing: is a 404 without the client secret, as if there were no session", async () => {
    const session = await openCustom()
    await confirm(session, CARDS.challenged)
    const other = await openCustom()
    const none = await visit(`${server.url}/challenge/cs_000000000000000000000000?client_secret=x`)
    const secrets = ["", session.client_secret.slice(0, -1), `${session.client_secret}x`, other.client_secret]
    for (const query of ["", ...secrets.map((secret) => `?client_secret=${secret}`)]) {
      const { headers, status, text } = await visit(`${server.url}/challenge/${session.id}${query}`)
      assert.strictEqual(status, 404)
      assert.isNull(headers.get("location"))
      assert.strictEqual(text, none.text)
    }
  })
})

describe.each([
  ["/checkout.js", "text/javascript; charset=utf-8"],
  ["/checkout.d.ts", "text/plain; charset=utf-8"]
])("%s", (path, type) => {
  it("is served under a fixed name to pages of any origin", async () => {
    const { headers, status } = await visit(server.url + path)
    assert.strictEqual(status, 200)
    assert.strictEqual(headers.get("content-type"), type)
    assert.strictEqual(headers.get("cache-control"), "public, max-age=300")
    assert.strictEqual(headers.get("cross-origin-resource-policy"), "cross-origin")
    const again = await visit(server.url + path, { "if-none-match": headers.get("etag")! })
    assert.strictEqual(again.status, 304)
  })
})
