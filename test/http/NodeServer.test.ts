/** Bursts of answers. How the server drains is seen from outside, in Lifecycle.e2e.test.ts. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import { request } from "node:http"
import type { AddressInfo } from "node:net"
import { connect } from "node:net"
import * as NodeServer from "../../src/http/NodeServer.ts"

let server: Server
afterEach(() => void server.close())

const listen = async (
  handler: (request: IncomingMessage, response: ServerResponse) => void,
  stillMillisMax?: number
): Promise<number> => {
  server = NodeServer.create(stillMillisMax).on("request", handler).listen(0, "127.0.0.1")
  await new Promise((resolve) => server.once("listening", resolve))
  return (server.address() as AddressInfo).port
}

/** The body of the answer, or how the connection ended. */
const get = (port: number, path: string): Promise<string> =>
  new Promise((resolve) => {
    const failed = (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message)
    const sent = request({ port, path, host: "127.0.0.1", agent: false }, (answer) => {
      let text = ""
      answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk))
      answer.on("end", () => resolve(text)).on("error", failed)
    })
    sent.on("error", failed).end()
  })

/** A handler that ends the answers to so many requests in one go; and how many bytes of each were then on their way. */
const together = (count: number, end: (response: ServerResponse, path: string) => void) => {
  const waiting: Array<ServerResponse> = []
  let tell: (bytes: ReadonlyArray<number>) => void
  const bytesAtOnce = new Promise<ReadonlyArray<number>>((resolve) => (tell = resolve))
  const handler = (_: IncomingMessage, response: ServerResponse) => {
    if (waiting.push(response) < count) return
    for (const response of waiting) end(response, response.req.url!)
    tell(waiting.map(({ socket }) => socket!.bytesWritten))
  }
  return { handler, bytesAtOnce }
}

describe("answers", () => {
  it("of one turn are written at its end, each in full and to whom it belongs", async () => {
    const paths = Array.from({ length: 20 }, (_, i) => `/${i}`)
    const { bytesAtOnce, handler } = together(paths.length, (response, path) => response.end(`answer to ${path}`))
    const port = await listen(handler)
    const answers = Promise.all(paths.map((path) => get(port, path)))
    assert.deepStrictEqual(
      await bytesAtOnce,
      paths.map(() => 0)
    )
    assert.deepStrictEqual(
      await answers,
      paths.map((path) => `answer to ${path}`)
    )
  })

  it("that cannot be sent cost their own connection, and no other answer of the burst", async () => {
    const { handler } = together(3, (response, path) => {
      response.strictContentLength = true
      response.writeHead(200, { "content-length": 4 })
      response.end(path === "/bad" ? "too long" : "good")
    })
    const port = await listen(handler)
    const answers = await Promise.all(["/1", "/bad", "/2"].map((path) => get(port, path)))
    assert.deepStrictEqual(answers, ["good", "ECONNRESET", "good"])
  })

  it("that are ended twice go out once", async () => {
    const port = await listen((_, response) => void response.end("once").end())
    assert.strictEqual(await get(port, "/"), "once")
  })

  it("to pipelined requests keep their order, and each request waits for the answer before it", async () => {
    const waiting: Array<ServerResponse> = []
    let most = 0
    const port = await listen((_, response) => {
      most = Math.max(most, waiting.push(response))
      setTimeout(() => waiting.shift()!.end(`at ${response.req.url}`), 5)
    })
    const paths = Array.from({ length: 20 }, (_, i) => `/${i}`)
    const socket = connect(port, "127.0.0.1")
    socket.write(paths.map((path) => head(path)).join("") + head("/last", "Connection: close\r\n"))
    let text = ""
    for await (const chunk of socket) text += String(chunk)
    assert.deepStrictEqual(
      text.match(/at \/(?:\d+|last)/g),
      [...paths, "/last"].map((path) => `at ${path}`)
    )
    assert.strictEqual(most, 1)
  })

  for (const [whoever, more] of [
    ["", ""],
    [", nor to one that asks before it sends", "Expect: 100-continue\r\nContent-Length: 0\r\n"]
  ] as const) {
    it(`are not owed to a client that sends hundreds of requests ahead${whoever}`, async () => {
      let begun = 0
      const port = await listen(() => void begun++)
      server.on("checkContinue", () => void begun++)
      const socket = connect(port, "127.0.0.1")
      const ended = new Promise((resolve) => socket.on("close", resolve).on("error", () => {}))
      socket.write(head("/", more).repeat(300))
      await ended
      assert.strictEqual(begun, 1)
    })
  }

  it("are not kept for a client that does not read them", async () => {
    let given: (response: ServerResponse) => void
    const gone = new Promise<ServerResponse>((resolve) => (given = resolve))
    const port = await listen((_, response) => {
      response.on("close", () => given(response))
      response.end(Buffer.alloc(64 * 1024 * 1024))
    }, 50)
    const socket = connect(port, "127.0.0.1").pause()
    socket.on("error", () => {})
    socket.write(head("/"))
    assert.isFalse((await gone).writableFinished)
    socket.destroy()
  })
})

const head = (path: string, more = "") => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`
