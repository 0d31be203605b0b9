/** What becomes of a request whose account's process refuses it, hangs, goes away or is somebody else. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, ManagedRuntime } from "effect"
import * as http from "node:http"
import type { AddressInfo, Server, Socket } from "node:net"
import * as net from "node:net"
import type { PlacementShape } from "../../../src/engine/Placement.ts"
import { partitionOf, Placement } from "../../../src/engine/Placement.ts"
import type { ForwarderShape, Outgoing } from "../../../src/http/forward/Forwarder.ts"
import { Forwarder, layer } from "../../../src/http/forward/Forwarder.ts"
import { found, keyOf, linesOf, WINDOW_MILLIS } from "../../../src/http/forward/ForwardedHead.ts"
import type { ForwardedIncoming } from "../../../src/http/forward/Listener.ts"
import { Redacted } from "effect"
import { KEY } from "./Runners.ts"

const ACCOUNT = "mer_1:test"
const PARTITION = partitionOf(ACCOUNT)

const endings: Array<() => unknown> = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

interface Process {
  readonly forwarder: ForwarderShape
  readonly placement: PlacementShape
  readonly url: string
}

const startProcess = async (): Promise<Process> => {
  const options = { key: KEY, host: "127.0.0.1", port: 0, seekMillisMax: 2000 }
  const runtime = ManagedRuntime.make(layer(options).pipe(Layer.provideMerge(Placement.layerShared)))
  endings.push(() => runtime.dispose())
  const placement = await runtime.runPromise(Placement)
  const forwarder = await runtime.runPromise(Effect.flatMap(Effect.void, () => Forwarder))
  placement.confirm(performance.now())
  const timer = setInterval(() => placement.confirm(performance.now()), 500)
  endings.push(() => clearInterval(timer))
  return { forwarder, placement, url: forwarder.url! }
}

/** A process that answers whatever is forwarded to it in this way. */
const startOwner = async (answer: (incoming: ForwardedIncoming) => void): Promise<Process> => {
  const process = await startProcess()
  const handlers = { api: answer, page: () => undefined, call: () => Effect.undefined }
  const runtime = ManagedRuntime.make(Layer.effectDiscard(process.forwarder.serve(handlers)))
  endings.push(() => runtime.dispose())
  await runtime.runPromise(Effect.void)
  return process
}

/** A socket that does with each connection what it is told. */
const startDouble = async (onConnection: (socket: Socket) => void): Promise<string> => {
  const sockets = new Set<Socket>()
  const server: Server = net.createServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => undefined)
    onConnection(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  endings.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const outgoing = (method = "GET", body = "", more: Partial<Outgoing> = {}): Outgoing => ({
  account: ACCOUNT,
  kind: "request",
  method,
  url: "/v1/customers/cus_x",
  headers: { authorization: "Basic x" },
  rawHeaders: ["Authorization", "Basic x"],
  remoteAddress: "192.0.2.1",
  body: Buffer.from(body),
  isPlain: true,
  mayRepeat: method !== "DELETE",
  ...more
})

const ok = (incoming: ForwardedIncoming, body = "{}") => incoming.answer(200, { "x-a": "1" }, body)

const run = <A, E>(effect: Effect.Effect<A, E>) => Effect.runPromiseExit(effect)
const bodyOf = (exit: Exit.Exit<unknown, unknown>): string => {
  if (Exit.isFailure(exit)) throw new Error(String(exit.cause))
  return exit.value === "here" ? "here" : (exit.value as { readonly body: Buffer }).body.toString()
}
const until = async (condition: () => boolean) => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}

describe("a request whose account is elsewhere", () => {
  it("is answered there, and its address is known there", async () => {
    const seen: Array<unknown> = []
    const owner = await startOwner((incoming) => {
      seen.push(incoming.method, incoming.url, incoming.remoteAddress, incoming.headers["authorization"])
      ok(incoming)
    })
    const { forwarder, placement } = await startProcess()
    placement.placed(PARTITION, owner.url)
    assert.strictEqual(bodyOf(await run(forwarder.forward(outgoing()))), "{}")
    assert.deepStrictEqual(seen, ["GET", "/v1/customers/cus_x", "192.0.2.1", "Basic x"])
  })

  it("waits while the account moves, and goes where it has come to", async () => {
    const owner = await startOwner(ok)
    const { forwarder, placement } = await startProcess()
    const answers = Promise.all(Array.from({ length: 50 }, () => run(forwarder.forward(outgoing("POST", "{}")))))
    await new Promise((resolve) => setTimeout(resolve, 50))
    placement.placed(PARTITION, owner.url)
    for (const answer of await answers) assert.strictEqual(bodyOf(answer), "{}")
  })

  it("is found to be here once the account has come here", async () => {
    const { forwarder, placement } = await startProcess()
    const answer = run(forwarder.forward(outgoing()))
    await Effect.runPromise(placement.gain(PARTITION))
    assert.strictEqual(bodyOf(await answer), "here")
  })

  it("goes on from whoever has not got the account, and is given up if nobody has", async () => {
    let refusals = 0
    const refusing = await startOwner((incoming) => {
      refusals++
      incoming.elsewhere(ACCOUNT)
    })
    const owner = await startOwner(ok)
    const { forwarder, placement } = await startProcess()
    placement.placed(PARTITION, refusing.url)
    const answer = run(forwarder.forward(outgoing()))
    await until(() => refusals === 1)
    placement.placed(PARTITION, owner.url)
    assert.strictEqual(bodyOf(await answer), "{}")

    // Two that send it to one another, as often as somebody says so.
    placement.placed(PARTITION, refusing.url)
    const again = setInterval(() => placement.placed(PARTITION, refusing.url), 5)
    endings.push(() => clearInterval(again))
    assert.isTrue(Exit.isFailure(await run(forwarder.forward(outgoing()))))
    assert.isBelow(refusals, 100)
  })

  it("goes after an account that whoever was asked has named", async () => {
    const other = "mer_2:test"
    assert.notStrictEqual(partitionOf(other), PARTITION)
    const naming = await startOwner((incoming) => incoming.elsewhere(other))
    const owner = await startOwner(ok)
    const { forwarder, placement } = await startProcess()
    placement.placed(PARTITION, naming.url)
    placement.placed(partitionOf(other), owner.url)
    assert.strictEqual(bodyOf(await run(forwarder.forward(outgoing()))), "{}")
  })

  it("is not answered by whoever else listens there", async () => {
    const stranger = await startDouble((socket) => {
      socket.on("data", () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]"))
    })
    const owner = await startOwner(ok)
    const { forwarder, placement } = await startProcess()
    placement.placed(PARTITION, stranger)
    const answer = run(forwarder.forward(outgoing()))
    await new Promise((resolve) => setTimeout(resolve, 100))
    placement.placed(PARTITION, owner.url)
    assert.strictEqual(bodyOf(await answer), "{}")
  })
})

const PIECES = {
  "before anything of its answer": "",
  "in the middle of its answer's head": "HTTP/1.1 200 OK\r\ntill-ans",
  "in the middle of its answer's body": "HTTP/1.1 200 OK\r\ntill-answer: carried\r\ncontent-length: 100\r\n\r\n{"
}

describe("a connection that ends under a request", () => {
  for (const [when, piece] of Object.entries(PIECES)) {
    it(`${when}: repeats a GET and a POST, and no DELETE`, async () => {
      const arrived: Array<string> = []
      const dying = await startDouble((socket) => {
        socket.once("data", (bytes) => {
          arrived.push(bytes.toString().split(" ", 1)[0]!)
          socket.end(piece)
        })
      })
      const owner = await startOwner((incoming) => {
        arrived.push(`${incoming.method} again`)
        ok(incoming)
      })
      const { forwarder, placement } = await startProcess()
      for (const method of ["GET", "POST"]) {
        placement.placed(PARTITION, dying)
        const answer = run(forwarder.forward(outgoing(method, method === "POST" ? "{}" : "")))
        await until(() => arrived.includes(method))
        placement.placed(PARTITION, owner.url)
        assert.strictEqual(bodyOf(await answer), "{}")
        assert.include(arrived, `${method} again`)
      }
      placement.placed(PARTITION, dying)
      assert.isTrue(Exit.isFailure(await run(forwarder.forward(outgoing("DELETE")))))
      assert.strictEqual(arrived.filter((line) => line.startsWith("DELETE")).length, 1)
    })
  }

  it("or that cannot be made: repeats a DELETE as well, which nobody has seen", async () => {
    const gone = await startDouble(() => undefined)
    await endings.pop()!()
    const owner = await startOwner(ok)
    const { forwarder, placement } = await startProcess()
    placement.placed(PARTITION, gone)
    const answer = run(forwarder.forward(outgoing("DELETE")))
    await new Promise((resolve) => setTimeout(resolve, 50))
    placement.placed(PARTITION, owner.url)
    assert.strictEqual(bodyOf(await answer), "{}")
  })

  it("that hangs instead is given up once the account is elsewhere", async () => {
    const frozen = await startDouble((socket) => socket.pause())
    const owner = await startOwner(ok)
    const { forwarder, placement } = await startProcess()
    placement.placed(PARTITION, frozen)
    const answer = run(forwarder.forward(outgoing("POST", "{}")))
    await new Promise((resolve) => setTimeout(resolve, 50))
    placement.placed(PARTITION, owner.url)
    assert.strictEqual(bodyOf(await answer), "{}")
  })
})

describe("a client that goes away", () => {
  it("is gone for the account's process, too", async () => {
    let incoming: ForwardedIncoming | undefined
    let isGone = false
    const owner = await startOwner((received) => {
      incoming = received
      received.onGone(() => (isGone = true))
    })
    const { forwarder, placement } = await startProcess()
    placement.placed(PARTITION, owner.url)
    const fiber = Effect.runFork(forwarder.forward(outgoing()))
    await until(() => incoming !== undefined)
    fiber.interruptUnsafe()
    await until(() => isGone)
    assert.isTrue(incoming!.isGone)
  })
})

const ask = (url: string, method: string, path: string, lines: Array<string>, body = ""): Promise<string> =>
  new Promise((resolve, reject) => {
    const headers: Record<string, string> = {}
    for (let i = 0; i < lines.length; i += 2) headers[lines[i]!] = lines[i + 1]!
    if (body !== "") headers["content-length"] = String(Buffer.byteLength(body))
    const request = http.request(url + path, { method, headers, agent: false }, (response) => {
      let text = `${response.statusCode} `
      response.on("data", (chunk: Buffer) => (text += chunk.toString())).on("end", () => resolve(text))
    })
    request.on("error", reject).end(body)
  })

describe("the listener for other processes", () => {
  const said = { kind: "request", remoteAddress: "192.0.2.1" } as const
  const message = { method: "POST", url: "/v1/customers", headers: { "x-a": "1" }, rawHeaders: ["X-A", "1"] }
  const body = Buffer.from('{"name":"A"}')

  it("says that it is there, and takes nothing that is not signed for it", async () => {
    let carried = 0
    const { url } = await startOwner((incoming) => {
      carried++
      ok(incoming)
    })
    const lines = () => linesOf(KEY, message, said, body)
    const send = (method: string, path: string, lines: Array<string>, sent = body) =>
      ask(url, method, path, lines, sent.toString())
    assert.strictEqual(await ask(url, "GET", "/health", []), '200 {"status":"ok"}')
    assert.strictEqual(await send("POST", "/v1/customers", lines()), "200 {}")
    assert.strictEqual(carried, 1)

    const refused = "403 "
    const with_ = (change: (line: string, index: number) => string) => lines().map(change)
    const wrong: Readonly<Record<string, Promise<string>>> = {
      "no signature": send("POST", "/v1/customers", ["X-A", "1"]),
      "a signature of nobody's": send(
        "POST",
        "/v1/customers",
        with_((line, i) => (i === 3 ? "x".repeat(43) : line))
      ),
      "one that is cut off": send(
        "POST",
        "/v1/customers",
        with_((line, i) => (i === 3 ? line.slice(1) : line))
      ),
      "another key": send(
        "POST",
        "/v1/customers",
        linesOf(keyOf(Redacted.make(new Uint8Array(32))), message, said, body)
      ),
      "another path": send("POST", "/v1/products", lines()),
      "another query": send("POST", "/v1/customers?a=1", lines()),
      "another method": send("PUT", "/v1/customers", lines()),
      "another body": send("POST", "/v1/customers", lines(), Buffer.from('{"name":"B"}')),
      "no body": send("POST", "/v1/customers", lines(), Buffer.alloc(0)),
      "another header": send("POST", "/v1/customers", [...lines(), "Authorization", "Basic y"]),
      "another header's value": send(
        "POST",
        "/v1/customers",
        with_((line) => (line === "1" ? "2" : line))
      ),
      "another client": send(
        "POST",
        "/v1/customers",
        with_((line) => line.replace("192.0.2.1", "192.0.2.2"))
      ),
      "a page": send("GET", "/checkout/cs_x", []),
      "a command": send("POST", "/administration", ["X-A", "1"])
    }
    for (const [what, answer] of Object.entries(wrong)) assert.strictEqual(await answer, refused, what)
    assert.strictEqual(carried, 1)
  })

  it("takes a signature for a minute, by one of two clocks", () => {
    const lines = linesOf(KEY, message, said, body)
    const received = { ...message, headers: { "x-a": "1", [lines[0]!]: lines[1]!, [lines[2]!]: lines[3]! } }
    const wall = Date.now
    const running = performance.now
    const at = (wallMillis: number, runningMillis: number) => {
      const [wallNow, runningNow] = [wall() + wallMillis, performance.now() + runningMillis]
      Date.now = () => wallNow
      performance.now = () => runningNow
      try {
        return found(KEY, received)?.remoteAddress
      } finally {
        Date.now = wall
        performance.now = running
      }
    }
    const late = WINDOW_MILLIS + 2000
    assert.strictEqual(at(0, 0), "192.0.2.1")
    assert.strictEqual(at(WINDOW_MILLIS - 2000, WINDOW_MILLIS - 2000), "192.0.2.1")
    // A clock was set, or a machine has slept.
    assert.strictEqual(at(3_600_000, 10), "192.0.2.1")
    assert.strictEqual(at(10, -3_600_000), "192.0.2.1")
    assert.isUndefined(at(late, late))
    assert.isUndefined(at(-late, -late))
  })
})
