/**
 * A request to any process gets the answer of the process that serves its account, byte for byte (semantics
 * runners.forwarding): over the whole contract, and for invalid requests of every kind.
 */
import "effect/schema/SchemaJITCompiler/enable"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Document from "../../../src/api/openapi/Document.ts"
import { linesOf } from "../../../src/http/forward/SignedRequest.ts"
import { ContractFuzz, type FuzzRequest, type Target } from "../../support/ContractFuzz.ts"
import type { Keys } from "../../support/fixtures/Merchants.ts"
import { Random, runSeed } from "../../support/Random.ts"
import { countRuns } from "../../support/Runs.ts"
import { basic } from "../../support/HttpExchange.ts"
import { comparable, RawClient } from "../../support/RawClient.ts"
import { type MemoryFleet, start, TLS } from "../../support/MemoryFleet.ts"

const REQUESTS = Number(process.env["TILL_FUZZ_REQUESTS"] ?? 400)

let runners: MemoryFleet
let keys: Keys
let account: string
let owner: number
beforeAll(async () => {
  runners = await start(3)
  keys = await runners.merchant()
  account = `${keys.merchantId}:test`
  // Forwarded requests go to another process than that of the installation's own account.
  await runners.move("till", 0)
  await runners.move(account, 1)
  await runners.move(`${keys.merchantId}:live`, 1)
  owner = 1
})
afterAll(() => runners.close())

interface Sent {
  readonly method: string
  readonly path: string
  readonly headers?: ReadonlyArray<string>
  readonly body?: string | Buffer
  /** Null sends no key. */
  readonly key?: string | null
}

const bytesOf = ({ body, headers = [], key = keys.secretTest, method, path }: Sent): Buffer => {
  const lines = [`${method} ${path} HTTP/1.1`, "Host: till.example"]
  if (key !== null) lines.push(`Authorization: ${basic(key)}`)
  lines.push(...headers)
  const bytes = Buffer.from(body ?? "")
  const isSized = /^(content-length|transfer-encoding):/im.test(headers.join("\n"))
  if (!isSized && (bytes.length > 0 || method === "POST")) lines.push(`Content-Length: ${bytes.length}`)
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), bytes])
}

/** Each request uses a new connection, because the comparison includes whether its connection ends. */
const exchange = async (runner: number, bytes: Buffer, isHead = false): Promise<string | undefined> => {
  const client = new RawClient(runners.all[runner]!.port)
  const answer = await client.send(bytes, isHead)
  client.close()
  return comparable(answer)
}

/** Sends the same request to the owner and to another process. A command's first answer differs from its replays. */
const assertSame = async (sent: Sent, isHead = false): Promise<string> => {
  const bytes = bytesOf(sent)
  const first = await exchange(2, bytes, isHead)
  const there = await exchange(owner, bytes, isHead)
  const forwarded = await exchange(2, bytes, isHead)
  const what = `TILL_SEED=${runSeed}, ${bytes.toString("latin1").slice(0, 2000)}`
  assert.isDefined(there, what)
  assert.strictEqual(forwarded, there, what)
  // A deleted object is gone.
  if (sent.method !== "DELETE") assert.strictEqual(first?.split("\r\n", 1)[0], there!.split("\r\n", 1)[0], what)
  return there!
}

const statusOf = (answer: string): number => Number(answer.slice(9, 12))

describe("a request at any process", () => {
  it(`gets the answer of its account's own, over ${REQUESTS} requests of the contract`, async () => {
    const random = new Random(runSeed)
    const fuzz = new ContractFuzz(Document.make("https://pay.example.test"), random)
    // Their answers contain secrets only once.
    const targets = fuzz.targets.filter(({ method, path }) => !path.startsWith("/v1/api_keys") || method === "GET")
    const creating = targets.filter(({ idPrefix, method }) => method === "POST" && idPrefix === undefined)
    const seen = new Map<number, number>()
    const answered = new Set<Target>()
    const sentOf = ({ method }: Target, { body, headers, idempotencyKey, path }: FuzzRequest): Sent => {
      const lines = Object.entries({
        ...(body !== undefined && { "Content-Type": "application/json" }),
        ...headers,
        ...(idempotencyKey !== null && { "Idempotency-Key": idempotencyKey })
      }).map(([name, value]) => `${name}: ${value}`)
      const key = random.pick([
        keys.secretTest,
        keys.secretTest,
        keys.secretTest,
        keys.secretLive,
        keys.publishableTest
      ])
      return { method, path, headers: lines, key, ...(body !== undefined && { body }) }
    }
    countRuns(REQUESTS)
    for (let sent = 0; sent < REQUESTS; sent++) {
      const target = sent < targets.length ? targets[sent]! : random.pick(random.chance(0.4) ? creating : targets)
      const answer = await assertSame(sentOf(target, fuzz.request(target)))
      const status = statusOf(answer)
      assert.isBelow(status, 500, answer)
      seen.set(status, (seen.get(status) ?? 0) + 1)
      answered.add(target)
      fuzz.learn(JSON.parse(Buffer.from(answer.slice(answer.indexOf("\r\n\r\n") + 4), "latin1").toString()))
    }
    assert.strictEqual(answered.size, targets.length)
    for (const status of [200, 400, 404]) assert.isAbove(seen.get(status) ?? 0, 0, String(status))
  })

  const json = "Content-Type: application/json"
  const large = Buffer.concat([Buffer.from('{"description":"'), Buffer.alloc(1_048_576 - 18, "x"), Buffer.from('"}')])
  const customers = { method: "POST", path: "/v1/customers" }
  const ODD: Readonly<Record<string, Sent & { readonly status: number }>> = {
    "no key": { method: "GET", path: "/v1/customers", key: null, status: 401 },
    "a wrong key": { method: "GET", path: "/v1/customers", key: "sk_test_wrong", status: 401 },
    "a path that nobody knows": { method: "GET", path: "/v1/nothing", status: 404 },
    "a method that the path has not": { method: "PATCH", path: "/v1/customers", status: 405 },
    HEAD: { method: "HEAD", path: "/v1/customers", status: 200 },
    "HEAD of nothing": { method: "HEAD", path: "/v1/customers/cus_x", status: 404 },
    "a version that nobody knows": {
      method: "GET",
      path: "/v1/customers",
      headers: ["X-API-Version: 1999-01-01"],
      status: 400
    },
    "an older version": {
      method: "GET",
      path: "/v1/customers?limit=1",
      headers: ["X-API-Version: 2026-03-09"],
      status: 200
    },
    "no idempotency key": { ...customers, headers: [json], body: "{}", status: 400 },
    "an idempotency key twice": {
      ...customers,
      headers: [json, "Idempotency-Key: a,b", "Idempotency-Key: c"],
      body: "{}",
      status: 400
    },
    "an idempotency key with a comma": {
      ...customers,
      headers: [json, "Idempotency-Key: a,b"],
      body: "{}",
      status: 200
    },
    "an idempotency key that is no ASCII": {
      ...customers,
      headers: [json, `Idempotency-Key: ${Buffer.from("Schlüssel 🔑").toString("latin1")}`],
      body: '{"name":"ünï"}',
      status: 200
    },
    "no JSON": { ...customers, headers: [json, "Idempotency-Key: odd-1"], body: "{", status: 400 },
    "another content type": {
      ...customers,
      headers: ["Content-Type: text/plain", "Idempotency-Key: odd-2"],
      body: "x",
      status: 415
    },
    "bytes that are no text": {
      ...customers,
      headers: [json, "Idempotency-Key: odd-3"],
      body: Buffer.from([0x22, 0xff, 0x22]),
      status: 400
    },
    "a body of 1 MiB": { ...customers, headers: [json, "Idempotency-Key: odd-4"], body: large, status: 400 },
    "a body that is too large": {
      ...customers,
      headers: [json, "Idempotency-Key: odd-5", "Content-Length: 1048577"],
      status: 413
    },
    "a body that is too large, of a version that nobody knows": {
      ...customers,
      headers: [json, "X-API-Version: 1", "Content-Length: 1048577"],
      status: 400
    },
    "a body that never comes, for nobody": {
      method: "POST",
      path: "/v1/nothing",
      headers: [json, "Content-Length: 20000"],
      status: 404
    },
    "a body in pieces": {
      ...customers,
      headers: [json, "Idempotency-Key: odd-6", "Transfer-Encoding: chunked"],
      body: '5\r\n{"nam\r\n6\r\ne":"A"\r\n1\r\n}\r\n0\r\n\r\n',
      status: 200
    },
    "an origin": {
      method: "GET",
      path: "/v1/payment_intents/pi_x",
      headers: ["Origin: https://shop.example"],
      status: 404
    },
    "headers of the connection, and of others' own": {
      method: "GET",
      path: "/v1/customers?limit=1",
      headers: [
        "TE: trailers",
        "Connection: keep-alive, TE",
        "Till-Forwarded: 1",
        "till-signature: x",
        "Till-Answer: carried"
      ],
      status: 200
    },
    "a query of everything": {
      method: "GET",
      path: "/v1/customers?limit=1&created[gte]=1&%C3%BC=%20a+b",
      status: 400
    },
    "DELETE of nothing": { method: "DELETE", path: "/v1/customers/cus_x", status: 404 }
  }

  for (const [name, { status, ...sent }] of Object.entries(ODD)) {
    it(`gets the answer of its account's own: ${name}`, async () => {
      assert.strictEqual(statusOf(await assertSame(sent, sent.method === "HEAD")), status)
    })
  }

  it("gets the answer of its account's own with a publishable key from a shop's page, and a preflight", async () => {
    const { id } = JSON.parse(
      (
        await assertSame({
          ...customers,
          path: "/v1/payment_intents",
          headers: [json, "Idempotency-Key: shop-1"],
          body: '{"amount":100,"currency":"usd"}'
        })
      ).split("\r\n\r\n")[1]!
    )
    const headers = ["Origin: https://shop.example"]
    const read = {
      method: "GET",
      path: `/v1/payment_intents/${id}?client_secret=x`,
      headers,
      key: keys.publishableTest
    }
    assert.include(await assertSame(read), "access-control-allow-origin: *")
    const preflight = { ...read, method: "OPTIONS", headers: [...headers, "Access-Control-Request-Method: GET"] }
    assert.strictEqual(statusOf(await assertSame({ ...preflight, key: null })), 204)
  })

  it("is not run without its body if the forwarding process has not read it", async () => {
    const headers = { authorization: basic(keys.secretTest), "idempotency-key": "unread-1" }
    const lines = linesOf(Object.entries(headers).flat(), { kind: "unread", remoteAddress: "192.0.2.1" })
    const text = Array.from({ length: lines.length / 2 }, (_, i) => `${lines[2 * i]}: ${lines[2 * i + 1]}`)
    const client = new RawClient(Number(new URL(runners.all[owner]!.url).port), TLS.client)
    const answer = await client.send(
      ["POST /v1/customers HTTP/1.1", "Host: a", "Content-Length: 0", ...text, "", ""].join("\r\n")
    )
    client.close()
    assert.strictEqual(statusOf(answer!), 503)
  })

  it("keeps its client's connection and order", async () => {
    const client = new RawClient(runners.all[2]!.port)
    const one = bytesOf({ method: "GET", path: "/v1/customers/cus_a" })
    const other = bytesOf({ method: "GET", path: "/v1/customers/cus_b" })
    client.write(Buffer.concat([one, other, one]))
    for (const id of ["cus_a", "cus_b", "cus_a"]) assert.include(await client.read(), `'${id}'`)
    client.close()
  })
})
