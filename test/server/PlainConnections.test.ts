/** Connections whose plain requests are read without Node's parser, as clients see them, over real sockets. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { buffer } from "node:stream/consumers"
import { connect as connectTls, type ConnectionOptions } from "node:tls"
import * as RunnerTls from "../../src/http/forward/RunnerTls.ts"
import type { Incoming } from "../../src/server/Incoming.ts"
import type { Options } from "../../src/server/NodeServer.ts"
import * as NodeServer from "../../src/server/NodeServer.ts"
import { answerUnreadable } from "../../src/http/UnreadableRequests.ts"
import { Random, runSeed } from "../support/Random.ts"
import { pieces, requestBytes } from "../http/plain/RequestBytes.ts"

const TLS = RunnerTls.make([Redacted.make(new Uint8Array(32).fill(7))])
/** TLS options of both sides. */
const TRANSPORTS: ReadonlyArray<readonly [string, Options, ConnectionOptions | undefined]> = [
  ["over TCP", {}, undefined],
  ["over TLS", { tls: TLS.server }, TLS.client]
]

const servers: Array<Server> = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

const listen = async (
  onPlain: (incoming: Incoming) => void,
  options: Options = {},
  onNode: (request: IncomingMessage, response: ServerResponse) => void = (_, response) => void response.end("node")
): Promise<{ readonly server: Server; readonly port: number }> => {
  const server = NodeServer.create(options).on("request", onNode)
  servers.push(server)
  NodeServer.setApi(server, { plain: onPlain, request: onNode })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", 4096, resolve))
  return { server, port: (server.address() as AddressInfo).port }
}

/** An open connection, with the bytes received so far, and its end. */
const open = async (port: number, allowHalfOpen = false, terms?: ConnectionOptions) => {
  const address = { port, host: "127.0.0.1" }
  const socket = terms === undefined ? connect({ ...address, allowHalfOpen }) : connectTls({ ...address, ...terms })
  const connection = { socket, text: "", hasEnded: false, error: "" }
  socket.on("data", (chunk) => (connection.text += chunk.toString("latin1")))
  socket.on("end", () => (connection.hasEnded = true))
  socket.on("error", (error: NodeJS.ErrnoException) => (connection.error = error.code ?? error.message))
  const closed = new Promise((resolve) => socket.once("close", resolve))
  await new Promise((resolve) => socket.once(terms === undefined ? "connect" : "secureConnect", resolve))
  return { connection, closed, socket }
}

const until = async (condition: () => boolean) => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}

const get = (path: string, more = "") => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`
const post = (path: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
const plainly =
  (text = "plain") =>
  (incoming: Incoming) =>
    incoming.answer(200, { "content-type": "text/plain" }, text)
const count = (text: string, part: string) => text.split(part).length - 1

const echo = (method: string, url: string, headers: object, body: Buffer) =>
  JSON.stringify({ method, url, headers, body: body.toString("latin1"), é: "ü" })

/** Answers each request with its parsed form, from either parser. */
const echoing = (plain: boolean) => {
  let plainly = 0
  const onPlain = async (incoming: Incoming) => {
    plainly++
    const body = await Effect.runPromise(incoming.readBody())
    const { headers, method, url } = incoming
    incoming.answer(200, { "content-type": "application/json" }, echo(method, url, headers, body))
  }
  const onNode = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(request).catch(() => undefined)
    if (body === undefined) return
    const text = echo(request.method!, request.url!, request.headers, body)
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text) }
    response.writeHead(200, headers).end(Buffer.from(text))
  }
  return {
    listening: listen((incoming) => void onPlain(incoming), { plain }, onNode).then(({ port, server }) => {
      answerUnreadable(server, "https://docs.example")
      return port
    }),
    count: () => plainly
  }
}

describe("answers", () => {
  it("are those of Node's parser, byte for byte, for any bytes on a connection", async () => {
    const ways = [echoing(true), echoing(false)] as const
    for (let i = 0; i < 200; i++) {
      const random = new Random(runSeed + i)
      const bytes = requestBytes(random)
      // Such a body never ends, and Node's parser reads nothing after such an upgrade.
      if (/\d{6}|^connection: upgrade/im.test(bytes.toString("latin1"))) continue
      const chunks = pieces(random, bytes)
      const answers = await Promise.all(
        ways.map(async (way) => {
          const { closed, connection, socket } = await open(await way.listening)
          socket.setNoDelay(true)
          for (const chunk of chunks) {
            socket.write(chunk)
            await new Promise((resolve) => setImmediate(resolve))
          }
          // Only connections that do not end by themselves need this request, which adds the same answer to both sides.
          socket.write("\r\n\0\r\n".repeat(20_000))
          await closed
          return connection.text.replaceAll(/(Date|X-Request-Id): [^\r]*/g, "$1")
        })
      )
      assert.strictEqual(
        answers[0],
        answers[1],
        `TILL_SEED=${runSeed}, case ${i}: ${JSON.stringify(bytes.toString("latin1"))}`
      )
    }
    // About a quarter of the connections begins with a plain request, depending on the seed.
    assert.isAbove(ways[0].count(), 20)
    assert.strictEqual(ways[1].count(), 0)
  })

  it("to requests that are sent ahead keep their order, and each request waits for the answer before it", async () => {
    const waiting: Array<Incoming> = []
    let most = 0
    const { port } = await listen((incoming) => {
      most = Math.max(most, waiting.push(incoming))
      setTimeout(() => waiting.shift()!.answer(200, {}, `at ${incoming.url};`), 1)
    })
    const { connection, socket } = await open(port)
    const paths = Array.from({ length: 256 }, (_, i) => `/v1/${i}`)
    socket.write(paths.map((path) => get(path)).join(""))
    await until(() => count(connection.text, ";") === paths.length)
    assert.deepStrictEqual(connection.text.match(/\/v1\/\d+/g), paths)
    assert.strictEqual(most, 1)
    socket.destroy()
  })

  it("do not make the server buffer requests that are sent far ahead of them", async () => {
    const waiting: Array<Incoming> = []
    const { port, server } = await listen((incoming) => void waiting.push(incoming))
    const taken = new Promise<Socket>((resolve) => server.once("connection", resolve))
    const { connection, socket } = await open(port)
    const requests = 100_000
    socket.write(get("/v1/a").repeat(requests))
    const inside = await taken
    await until(() => inside.isPaused())
    assert.isBelow(inside.bytesRead, 1_000_000)
    assert.strictEqual(waiting.length, 1)
    for (let i = 0; i < 3000; i++) {
      await until(() => waiting.length > 0)
      waiting.pop()!.answer(204, {}, "")
      await new Promise((resolve) => setImmediate(resolve))
    }
    await until(() => count(connection.text, "204 No Content") === 3000)
    socket.destroy()
  })

  it("have at most one line per header", async () => {
    const { port } = await listen((incoming) => {
      assert.throws(() => incoming.answer(200, { "x-a": "b\r\nx-second: c" }, ""), /Invalid character/)
      incoming.answer(200, {}, "refused")
      incoming.answer(200, {}, "once")
    })
    const { connection, socket } = await open(port)
    socket.write(get("/v1/a"))
    await until(() => connection.text.endsWith("refused"))
    assert.notInclude(connection.text, "x-second")
    socket.destroy()
  })
})

describe("a connection", () => {
  it("goes to Node's parser with the first request that is not plain, and stays there", async () => {
    const { port } = await listen(plainly())
    const { connection, socket } = await open(port)
    socket.write(get("/v1/a") + post("/v1/b", "body") + get("/healthz") + get("/v1/c"))
    await until(() => count(connection.text, "HTTP/1.1 200") === 4)
    assert.deepStrictEqual(connection.text.match(/^(?:plain|node)/gm)?.map(String), ["plain", "plain", "node", "node"])
    socket.write(get("/v1/d"))
    await until(() => count(connection.text, "HTTP/1.1 200") === 5)
    assert.isTrue(connection.text.endsWith("node"))
    socket.destroy()
  })

  it("loses no bytes on its way to Node's parser, even if reading was paused", async () => {
    const waiting: Array<Incoming> = []
    let length = 0
    const { port, server } = await listen(
      (incoming) => void waiting.push(incoming),
      {},
      (request, response) => {
        request.on("data", (chunk: Buffer) => (length += chunk.length)).on("end", () => response.end("node"))
      }
    )
    const taken = new Promise<Socket>((resolve) => server.once("connection", resolve))
    const { connection, socket } = await open(port)
    socket.write(get("/v1/a") + post("/healthz", "b".repeat(5_000_000)))
    const inside = await taken
    await until(() => inside.isPaused())
    waiting[0]!.answer(200, {}, "plain")
    await until(() => connection.text.endsWith("node"))
    assert.strictEqual(length, 5_000_000)
    socket.destroy()
  })

  it("whose request arrives in many chunks goes to Node's parser", async () => {
    const { port } = await listen(plainly())
    const { connection, socket } = await open(port)
    socket.setNoDelay(true)
    for (const character of get("/v1/a")) {
      socket.write(character)
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    await until(() => connection.text.endsWith("node"))
    assert.strictEqual(count(connection.text, "HTTP/1.1 200"), 1)
    socket.destroy()
  })

  it("that is half closed in the middle of a request gets a refusal", async () => {
    const { port } = await listen(plainly())
    const { closed, connection, socket } = await open(port, true)
    socket.end("GET /v1/a HTTP/1.1\r\nHost: lo")
    await closed
    assert.include(connection.text, "400 Bad Request")
  })

  it("that is half closed before its answer gets it, and ends", async () => {
    const begun: Array<Incoming> = []
    const { port } = await listen((incoming) => void begun.push(incoming))
    const { closed, connection, socket } = await open(port, true)
    socket.end(get("/v1/a") + get("/v1/b"))
    await until(() => begun.length === 1)
    await new Promise((resolve) => setTimeout(resolve, 20))
    assert.isFalse(begun[0]!.isGone)
    begun[0]!.answer(200, {}, "first;")
    await until(() => begun.length === 2)
    begun[1]!.answer(200, {}, "second;")
    await closed
    assert.deepInclude(connection, { hasEnded: true, error: "" })
    assert.match(connection.text, /Connection: keep-alive[^]*first;HTTP[^]*Connection: close[^]*second;$/)
  })

  it("that is half closed and then closed ends when its answer cannot be sent", async () => {
    const begun: Array<Incoming> = []
    const { port } = await listen((incoming) => void begun.push(incoming))
    const { socket } = await open(port, true)
    socket.end(get("/v1/a") + get("/v1/b"))
    await until(() => begun.length === 1)
    socket.destroy()
    begun[0]!.answer(200, {}, "a".repeat(1000))
    await until(() => begun.length === 2)
    begun[1]!.answer(200, {}, "a".repeat(1000))
    await until(() => begun[1]!.isGone)
    assert.deepStrictEqual(
      begun.map(({ url }) => url),
      ["/v1/a", "/v1/b"]
    )
  })

  it("that is reset abandons its request", async () => {
    const begun: Array<Incoming> = []
    let isTold = false
    const { port } = await listen((incoming) => {
      begun.push(incoming)
      incoming.onGone(() => (isTold = true))
    })
    const { socket } = await open(port)
    socket.write(get("/v1/a"))
    await until(() => begun.length === 1)
    assert.isFalse(begun[0]!.isGone)
    assert.strictEqual(begun[0]!.remoteAddress, "127.0.0.1")
    socket.resetAndDestroy()
    await until(() => isTold)
    assert.isTrue(begun[0]!.isGone)
  })

  it("without further requests is ended", async () => {
    const { port } = await listen(plainly(), { keepAliveMillis: 50 })
    const { closed, connection, socket } = await open(port)
    socket.write(get("/v1/a"))
    await closed
    assert.deepInclude(connection, { hasEnded: true, error: "" })
    assert.isTrue(connection.text.endsWith("plain"))
  })

  for (const [whose, sent] of [
    ["request does not come to its end", post("/v1/a", "whole").slice(0, -1)],
    ["first request does not come", ""]
  ] as const) {
    it(`whose ${whose} is refused`, async () => {
      const { port, server } = await listen(plainly(), { arrivalMillisMax: 50 })
      server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => void socket.end(error.code ?? ""))
      const { closed, connection, socket } = await open(port)
      socket.write(sent)
      await closed
      assert.strictEqual(connection.text, "ERR_HTTP_REQUEST_TIMEOUT")
    })
  }

  it("without an answer is ended", async () => {
    let tell: (incoming: Incoming) => void
    const given = new Promise<Incoming>((resolve) => (tell = resolve))
    const { port } = await listen((incoming) => incoming.onGone(() => tell(incoming)), { stillMillisMax: 50 })
    const { closed, connection, socket } = await open(port)
    socket.write(get("/v1/a"))
    await closed
    assert.isTrue((await given).isGone)
    assert.strictEqual(connection.text, "")
  })

  for (const [over, ofServer, ofClient] of TRANSPORTS) {
    it(`of a client that does not read is ended, without handling further requests, ${over}`, async () => {
      let begun = 0
      const { port } = await listen(
        (incoming) => {
          begun++
          incoming.answer(200, {}, "a".repeat(64 * 1024 * 1024))
        },
        { ...ofServer, stillMillisMax: 100 }
      )
      const { closed, socket } = await open(port, false, ofClient)
      socket.pause()
      socket.write(get("/v1/a") + get("/v1/b"))
      await until(() => begun === 1)
      await new Promise((resolve) => setTimeout(resolve, 1000))
      socket.resume()
      await closed
      assert.strictEqual(begun, 1)
      assert.isBelow(socket.bytesRead, 64 * 1024 * 1024)
    })

    it(`of a client that reads slowly gets a long answer in full, and then the next, ${over}`, async () => {
      const { port } = await listen(
        (incoming) => incoming.answer(200, {}, `${"ü".repeat(4 * 1024 * 1024)}${incoming.url};`),
        ofServer
      )
      const { connection, socket } = await open(port, false, ofClient)
      socket.pause().write(get("/v1/a") + get("/v1/b"))
      const slowly = setInterval(() => socket.resume() && setImmediate(() => socket.pause()), 2)
      await until(() => connection.text.endsWith("/v1/b;"))
      clearInterval(slowly)
      assert.strictEqual(count(connection.text, "\xc3\xbc"), 8 * 1024 * 1024)
      socket.destroy()
    })
  }
})

describe("a server that is closed", () => {
  it("still answers a request that is running or on its way, and ends its connection", async () => {
    const begun: Array<Incoming> = []
    const { port, server } = await listen((incoming) => void begun.push(incoming))
    const [busy, quiet, coming] = [await open(port, true), await open(port), await open(port)]
    busy.socket.write(get("/v1/busy"))
    await until(() => begun.length === 1)
    const end = new Promise<void>((resolve) => void server.close(() => resolve()))
    coming.socket.write(get("/v1/coming"))
    await until(() => begun.length === 2)
    await quiet.closed
    assert.deepInclude(quiet.connection, { text: "", hasEnded: true, error: "" })
    // The request runs for longer than a silent connection lasts.
    await new Promise((resolve) => setTimeout(resolve, 1200))
    for (const incoming of begun) incoming.answer(200, {}, `answer to ${incoming.url}`)
    // A request that is sent after the answer is not run, and causes no reset.
    busy.socket.write(get("/v1/more").repeat(100))
    await until(() => busy.connection.hasEnded)
    busy.socket.end(get("/v1/more"))
    await end
    for (const [{ connection }, path] of [
      [busy, "busy"],
      [coming, "coming"]
    ] as const) {
      assert.include(connection.text, "Connection: close")
      assert.isTrue(connection.text.endsWith(`answer to /v1/${path}`))
      assert.strictEqual(connection.error, "")
    }
    assert.strictEqual(begun.length, 2)
  })
})
