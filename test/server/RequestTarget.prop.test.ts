/**
 * A target has one meaning (semantics requests.target): in every form that a client may send, the same route with the
 * same parameters answers, with either parser, and at every process. `TILL_SEED` replays a run.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { isWrongTarget, originFormOf } from "../../src/server/RequestTarget.ts"
import type { Keys } from "../support/fixtures/Merchants.ts"
import { Random, runSeed } from "../support/Random.ts"
import { basic } from "../support/HttpExchange.ts"
import { comparable, RawClient } from "../support/RawClient.ts"
import { type MemoryFleet, start } from "../support/MemoryFleet.ts"

const CASES = 100

let runners: MemoryFleet
let keys: Keys
beforeAll(async () => {
  runners = await start(2)
  keys = await runners.merchant()
  await runners.move("till", 0)
  await runners.move(`${keys.merchantId}:test`, 1)
})
afterAll(() => runners.close())

const OWNER = 1
const OTHER = 0

/** A header that makes a request go to Node's parser. */
const FOR_NODE = "TE: trailers"

interface Sent {
  readonly runner: number
  readonly lines?: ReadonlyArray<string>
  readonly method?: string
}

const exchange = async (target: string, { lines = [], method = "GET", runner }: Sent): Promise<string | undefined> => {
  const client = new RawClient(runners.all[runner]!.port)
  const head = [
    `${method} ${target} HTTP/1.1`,
    "Host: till.example",
    `Authorization: ${basic(keys.secretTest)}`,
    ...lines
  ]
  const answer = await client.send(`${head.join("\r\n")}\r\n\r\n`)
  client.close()
  return comparable(answer)
}

const ORIGINS = [
  "http://till.example",
  "HTTP://till.example:80",
  "https://127.0.0.1:4242",
  "http://me:pw@h",
  "http://[::1]:1"
]

/** All forms of a target that starts with a slash. */
const formsOf = (target: string): ReadonlyArray<string> => [
  target,
  ...ORIGINS.map((origin) => (target === "/" ? origin : `${origin}${target}`))
]

const PATHS = [
  "/",
  "/healthz",
  "/docs",
  "/checkout/cs_x",
  "/v1",
  "/v1/",
  "/v1/customers",
  "/v1/customers/cus_x"
].concat(
  [
    "/v1/customers/cus%5Fx",
    "/v1/customers/%zz",
    "/v1/%63ustomers",
    "//v1/customers",
    "/v1//customers",
    "/v1/customers/"
  ],
  ["/nothing", "//", "//evil.example/v1", "/v1/../v1/customers", "/dashboard/sign-in", "/v1/payment_intents"]
)
const QUERIES = [
  "",
  "?",
  "?limit=1",
  "?limit=0",
  "?nme=%C3%BC",
  "?created[gte]=1",
  "?a=http://b/c",
  "?a=//",
  "?limit=1?"
]

const statusOf = (answer: string | undefined): number => Number(answer?.slice(9, 12))
const bodyOf = (answer: string | undefined): string => answer?.slice(answer.indexOf("\r\n\r\n") + 4) ?? ""

describe("a target", () => {
  it("has the same meaning in every form, for either parser, and at every process", async () => {
    const random = new Random(runSeed)
    for (let i = 0; i < CASES; i++) {
      const target = (i < PATHS.length ? PATHS[i]! : random.pick(PATHS)) + random.pick(QUERIES)
      const expected = await exchange(target, { runner: OWNER })
      const form = random.pick(formsOf(target))
      for (const sent of [{ runner: OWNER }, { runner: OWNER, lines: [FOR_NODE] }, { runner: OTHER }]) {
        const what = `TILL_SEED=${runSeed}, ${form} as ${target}, ${JSON.stringify(sent)}`
        const answer = await exchange(form, sent)
        assert.strictEqual(statusOf(answer), statusOf(expected), what)
        // Each page contains its own token.
        if (target.startsWith("/v1") || statusOf(expected) >= 400) assert.strictEqual(answer, expected, what)
      }
    }
  })

  it("of an existing list and of a missing one is reported in origin form", async () => {
    const found = JSON.parse(bodyOf(await exchange("http://till.example/v1/customers?limit=1", { runner: OTHER })))
    assert.deepInclude(found, { object: "list", url: "/v1/customers" })
    const missing = JSON.parse(bodyOf(await exchange("http://till.example/v1/nothing", { runner: OTHER })))
    assert.strictEqual(missing.error.message, "Unrecognized request URL (GET /v1/nothing).")
  })

  it("that no client may send is refused as invalid HTTP", async () => {
    for (const runner of [OWNER, OTHER]) {
      for (const target of [
        "/v1/customers#a",
        "http://h/v1/customers#",
        "/#/v1",
        "*",
        "ftp://h/v1/customers",
        "http:///v1",
        "h:80"
      ]) {
        const answer = await exchange(target, { runner })
        assert.strictEqual(statusOf(answer), 400, target)
        assert.strictEqual(JSON.parse(bodyOf(answer)).error.code, "invalid_http", target)
      }
    }
  })

  it("that means the server itself, or a tunnel, is refused", async () => {
    for (const runner of [OWNER, OTHER]) {
      const ofServer = await exchange("*", { runner, method: "OPTIONS" })
      assert.strictEqual(statusOf(ofServer), 404)
      assert.strictEqual(JSON.parse(bodyOf(ofServer)).error.code, "route_not_found")
      const tunnel = await exchange("shop.example:443", { runner, method: "CONNECT" })
      assert.strictEqual(statusOf(tunnel), 400)
      assert.strictEqual(JSON.parse(bodyOf(tunnel)).error.code, "invalid_http")
    }
  })
})

describe("the origin form", () => {
  it("is the path and query as sent", () => {
    for (const path of PATHS) {
      for (const query of QUERIES) {
        for (const form of formsOf(path + query)) assert.strictEqual(originFormOf(form), path + query, form)
      }
    }
    assert.strictEqual(originFormOf("http://h?a=b"), "/?a=b")
  })

  it("is valid only if a client may send it", () => {
    assert.isFalse(isWrongTarget({ method: "OPTIONS", url: "*" }))
    for (const url of ["*", "", "h:80", "a", "/#", "/a#b"]) assert.isTrue(isWrongTarget({ method: "GET", url }), url)
  })
})
