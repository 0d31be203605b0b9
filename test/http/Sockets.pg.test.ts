/** Cases that need bytes on a socket: repeated headers, bodies in chunks, clients that hesitate or leave. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit } from "effect"
import { createServer } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { answerUnreadable } from "../../src/http/UnreadableRequests.ts"
import type * as Faults from "../engine/storage/Faults.ts"
import { layerFreshLog } from "../support/RequestLog.ts"
import { basic } from "../support/HttpExchange.ts"
import { DOCS_URL, type MemoryTill, start } from "../support/MemoryTill.ts"

/** While set, commits wait for it. */
let gate: Deferred.Deferred<void> | undefined
let waiting = 0
const faults: Faults.Faults = (point) =>
  Effect.suspend(() => {
    if (point !== "append.before" || gate === undefined) return Effect.void
    waiting++
    return Deferred.await(gate)
  })

let server: MemoryTill
beforeAll(async () => {
  server = await start({ faults, requestLog: layerFreshLog({ batchMillis: 5 }) })
})
afterAll(() => server.close())
afterEach(() => {
  gate = undefined
  waiting = 0
})

const open = (): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(server.port, "127.0.0.1", () => resolve(socket))
    socket.on("error", reject)
  })

/** Returns the bytes that the server sends until it closes, or until the expected text has arrived. */
const received = (socket: Socket, until: (text: string) => boolean = () => false): Promise<string> =>
  new Promise((resolve) => {
    let text = ""
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1")
      if (until(text)) resolve(text)
    })
    socket.on("close", () => resolve(text))
  })

const head = (method: string, path: string, headers: ReadonlyArray<string>) =>
  [`${method} ${path} HTTP/1.1`, "Host: localhost", ...headers, "", ""].join("\r\n")

const authorization = () => `Authorization: ${basic(server.keys.secretTest)}`

/** The UTF-8 bytes of a text, as one character each. */
const latin1 = (text: string): string => Buffer.from(text).toString("latin1")

const exchange = async (text: string | Buffer): Promise<string> => {
  const socket = await open()
  const answer = received(socket)
  socket.write(text)
  return answer
}

const postHead = (headers: ReadonlyArray<string>) =>
  head("POST", "/v1/customers", [authorization(), "Content-Type: application/json", "Connection: close", ...headers])

const statusOf = (answer: string) => Number(answer.slice(9, 12))
const codeOf = (answer: string) => JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4)).error?.code
const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}

describe("sockets", () => {
  it("idempotency.required: a repeated Idempotency-Key, the same or not", async () => {
    for (const keys of [
      ["a", "a"],
      ["a", "b"],
      ["", "a"]
    ]) {
      const answer = await exchange(postHead([...keys.map((key) => `Idempotency-Key: ${key}`), "Content-Length: 0"]))
      assert.strictEqual(statusOf(answer), 400)
      assert.strictEqual(codeOf(answer), "parameter_invalid")
      assert.notMatch(answer, /^idempotency-key:/im)
    }
    // Semantics idempotency.scope: by this character an account identifies keys of browsers.
    const marked = await exchange(postHead(["Idempotency-Key: \u0001publishable/a", "Content-Length: 0"]))
    assert.strictEqual(statusOf(marked), 400)
    const comma = await exchange(postHead(["idempotency-KEY: a, b", "Content-Length: 0"]))
    assert.strictEqual(statusOf(comma), 200)
    assert.match(comma, /^idempotency-key: a, b\r$/im)
  })

  // Semantics requests.headers.
  it("an Idempotency-Key is one text everywhere, and is returned byte by byte, in any encoding", async () => {
    for (const [bytes, text] of [
      ["kl\u00fcver", "kl\u00fcver"],
      [latin1("заказ-1 \u{1f600}"), "заказ-1 \u{1f600}"],
      ["kl\u00c3\u00fcver", "kl\u00c3\u00fcver"]
    ] as const) {
      const socket = await open()
      const answer = received(socket)
      socket.write(Buffer.from(postHead([`Idempotency-Key: ${bytes}`, "Content-Length: 15"]), "latin1"))
      socket.write('{"name":"\u{1f600}"}')
      const sent = await answer
      assert.strictEqual(statusOf(sent), 200)
      assert.include(sent, `idempotency-key: ${bytes}\r\n`)
      assert.include(Buffer.from(sent, "latin1").toString(), '"name":"\u{1f600}"')
      const { data } = (await server.request("GET", "/v1/events?type=customer.created&limit=1")).body
      assert.strictEqual(data[0].request.idempotency_key, text)
      const query = new URLSearchParams({ idempotency_key: text })
      const logged = async () => (await server.request("GET", `/v1/request_logs?${query}`)).body.data
      while ((await logged()).length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
      assert.deepStrictEqual(
        (await logged()).map((entry: { idempotency_key: string }) => entry.idempotency_key),
        [text]
      )
    }
  })

  // Semantics requests.headers.
  it("one text is one key, also as Latin-1 and through node's parser, and 255 of its characters are counted", async () => {
    const send = async (key: string, more: ReadonlyArray<string> = []) => {
      const socket = await open()
      const answer = received(socket)
      const text = postHead([`Idempotency-Key: ${key}`, "Content-Length: 2", ...more]) + "{}"
      socket.write(Buffer.from(text, "latin1"))
      return answer
    }
    assert.notMatch(await send(latin1("größe")), /^idempotent-replayed/im)
    for (const again of [await send("gr\u00f6\u00dfe"), await send(latin1("größe"), ["TE: trailers"])]) {
      assert.match(again, /^idempotent-replayed: true\r$/im)
    }
    assert.strictEqual(statusOf(await send(latin1("\u{1f600}".repeat(255)))), 200)
    assert.strictEqual(statusOf(await send(latin1("\u{1f600}".repeat(256)))), 400)
    assert.strictEqual(statusOf(await send("\u00fc".repeat(256))), 400)
    const refused = await exchange(
      Buffer.from(
        head("GET", "/v1/customers", [authorization(), `X-API-Version: ${latin1("новая")}`, "Connection: close"]),
        "latin1"
      )
    )
    assert.include(Buffer.from(refused, "latin1").toString(), "Unknown API version 'новая'.")
  })

  it("versions.unknown: a repeated X-API-Version", async () => {
    const version = "X-API-Version: 2026-03-09"
    const answer = await exchange(
      head("GET", "/v1/customers", [authorization(), version, version, "Connection: close"])
    )
    assert.strictEqual(statusOf(answer), 400)
    assert.strictEqual(codeOf(answer), "invalid_api_version")
  })

  it("requests.size: a body that is declared too large is refused without being read", async () => {
    const socket = await open()
    const answer = received(socket)
    socket.write(postHead(["Idempotency-Key: declared", "Content-Length: 1048577"]))
    assert.strictEqual(statusOf(await answer), 413)
  })

  it("requests.size: a body that turns out too large is refused before its end", async () => {
    const socket = await open()
    const answer = received(socket, (text) => text.includes("request_too_large"))
    const headers = ["Idempotency-Key: chunked", "Transfer-Encoding: chunked"]
    socket.write(postHead(headers))
    const chunk = `40000\r\n${" ".repeat(0x40000)}\r\n`
    for (let i = 0; i < 5; i++) socket.write(chunk)
    assert.strictEqual(statusOf(await answer), 413)
    socket.destroy()
  })

  it("unfinished bodies take up a bounded amount of memory", async () => {
    const long = 1_048_576
    const begin = async (): Promise<Socket> => {
      const socket = await open()
      socket.write(postHead([`Idempotency-Key: unfinished-${socket.localPort}`, `Content-Length: ${long}`]))
      socket.write(" ".repeat(long - 2))
      return socket
    }
    const refusals: Array<string> = []
    const sockets: Array<Socket> = []
    while (refusals.length === 0 && sockets.length < 200) {
      const socket = await begin()
      sockets.push(socket)
      void received(socket, (text) => text.includes("\r\n\r\n{")).then((text) => text && refusals.push(text))
      // Answered after the requests before it.
      await server.request("GET", "/v1/nothing")
    }
    assert.isAtLeast(sockets.length, 60)
    assert.isBelow(sockets.length, 200)
    assert.strictEqual(statusOf(refusals[0]!), 503)
    assert.strictEqual(codeOf(refusals[0]!), "service_unavailable")
    assert.match(refusals[0]!, /^retry-after: 1\r$/im)
    // Short bodies are still read.
    assert.strictEqual((await server.request("POST", "/v1/customers", { body: { name: "short" } })).status, 200)
    // The last bodies arrive fastest, and get an answer.
    const last = received(sockets.at(-1)!, (text) => text.includes("\r\n\r\n{"))
    sockets.at(-1)!.write("{}")
    assert.strictEqual(statusOf(await last), 200)
    // Refused bodies make room.
    for (const socket of sockets) socket.destroy()
    const body = `{}${" ".repeat(long - 2)}`
    let status = 503
    while (status === 503) status = (await server.request("POST", "/v1/customers", { body })).status
    assert.strictEqual(status, 200)
  })

  // Semantics requests.size.memory.
  it("a body that arrives whole is read, for any number of another merchant's unfinished ones", async () => {
    const long = 1_048_576
    const { secretTest } = await server.merchant()
    const postOf = (key: string, idempotencyKey: string, length: number) =>
      head("POST", "/v1/customers", [
        `Authorization: ${basic(key)}`,
        "Content-Type: application/json",
        `Idempotency-Key: ${idempotencyKey}`,
        `Content-Length: ${length}`
      ])
    const hoarding = await Promise.all(
      Array.from({ length: 80 }, async (_, i) => {
        const socket = await open()
        socket.write(postOf(server.keys.secretTest, `hoard-${i}`, long) + " ".repeat(long - 100))
        return socket
      })
    )
    await new Promise((resolve) => setTimeout(resolve, 300))
    for (let i = 0; i < 5; i++) {
      const socket = await open()
      const answer = received(socket, (text) => text.includes("\r\n\r\n{"))
      const body = `{"name":"B"}${" ".repeat(30_000)}`
      socket.write(postOf(secretTest, `neighbour-${i}`, body.length) + body.slice(0, 25_000))
      await new Promise((resolve) => setTimeout(resolve, 20))
      socket.write(body.slice(25_000))
      assert.strictEqual(statusOf(await answer), 200)
      socket.destroy()
    }
    for (const socket of hoarding) socket.destroy()
  })

  it("requests.size: a publishable key sends no more than 64 KiB, whole or not", async () => {
    const { publishableTest } = server.keys
    const long = (length: number, more: ReadonlyArray<string> = []) =>
      head("POST", "/v1/payment_methods", [
        `Authorization: ${basic(publishableTest)}`,
        "Content-Type: application/json",
        "Idempotency-Key: long",
        `Content-Length: ${length}`,
        "Connection: close",
        ...more
      ])
    const message = "With a publishable key, the request body must be at most 64 KiB (65536 bytes)."
    for (const text of [
      long(65_537),
      long(65_537) + " ".repeat(65_537),
      long(1_048_577),
      long(80_000, ["TE: trailers"])
    ]) {
      const answer = await exchange(text)
      assert.strictEqual(statusOf(answer), 413)
      assert.include(answer, message)
    }
    const answer = await exchange(`${long(65_536)}{}${" ".repeat(65_534)}`)
    assert.strictEqual(codeOf(answer), "parameter_missing")
  })

  it("requests.size: the body of an unauthenticated request is not waited for", async () => {
    const answer = await exchange(
      head("POST", "/v1/customers", ["Idempotency-Key: a", "Content-Length: 100000000", "Connection: close"])
    )
    assert.strictEqual(statusOf(answer), 401)
  })

  it("a body may arrive byte by byte", async () => {
    const socket = await open()
    const answer = received(socket)
    const body = '{"name":"\u{1f600}"}'
    socket.setNoDelay(true)
    socket.write(postHead(["Idempotency-Key: slow", `Content-Length: ${Buffer.byteLength(body)}`]))
    for (const byte of Buffer.from(body)) {
      socket.write(Buffer.from([byte]))
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.strictEqual(statusOf(await answer), 200)
  })

  it("a client may wait for 100 Continue before it sends its body", async () => {
    const socket = await open()
    const continued = received(socket, (text) => text.includes("100 Continue"))
    const answer = received(socket)
    socket.write(postHead(["Idempotency-Key: expect", "Expect: 100-continue", "Content-Length: 2"]))
    assert.match(await continued, /^HTTP\/1\.1 100 Continue/)
    socket.write("{}")
    assert.include(await answer, "HTTP/1.1 200 OK")
  })

  it("an unknown expectation is ignored", async () => {
    const answer = await exchange(postHead(["Idempotency-Key: expects", "Expect: foo", "Content-Length: 2"]) + "{}")
    assert.strictEqual(statusOf(answer), 200)
    assert.match(answer, /^x-request-id: req_/im)
  })

  it("bytes after a request that are not HTTP do not prevent its answer", async () => {
    const request = [authorization(), "Content-Type: application/json", "Idempotency-Key: before", "Content-Length: 12"]
    const answer = await exchange(`${head("POST", "/v1/customers", request)}{"name":"A"}garbage\r\n\r\n`)
    const [first, second] = answer.split(/(?=HTTP\/1\.1 )/)
    assert.strictEqual(statusOf(first!), 200)
    assert.strictEqual(statusOf(second!), 400)
    assert.strictEqual(codeOf(second!), "invalid_http")
  })

  it("a client that leaves in the middle of its body changes nothing", async () => {
    const socket = await open()
    socket.write(postHead(["Idempotency-Key: half", "Content-Length: 20"]) + '{"name":"half')
    await new Promise((resolve) => setTimeout(resolve, 20))
    socket.destroy()
    const reply = await server.request("POST", "/v1/customers", { idempotencyKey: "half", body: { name: "whole" } })
    assert.strictEqual(reply.status, 200)
    assert.isNull(reply.headers.get("idempotent-replayed"))
  })

  it("a client that leaves during the commit does not stop it", async () => {
    const closed = (gate = Deferred.makeUnsafe<void>())
    const socket = await open()
    const body = '{"name":"A"}'
    socket.write(postHead(["Idempotency-Key: gone", `Content-Length: ${body.length}`]) + body)
    await until(() => waiting > 0)
    socket.destroy()
    await new Promise((resolve) => setTimeout(resolve, 20))
    gate = undefined
    Deferred.doneUnsafe(closed, Exit.void)
    const reply = await server.request("POST", "/v1/customers", { idempotencyKey: "gone", body: { name: "A" } })
    assert.strictEqual(reply.status, 200)
    assert.strictEqual(reply.headers.get("idempotent-replayed"), "true")
    assert.strictEqual((await server.request("GET", `/v1/customers/${reply.body.id}`)).body.name, "A")
  })

  it("requests on one connection are answered in order", async () => {
    const socket = await open()
    const answers = received(socket)
    const get = (path: string, last: boolean) =>
      head("GET", path, [authorization(), ...(last ? ["Connection: close"] : [])])
    socket.write(get("/v1/nothing", false) + get("/v1/customers/cus_x", false) + get("/v1/customers?limit=0", true))
    const codes = [...(await answers).matchAll(/"code":"(\w+)"/g)].map(([, code]) => code)
    assert.deepStrictEqual(codes, ["route_not_found", "resource_missing", "parameter_invalid"])
  })

  it("bytes that are not HTTP get the envelope of every error, and the end of their connection", async () => {
    const long = "a".repeat(20_000)
    for (const [text, status, code] of [
      ["GARBAGE\r\n\r\n", 400, "invalid_http"],
      [head("GET", "/v1/customers", [authorization(), "Bad Header: x"]), 400, "invalid_http"],
      [head("NOPE", "/v1/customers", [authorization()]), 400, "invalid_http"],
      [`GET /v1/customers HTTP/1.1\r\n${authorization()}\r\n\r\n`, 400, "invalid_http"],
      ["GET /healthz HTTP/1.1\r\n\r\n", 400, "invalid_http"],
      [head("GET", "/v1/customers", [authorization(), `X-Long: ${long}`]), 431, "request_headers_too_large"],
      [
        `${postHead(["Idempotency-Key: extensions", "Transfer-Encoding: chunked"])}1;${long}\r\n{\r\n`,
        413,
        "request_too_large"
      ]
    ] as const) {
      const answer = await exchange(text)
      assert.strictEqual(statusOf(answer), status)
      const { error } = JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4))
      assert.deepInclude(error, { type: "invalid_request_error", code, param: null })
      assert.strictEqual(error.doc_url, `${DOCS_URL}/errors/${code}`)
      assert.isString(error.message)
      for (const header of [
        /^content-type: application\/json\r$/im,
        /^x-api-version: 2026-03-09\r$/im,
        /^x-request-id: req_[0-9A-Za-z]{24}\r$/im,
        /^cache-control: no-store\r$/im,
        /^connection: close\r$/im
      ]) {
        assert.match(answer, header)
      }
    }
  })

  it("HTTP/1.0 needs no Host", async () => {
    const answer = await exchange(`GET /v1/customers HTTP/1.0\r\n${authorization()}\r\n\r\n`)
    assert.strictEqual(statusOf(answer), 200)
  })

  it("a request that does not arrive in time is refused", async () => {
    const impatient = answerUnreadable(
      createServer({ requestTimeout: 50, headersTimeout: 50, connectionsCheckingInterval: 10 }),
      DOCS_URL
    )
    await new Promise<void>((resolve) => impatient.listen(0, "127.0.0.1", resolve))
    const { port } = impatient.address() as AddressInfo
    const socket = connect(port, "127.0.0.1")
    const answer = received(socket)
    socket.write("GET /v1/customers HTTP/1.1\r\nHost: localhost\r\n")
    assert.strictEqual(statusOf(await answer), 408)
    assert.strictEqual(codeOf(await answer), "request_timeout")
    await new Promise((resolve) => impatient.close(resolve))
  })

  it("bytes that are not HTTP behind a request do not spoil its answer", async () => {
    const socket = await open()
    const answer = received(socket)
    const first = received(socket, (text) => text.includes("route_not_found"))
    socket.write(head("GET", "/v1/nothing", [authorization()]))
    await first
    socket.write("GARBAGE\r\n\r\n")
    const codes = [...(await answer).matchAll(/"code":"(\w+)"/g)].map(([, code]) => code)
    assert.deepStrictEqual(codes, ["route_not_found", "invalid_http"])
  })

  it("an absolute target is a path as well", async () => {
    const answer = await exchange(
      head("GET", "http://localhost/v1/nothing?a=b", [authorization(), "Connection: close"])
    )
    assert.strictEqual(codeOf(answer), "route_not_found")
    assert.include(answer, "(GET /v1/nothing)")
  })
})
