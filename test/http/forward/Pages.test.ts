/** Pages and public links at any process: the account is found by the link, and its process answers, byte for byte. */
import "effect/schema/SchemaJITCompiler/enable"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { readBodyOf, senderOf } from "../../../src/http/forward/ForwardPage.ts"
import { requireHere, route } from "../../../src/html/Routing.ts"
import type { Keys } from "../../support/fixtures/Merchants.ts"
import { basic } from "../../support/HttpExchange.ts"
import { type MemoryFleet, type MorePages, start } from "../../support/MemoryFleet.ts"
import { comparable, RawClient } from "../../support/RawClient.ts"

const LONG = Buffer.alloc(3_000_000, "\u00ff\u0000long", "latin1")
const EVENTS = ["data: 1\n\n", "data: 2\n\n", "data: 3\n\n"]

let runners: MemoryFleet
let keys: Keys
const streams = { interrupted: 0 }

/** Kinds of pages that may exist later: streamed, long, not text, with cookies. */
const more: MorePages = Layer.mergeAll(
  route("GET", "/test/events/:account", (_, { account = "" }) =>
    Effect.gen(function* () {
      yield* requireHere(account)
      const events = Stream.fromIterable(EVENTS).pipe(
        Stream.mapEffect((event) => Effect.as(Effect.sleep(50), new TextEncoder().encode(event)))
      )
      return HttpServerResponse.stream(events, { contentType: "text/event-stream" })
    })
  ),
  route("GET", "/test/endless/:account", (_, { account = "" }) =>
    Effect.gen(function* () {
      yield* requireHere(account)
      const events = Stream.fromIterable(EVENTS).pipe(
        Stream.map((event) => new TextEncoder().encode(event)),
        Stream.concat(Stream.never),
        Stream.ensuring(Effect.sync(() => void streams.interrupted++))
      )
      return HttpServerResponse.stream(events, { contentType: "text/event-stream" })
    })
  ),
  route("GET", "/test/long/:account", (_, { account = "" }) =>
    Effect.as(requireHere(account), HttpServerResponse.uint8Array(LONG, { contentType: "application/octet-stream" }))
  ),
  route("POST", "/test/form/:account", (request, { account = "" }) =>
    Effect.gen(function* () {
      const before = yield* readBodyOf(request)
      yield* requireHere(account)
      const body = Buffer.concat([before, Buffer.from(` from ${yield* senderOf(request)}`)])
      return HttpServerResponse.uint8Array(body, { status: 201 }).pipe(
        HttpServerResponse.setCookieUnsafe("a", "1", { httpOnly: true }),
        HttpServerResponse.setCookieUnsafe("b", "2", { secure: true })
      )
    })
  )
)

beforeAll(async () => {
  runners = await start(3, { pages: more })
  keys = await runners.merchant()
  await runners.move("till", 0)
  await runners.move(`${keys.merchantId}:test`, 1)
})
afterAll(() => runners.close())

const OWNER = 1
const OTHER = 2

const exchange = async (runner: number, text: string | Buffer, isHead = false): Promise<string> => {
  const client = new RawClient(runners.all[runner]!.port)
  const answer = await client.send(text, isHead)
  client.close()
  return answer ?? "no answer"
}

const get = (path: string, headers: ReadonlyArray<string> = [], method = "GET") =>
  [`${method} ${path} HTTP/1.1`, "Host: till.example", ...headers, "", ""].join("\r\n")

const post = (path: string, body: string, headers: ReadonlyArray<string> = []) =>
  Buffer.concat([
    Buffer.from(
      [
        `POST ${path} HTTP/1.1`,
        "Host: till.example",
        "Content-Type: application/x-www-form-urlencoded",
        `Content-Length: ${Buffer.byteLength(body)}`,
        ...headers,
        "",
        ""
      ].join("\r\n")
    ),
    Buffer.from(body)
  ])

/** Each page contains its own token, for its one form. */
const withoutToken = (answer: string): string => comparable(answer)!.replaceAll(/"[\w-]{22}\.[\w-]{43}"/g, '"*"')
const tokenOf = (page: string): string => /value="([\w-]{22}\.[\w-]{43})"/.exec(page)![1]!

const assertSame = async (text: string | Buffer, isHead = false): Promise<string> => {
  const there = withoutToken(await exchange(OWNER, text, isHead))
  assert.strictEqual(withoutToken(await exchange(OTHER, text, isHead)), there)
  return there
}

const api = async (path: string, body: object): Promise<{ readonly id: string; readonly client_secret: string }> => {
  const response = await fetch(`http://127.0.0.1:${runners.all[OTHER]!.port}${path}`, {
    method: "POST",
    headers: {
      authorization: basic(keys.secretTest),
      "content-type": "application/json",
      "idempotency-key": crypto.randomUUID()
    },
    body: JSON.stringify(body)
  })
  const answer = await response.json()
  assert.strictEqual(response.status, 200, JSON.stringify(answer))
  return answer as never
}

const session = async () => {
  const { id: product } = await api("/v1/products", { name: "Tea" })
  return api("/v1/checkout_sessions", {
    mode: "payment",
    line_items: [{ quantity: 1, price_data: { currency: "usd", unit_amount: 2000, product } }],
    success_url: "https://shop.example/thanks"
  })
}

const CARD = {
  email: "jane@example.com",
  card_number: "4242424242424242",
  card_expiry: "12/40",
  card_cvc: "123",
  name: "Jane Doe"
}

describe("a payer's page at any process", () => {
  it("equals that of its account's own", async () => {
    const { id } = await session()
    assert.include(await assertSame(get(`/checkout/${id}`)), "HTTP/1.1 200 OK")
    assert.include(await assertSame(get(`/checkout/${id}`, ["Accept: application/json"])), "HTTP/1.1")
    assert.include(await assertSame(get(`/checkout/${id}`, [], "HEAD"), true), "HTTP/1.1 200 OK")
    assert.include(await assertSame(get(`/checkout/${id}/`)), "HTTP/1.1 308")
    assert.include(await assertSame(get("/checkout/cs_000000000000000000000000")), "HTTP/1.1 404")
    assert.include(await assertSame(get("/healthz")), "HTTP/1.1 200")
    assert.include(await assertSame(get("/docs")), "HTTP/1.1 200")
  })

  it("accepts a form once, at any process", async () => {
    const { id } = await session()
    const token = tokenOf(await exchange(OTHER, get(`/checkout/${id}`)))
    const form = new URLSearchParams({ ...CARD, token }).toString()
    const paid = await exchange(OTHER, post(`/checkout/${id}`, form))
    assert.match(paid, /^HTTP\/1\.1 303/, paid)
    assert.strictEqual(comparable(await exchange(OWNER, post(`/checkout/${id}`, form))), comparable(paid))
    assert.strictEqual(comparable(await exchange(0, post(`/checkout/${id}`, form))), comparable(paid))
    const events = await runners.all[OWNER]!.accounts.events(`${keys.merchantId}:test`, {
      limit: 100,
      types: ["payment_intent.succeeded"]
    } as never).pipe(Effect.runPromise)
    assert.strictEqual(events.events.filter(({ type }) => type === "payment_intent.succeeded").length, 1)
  })

  it("refuses a form as its account's own does", async () => {
    const { id } = await session()
    assert.include(await assertSame(post(`/checkout/${id}`, "a=b")), "HTTP/1.1 400")
    assert.include(await assertSame(post(`/checkout/${id}`, `a=${"x".repeat(70_000)}`)), "HTTP/1.1 413")
    assert.include(await assertSame(post(`/checkout/${id}`, "", ["Sec-Fetch-Site: cross-site"])), "HTTP/1.1 403")
  })

  it("requests an authentication, and accepts its result", async () => {
    const { client_secret, id } = await api("/v1/payment_intents", {
      amount: 2000,
      currency: "usd",
      confirm: true,
      payment_method: "pm_card_threeDSecure2Required",
      return_url: "https://shop.example/back"
    })
    const path = `/authenticate/${id}`
    assert.include(await assertSame(get(`${path}?client_secret=wrong`)), "HTTP/1.1 404")
    const page = await exchange(OTHER, get(`${path}?client_secret=${client_secret}`))
    const terms = /name="terms" value="([^"]*)"/.exec(page)![1]!
    const form = new URLSearchParams({ client_secret, outcome: "success", terms, token: tokenOf(page) }).toString()
    const answered = await exchange(OTHER, post(path, form))
    assert.match(
      answered,
      /^HTTP\/1\.1 303[^]*location: https:\/\/shop\.example\/back\?[^\r]*redirect_status=succeeded/i
    )
    assert.strictEqual(comparable(await exchange(OWNER, post(path, form))), comparable(answered))
  })
})

describe("any other page", () => {
  const account = () => `${keys.merchantId}:test`

  it("is passed on unchanged: long, without a length, not text", async () => {
    assert.strictEqual((await assertSame(get(`/test/long/${account()}`))).length > LONG.length, true)
    const events = await assertSame(get(`/test/events/${account()}`))
    for (const event of EVENTS) assert.include(events, event)
  })

  it("sets all of its cookies, and gets its client's address", async () => {
    const body = "a=b&c=d"
    const answer = await assertSame(post(`/test/form/${account()}`, body, ["Cookie: x=1", "Cookie: y=2"]))
    assert.match(answer, /^HTTP\/1\.1 201/)
    assert.strictEqual(answer.match(/^set-cookie: /gim)?.length, 2)
    assert.include(answer, `${body} from 127.0.0.1`)
  })

  it("ends when its client leaves", async () => {
    const client = new RawClient(runners.all[OTHER]!.port)
    client.write(get(`/test/endless/${account()}`))
    await new Promise((resolve) => setTimeout(resolve, 200))
    const { interrupted } = streams
    client.close()
    while (streams.interrupted === interrupted) await new Promise((resolve) => setTimeout(resolve, 10))
    assert.strictEqual(streams.interrupted, interrupted + 1)
  })
})
