/** Batches of answers, and the close of a server. Shutdown.e2e.test.ts stops all of Till under load. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { type IncomingMessage, request, type Server, type ServerResponse } from "node:http"
import { type AddressInfo, connect } from "node:net"
import * as NodeServer from "../../src/server/NodeServer.ts"

let server: Server
afterEach(() => void server.close())

const listen = async (
  handler: (request: IncomingMessage, response: ServerResponse) => void,
  stillMillisMax = 120_000
): Promise<number> => {
  server = NodeServer.create({ stillMillisMax }).on("request", handler).listen(0, "127.0.0.1")
  await new Promise((resolve) => server.once("listening", resolve))
  return (server.address() as AddressInfo).port
}

/** Returns the body of the answer, or the error of the connection. */
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

/** A handler that ends the answers to `count` requests together. It reports how many bytes of each were then sent. */
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
  it("of one turn are written at its end, each in full to its own client", async () => {
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

  it("that cannot be sent end their own connection, and affect no other answer of the batch", async () => {
    const { handler } = together(3, (response, path) => {
      response.strictContentLength = true
      response.writeHead(200, { "content-length": 4 })
      response.end(path === "/bad" ? "too long" : "good")
    })
    const port = await listen(handler)
    const answers = await Promise.all(["/1", "/bad", "/2"].map((path) => get(port, path)))
    assert.deepStrictEqual(answers, ["good", "ECONNRESET", "good"])
  })

  it("that are ended twice are sent once", async () => {
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

  for (const [condition, more] of [
    ["", ""],
    [" and waits for 100 Continue", "Expect: 100-continue\r\nContent-Length: 0\r\n"]
  ] as const) {
    it(`end for a client that sends hundreds of requests ahead${condition}`, async () => {
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

describe("a server that is closed", () => {
  /** An open connection, with the bytes received so far, and its end. */
  const open = async (port: number, allowHalfOpen = false) => {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen })
    const connection = { socket, text: "", hasEnded: false, error: "" }
    socket.on("data", (chunk) => (connection.text += String(chunk)))
    socket.on("end", () => (connection.hasEnded = true))
    socket.on("error", (error: NodeJS.ErrnoException) => (connection.error = error.code ?? error.message))
    const closed = new Promise((resolve) => socket.once("close", resolve))
    await new Promise((resolve) => socket.once("connect", resolve))
    return { connection, closed, socket }
  }
  const until = async (condition: () => boolean) => {
    while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  const closing = () => new Promise<void>((resolve) => void server.close(() => resolve()))

  it("still answers a request that was on its way on an idle connection, and accepts no new connection", async () => {
    const port = await listen((_, response) => void response.end("answer"))
    const { closed, connection, socket } = await open(port)
    socket.write(head("/"))
    await until(() => connection.text.endsWith("answer"))
    assert.include(connection.text, "Connection: keep-alive")
    connection.text = ""
    const end = closing()
    assert.strictEqual(await get(port, "/"), "ECONNREFUSED")
    socket.write(head("/"))
    await closed
    assert.include(connection.text, "Connection: close")
    assert.isTrue(connection.text.endsWith("answer"))
    assert.strictEqual(connection.error, "")
    await end
  })

  it("ends idle connections", async () => {
    const port = await listen((_, response) => void response.end("answer"))
    const quiet = [await open(port), await open(port)]
    quiet[1]!.socket.write("GET / HTTP/1.1\r\nHost: half a requ")
    await new Promise((resolve) => setTimeout(resolve, 50))
    await closing()
    for (const { closed, connection } of quiet) {
      await closed
      assert.deepInclude(connection, { text: "", hasEnded: true, error: "" })
    }
  })

  it("waits for a request that is arriving, however slowly", async () => {
    const port = await listen((_, response) => void response.end("answer"))
    const { closed, connection, socket } = await open(port)
    const end = closing()
    for (const part of head("/slow").match(/.{1,8}/gsu)!) {
      socket.write(part)
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
    await closed
    assert.isTrue(connection.text.endsWith("answer"))
    await end
  })

  it("neither resets a client that has sent more requests than are answered, nor runs the rest", async () => {
    const begun: Array<string> = []
    const waiting: Array<ServerResponse> = []
    const port = await listen((request, response) => {
      begun.push(request.url!)
      waiting.push(response)
    })
    const { connection, socket } = await open(port, true)
    socket.write(head("/first"))
    await until(() => waiting.length === 1)
    const end = closing()
    waiting[0]!.end("answer to the first")
    socket.write(head("/second") + head("/third").repeat(100))
    await until(() => connection.hasEnded)
    // The second write would fail if the first had caused a reset.
    for (const path of ["/fourth", "/fifth"]) {
      socket.write(head(path))
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    socket.end()
    await end
    assert.deepStrictEqual(begun, ["/first"])
    assert.isTrue(connection.text.endsWith("answer to the first"))
    assert.strictEqual(connection.error, "")
  })

  it("waits only briefly for a client that leaves its connection open", async () => {
    const port = await listen((_, response) => void response.end("answer"))
    const { connection, socket } = await open(port, true)
    const begun = performance.now()
    await closing()
    assert.isTrue(connection.hasEnded)
    // An open server keeps such a connection for 65 s.
    assert.isBelow(performance.now() - begun, 60_000)
    socket.destroy()
  })
})

const head = (path: string, more = "") => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`
