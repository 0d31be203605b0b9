/** One HTTP POST to a processor, over real sockets (semantics gateways.exchange). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import * as net from "node:net"
import { urlComplaint } from "../../src/domain/GatewayUrl.ts"
import { PUBLIC_ONLY } from "../../src/domain/WebhookHosts.ts"
import * as Exchange from "../../src/processors/Exchange.ts"
import { AUTHORITY, KEY, LOCALHOST } from "../webhooks/Certificates.ts"
import { answerOf, type Behaviour, receiver, writeForever } from "../webhooks/RawReceiver.ts"

const HOSTS = { httpsOnly: true, besidePublic: PUBLIC_ONLY }
const BODY = Buffer.from('{"type":"check"}')

const make = (options: Partial<Exchange.Options> = {}) => Exchange.make({ hosts: HOSTS, ...options })

const post = (exchange: Exchange.Exchange, url: string) => exchange.post({ url, headers: { "x-one": "1" }, body: BODY })

/** Posts once to a receiver with this behaviour. */
const replyOf = (behaviour: Behaviour, options: Partial<Exchange.Options> = {}) =>
  Effect.gen(function* () {
    const there = yield* receiver(behaviour)
    const reply = yield* post(yield* make(options), there.url)
    return { reply, requests: there.requests }
  })

describe("gateways.exchange: a request", () => {
  it.live("has its headers and its body, and returns the whole answer", () =>
    Effect.gen(function* () {
      const { reply, requests } = yield* replyOf(({ socket }) =>
        socket.write("HTTP/1.1 402 Whatever\r\nX-Two: 2\r\nx-three: a\r\nx-three: b\r\ncontent-length: 4\r\n\r\ndone")
      )
      assert.strictEqual(requests.length, 1)
      const [{ body, headers, requestLine } = { body: null, headers: new Map(), requestLine: "" }] = requests
      assert.strictEqual(requestLine, "POST /hooks HTTP/1.1")
      assert.deepStrictEqual(body, BODY)
      assert.strictEqual(headers.get("x-one"), "1")
      assert.strictEqual(headers.get("content-type"), "application/json")
      if (reply.kind !== "answered") return assert.fail(reply.why)
      assert.strictEqual(reply.status, 402)
      assert.strictEqual(reply.body.toString(), "done")
      // A repeated header has no one value.
      assert.deepStrictEqual([reply.headers["x-two"], reply.headers["x-three"]], ["2", undefined])
    })
  )

  it.live("is never sent again, and follows no redirect", () =>
    Effect.gen(function* () {
      const there = yield* receiver(({ socket }) =>
        socket.write("HTTP/1.1 308 Elsewhere\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n")
      )
      const exchange = yield* make()
      assert.include(yield* post(exchange, there.url), { kind: "answered", status: 308 })
      there.behaviour = ({ socket }) => socket.destroy()
      // The connection of the first request is used again, and closes.
      assert.strictEqual((yield* post(exchange, there.url)).kind, "lost")
      assert.strictEqual(there.requests.length, 2)
    })
  )
})

describe("gateways.exchange: a gateway", () => {
  it.live("has 640 requests at a time, and further ones wait", () =>
    Effect.gen(function* () {
      const held: Array<net.Socket> = []
      const there = yield* receiver(({ socket }) => held.push(socket))
      const exchange = yield* make()
      const calls = yield* Effect.forkChild(
        Effect.all(
          Array.from({ length: 650 }, () => post(exchange, there.url)),
          { concurrency: "unbounded" }
        )
      )
      yield* Effect.promise(() => there.received(640))
      for (let turn = 0; turn < 50; turn++) {
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      }
      assert.lengthOf(there.requests, 640)
      there.behaviour = ({ socket }) => socket.write(answerOf(200))
      for (const socket of held) socket.write(answerOf(200))
      const replies = yield* Fiber.join(calls)
      assert.isTrue(replies.every(({ kind }) => kind === "answered"))
      assert.lengthOf(there.requests, 650)
    })
  )
})

const LATE = { deadlineMillis: 300 }

describe("gateways.exchange: the outcome is open", () => {
  const CASES: Readonly<Record<string, readonly [Behaviour, Partial<Exchange.Options>?]>> = {
    "if the connection is closed without an answer": [({ socket }) => socket.end()],
    "if it is reset": [({ socket }) => socket.resetAndDestroy()],
    "if it is reset within the status line": [
      ({ socket }) => socket.write("HTTP/1.1 20", () => socket.resetAndDestroy())
    ],
    "if it ends within the headers": [({ socket }) => socket.end("HTTP/1.1 200 OK\r\ncontent-le")],
    "if it ends within the body": [({ socket }) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")],
    "if it ends within a chunk": [
      ({ socket }) => socket.end("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhalf")
    ],
    "if the answer is not HTTP": [({ socket }) => socket.end("SSH-2.0-OpenSSH_9.9\r\n")],
    "if no answer comes in time": [() => {}, LATE],
    "if the headers drip": [
      ({ socket }) => {
        socket.write("HTTP/1.1 200 OK\r\n")
        writeForever(socket, "x-more: 1\r\n", 50)
      },
      LATE
    ],
    "if the body drips": [
      ({ socket }) => {
        socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        writeForever(socket, "x", 50)
      },
      LATE
    ],
    "if interim answers never end": [({ socket }) => writeForever(socket, "HTTP/1.1 103 Hints\r\n\r\n", 20), LATE],
    "if the answer is longer than 256 KiB": [
      ({ socket }) => {
        socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        writeForever(socket, `400\r\n${"x".repeat(1024)}\r\n`)
      }
    ],
    "if the headers are longer than 16 KiB": [
      ({ socket }) => {
        socket.write("HTTP/1.1 200 OK\r\n")
        writeForever(socket, `x-long: ${"y".repeat(1000)}\r\n`)
      }
    ]
  }
  it.live.each(Object.entries(CASES))("%s", ([, [behaviour, options]]) =>
    Effect.gen(function* () {
      const { reply, requests } = yield* replyOf(behaviour, options)
      assert.strictEqual(reply.kind, "lost")
      assert.strictEqual(requests.length, 1)
    })
  )

  it.live("if the call is cut off, and the connection is closed", () =>
    Effect.gen(function* () {
      const there = yield* receiver(() => {})
      const call = yield* Effect.forkChild(post(yield* make(), there.url), { startImmediately: true })
      yield* Effect.promise(() => there.received(1))
      yield* Fiber.interrupt(call)
      yield* Effect.promise(() => there.closed(0))
      assert.isTrue(there.sockets[0]!.destroyed)
    })
  )

  it.live("is not, for an answer of exactly 256 KiB", () =>
    Effect.gen(function* () {
      const body = "x".repeat(Exchange.ANSWER_BYTES_MAX)
      const { reply } = yield* replyOf(({ socket }) => socket.write(answerOf(200, body)))
      assert.strictEqual(reply.kind === "answered" ? reply.body.length : reply.why, Exchange.ANSWER_BYTES_MAX)
    })
  )
})

describe("gateways.exchange: a request was certainly not sent", () => {
  it.live("if nothing listens", () =>
    Effect.gen(function* () {
      const there = yield* receiver(() => {})
      const { url } = there
      yield* Effect.promise(() => new Promise((resolve) => there.server.close(resolve)))
      assert.strictEqual((yield* post(yield* make(), url)).kind, "not_sent")
      yield* Effect.promise(() => new Promise<void>((resolve) => there.server.listen(0, "127.0.0.1", resolve)))
    })
  )

  it.live("if the host has no address", () =>
    Effect.gen(function* () {
      const missing = Object.assign(new Error("no address"), { code: "ENOTFOUND" })
      const exchange = yield* make({ resolve: (_, callback) => callback(missing, []) })
      assert.deepStrictEqual(yield* post(exchange, "https://gateway.example/"), {
        kind: "not_sent",
        why: "No connection could be opened (ENOTFOUND)."
      })
    })
  )

  it.live("if the host's address is private", () =>
    Effect.gen(function* () {
      const exchange = yield* make({ resolve: (_, callback) => callback(null, [{ address: "10.0.0.7", family: 4 }]) })
      const reply = yield* post(exchange, "https://gateway.example/")
      assert.include(reply, { kind: "not_sent", why: "No connection could be opened (TILL_ADDRESS_REFUSED)." })
    })
  )

  it.live("if the look-up takes longer than the deadline", () =>
    Effect.gen(function* () {
      const exchange = yield* make({ ...LATE, resolve: () => {} })
      assert.strictEqual((yield* post(exchange, "https://gateway.example/")).kind, "not_sent")
    })
  )

  it.live("if the certificate is not trusted", () =>
    Effect.gen(function* () {
      const there = yield* receiver(({ socket }) => socket.write(answerOf(200)), { key: KEY, cert: LOCALHOST })
      const exchange = yield* make({ hosts: { httpsOnly: true, besidePublic: "any" } })
      assert.strictEqual((yield* post(exchange, there.url)).kind, "not_sent")
      assert.strictEqual(there.requests.length, 0)
    })
  )

  for (const url of ["http://gateway.example/", "http://10.0.0.7/", "ftp://localhost/", "gateway", ""]) {
    it.live(`if its URL is ${JSON.stringify(url)}`, () =>
      Effect.gen(function* () {
        assert.strictEqual((yield* post(yield* make(), url)).kind, "not_sent")
      })
    )
  }
})

describe("gateways.exchange: https", () => {
  it.live("reaches a private address only where webhooks of live mode do", () =>
    Effect.gen(function* () {
      const there = yield* receiver(({ socket }) => socket.write(answerOf(200)), { key: KEY, cert: LOCALHOST })
      const allowed = yield* make({ certificates: AUTHORITY, hosts: { httpsOnly: true, besidePublic: "any" } })
      assert.strictEqual((yield* post(allowed, there.url)).kind, "answered")
      assert.strictEqual((yield* post(yield* make({ certificates: AUTHORITY }), there.url)).kind, "not_sent")
    })
  )
})

describe("gateways.url: a URL", () => {
  it.each(["https://gateway.example/till?a=1", "http://localhost:4343", "http://127.0.0.1:1/x", "http://[::1]:2/"])(
    "%s is accepted",
    (url) => assert.isUndefined(urlComplaint(url))
  )
  it.each([
    "http://gateway.example/",
    "http://localhost.example/",
    "http://127.0.0.1.example/",
    "http://[::2]/",
    "https://user:password@gateway.example/",
    "https://gateway.example/#part",
    "/till",
    ""
  ])("%s is refused", (url) => assert.isString(urlComplaint(url)))

  it("of this machine in another notation is its address", () => {
    assert.isUndefined(urlComplaint("http://2130706433/"))
    assert.isTrue(net.isIP(new URL("http://2130706433/").hostname) === 4)
  })
})
