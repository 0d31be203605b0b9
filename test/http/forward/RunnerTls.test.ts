/**
 * Programs without the installation's key at the place of a process (semantics runners.trust): at its address, between
 * two processes, or in front of its listener.
 */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Logger, ManagedRuntime, Redacted } from "effect"
import * as Log from "../../../src/engine/process/Log.ts"
import type { AddressInfo, Server, Socket } from "node:net"
import * as net from "node:net"
import * as tls from "node:tls"
import * as Health from "../../../src/cluster/Health.ts"
import type { Key } from "../../../src/domain/SecretFile.ts"
import { partitionOf, Placement } from "../../../src/engine/process/Placement.ts"
import { Forwarder, layer, newCourse, type Outgoing } from "../../../src/http/forward/Forwarder.ts"
import * as RunnerTls from "../../../src/http/forward/RunnerTls.ts"
import { pause, until } from "../../support/TillProcess.ts"
import { isClientHelloAlone } from "../../support/TlsRecords.ts"
import { AUTHORITY, KEY, LOCALHOST } from "../../webhooks/Certificates.ts"
import { TLS } from "../../support/MemoryFleet.ts"

const OTHER_TLS = RunnerTls.make([Redacted.make(new Uint8Array(32).fill(8))])
const ACCOUNT = "mer_1:test"
const PARTITION = partitionOf(ACCOUNT)
const SECRET = "Basic c2tfdGVzdF9zZWNyZXQ6"
const FORGED = "HTTP/1.1 200 OK\r\ntill-answer: carried\r\ncontent-length: 8\r\n\r\n"

const endings: Array<() => unknown> = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

/** Lets a server listen until the test ends. Returns its port. */
const open = async (server: Server): Promise<number> => {
  const sockets = new Set<Socket>()
  server.on("connection", (socket: Socket) => {
    sockets.add(socket)
    socket.on("error", () => undefined)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  endings.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

interface Recorded {
  /** For each connection, the bytes in both directions. */
  readonly connections: Array<{ readonly sent: Array<Buffer>; readonly received: Array<Buffer> }>
  readonly url: string
}

/** A proxy that records all bytes, and passes them on in both directions. */
const recording = async (port: number): Promise<Recorded> => {
  const connections: Recorded["connections"] = []
  const proxy = net.createServer((socket) => {
    const connection = { sent: new Array<Buffer>(), received: new Array<Buffer>() }
    connections.push(connection)
    const onward = net.connect({ port, host: "127.0.0.1" })
    for (const one of [socket, onward]) one.on("error", () => undefined)
    socket.on("data", (bytes) => connection.sent.push(bytes)).pipe(onward)
    onward.on("data", (bytes) => connection.received.push(bytes)).pipe(socket)
    socket.on("close", () => onward.destroy())
    onward.on("close", () => socket.destroy())
  })
  return { connections, url: `https://127.0.0.1:${await open(proxy)}` }
}

const startProcess = async (own = TLS) => {
  const logged: Array<string> = []
  const logger = Logger.layer([Logger.make(({ message }) => void logged.push(String(message)))])
  const options = { tls: own, host: "127.0.0.1", port: 0, seekMillisMax: 300 } as const
  const runtime = ManagedRuntime.make(
    layer(options).pipe(Layer.provideMerge(Placement.layerShared), Layer.provide([logger, Log.layer()]))
  )
  endings.push(() => runtime.dispose())
  const placement = await runtime.runPromise(Placement)
  const forwarder = await runtime.runPromise(Effect.flatMap(Effect.void, () => Forwarder))
  placement.confirm(performance.now())
  const timer = setInterval(() => placement.confirm(performance.now()), 500)
  endings.push(() => clearInterval(timer))
  const carried: Array<string> = []
  const handlers = {
    api: (incoming: Parameters<Parameters<typeof forwarder.serve>[0]["api"]>[0]) => {
      carried.push(incoming.url)
      incoming.answer(200, {}, "{}")
    },
    page: () => undefined,
    call: (path: string) =>
      Effect.sync(() => {
        carried.push(path)
        return { status: 200, body: {} }
      })
  }
  const serving = ManagedRuntime.make(Layer.effectDiscard(forwarder.serve(handlers)))
  endings.push(() => serving.dispose())
  await serving.runPromise(Effect.void)
  return { forwarder, placement, url: forwarder.url!, port: Number(new URL(forwarder.url!).port), logged, carried }
}

const outgoing = (): Outgoing => ({
  account: ACCOUNT,
  kind: "request",
  method: "POST",
  url: "/v1/payment_intents",
  rawHeaders: ["Host", "till.example", "Authorization", SECRET],
  remoteAddress: "192.0.2.1",
  body: Buffer.from('{"cvc":"123"}'),
  mayRepeat: true,
  course: newCourse()
})

const run = <A, E>(effect: Effect.Effect<A, E>) => Effect.runPromiseExit(effect)

const forging = (socket: Socket) => socket.on("data", () => socket.write(`${FORGED}{"a":"b"}`))

/** Starts of programs at the address of a process, by their description. Each returns its port. */
const STRANGERS: Readonly<Record<string, () => Promise<number>>> = {
  "answers in plain HTTP": () => open(net.createServer(forging)),
  "answers before it is asked": () => open(net.createServer((socket) => void socket.write(`${FORGED}{"a":"b"}`))),
  "says nothing": () => open(net.createServer()),
  "ends each connection": () => open(net.createServer((socket) => socket.end())),
  "has the secret of another installation": () => open(tls.createServer(OTHER_TLS.server, forging)),
  "has a certificate": () => open(tls.createServer({ cert: LOCALHOST, key: KEY }, forging)),
  "has a certificate, and speaks only TLS 1.2": () =>
    open(tls.createServer({ cert: LOCALHOST, key: KEY, maxVersion: "TLSv1.2" }, forging))
}

describe("a program at the address of a process of the installation", () => {
  for (const [what, start] of Object.entries(STRANGERS)) {
    it(`gets a ClientHello and is not trusted: one that ${what}`, async () => {
      const { connections, url } = await recording(await start())
      const { forwarder, placement } = await startProcess()
      placement.setPlace(PARTITION, url)
      const exit = await run(forwarder.forward(outgoing()))
      assert.isTrue(Exit.isFailure(exit), String(exit))
      const called = await run(forwarder.call({ url }, { path: "/administration", body: {}, mayRepeat: false }))
      assert.isTrue(Exit.isFailure(called), String(called))
      assert.strictEqual(await Effect.runPromise(Health.make(TLS.client).presenceOf(url)), "unknown")
      const heard = connections.filter(({ sent }) => sent.length > 0)
      assert.isNotEmpty(heard)
      for (const { sent } of heard) {
        const bytes = Buffer.concat(sent)
        assert.isTrue(isClientHelloAlone(bytes), bytes.toString("hex"))
        for (const secret of [SECRET, "cvc", "payment_intents", "till.example"])
          assert.notInclude(String(bytes), secret)
      }
    })
  }

  it("is not trusted for a certificate of an authority that this process trusts", async () => {
    const port = await open(tls.createServer({ cert: LOCALHOST, key: KEY }, forging))
    const trusting = { ...TLS.client, ca: [AUTHORITY], servername: "localhost", port, host: "127.0.0.1" }
    const outcome = await new Promise<string>((resolve) => {
      const socket = tls.connect(trusting, () => resolve("secure"))
      socket.on("error", ({ message }) => resolve(message))
    })
    assert.include(outcome, "instead of the installation's key")
  })

  it("is logged, once a minute at most, and so is a client of the listener without the key", async () => {
    const own = await startProcess()
    const other = await startProcess(OTHER_TLS)
    own.placement.setPlace(PARTITION, other.url)
    for (const _ of [1, 2]) assert.isTrue(Exit.isFailure(await run(own.forwarder.forward(outgoing()))))
    await until("both have said so", () => own.logged.length > 0 && other.logged.length > 0)
    assert.deepStrictEqual([own.logged.length, other.logged.length], [1, 1])
    assert.match(own.logged[0]!, /did not prove.*TILL_SECRET_FILE/)
    assert.include(own.logged[0]!, other.url)
    assert.match(other.logged[0]!, /TILL_RUNNER_PORT was refused.*TILL_SECRET_FILE.*127\.0\.0\.1/)
    assert.deepStrictEqual(other.carried, [])
  })
})

/** Sends bytes to a port. Returns the bytes received until the connection ends. */
const sendBytes = (port: number, bytes: ReadonlyArray<Buffer | string>): Promise<Buffer> =>
  new Promise((resolve) => {
    const received: Array<Buffer> = []
    const socket = net.connect({ port, host: "127.0.0.1" })
    socket.on("data", (chunk) => received.push(chunk)).on("error", () => undefined)
    socket.on("close", () => resolve(Buffer.concat(received)))
    for (const chunk of bytes) socket.write(chunk)
    socket.end()
  })

describe("a program between two processes of the installation", () => {
  it("reads nothing, and no replay of it is run or trusted", async () => {
    const owner = await startProcess()
    const { connections, url } = await recording(owner.port)
    const { forwarder, placement } = await startProcess()
    placement.setPlace(PARTITION, url)
    assert.isTrue(Exit.isSuccess(await run(forwarder.forward(outgoing()))))
    const call = { path: "/administration", body: { command: "x" }, mayRepeat: false }
    assert.isTrue(Exit.isSuccess(await run(forwarder.call({ url }, call))))
    const carried = ["/v1/payment_intents", "/administration"]
    assert.deepStrictEqual(owner.carried, carried)
    assert.isNotEmpty(connections)
    for (const { received, sent } of connections) {
      for (const secret of [SECRET, "cvc", "command", "till-answer"]) {
        assert.notInclude(String(Buffer.concat([...sent, ...received])), secret)
      }
      // Replayed to the owner: together, and in chunks.
      await sendBytes(owner.port, [Buffer.concat(sent)])
      await sendBytes(owner.port, sent)
      // Replayed to the sender: the owner's answer.
      const replaying = await open(net.createServer((socket) => socket.write(Buffer.concat(received))))
      placement.setPlace(PARTITION, `https://127.0.0.1:${replaying}`)
      assert.isTrue(Exit.isFailure(await run(forwarder.forward(outgoing()))))
    }
    await pause(100)
    assert.deepStrictEqual(owner.carried, carried)
  })
})

describe("operation.roll: processes while their secret is rolled", () => {
  const [newer, older] = [1, 2].map((byte) => Redacted.make(new Uint8Array(32).fill(byte))) as [Key, Key]
  const stages: Readonly<Record<string, RunnerTls.RunnerTls>> = {
    "with the old secret": RunnerTls.make([older]),
    "with both, before the roll": RunnerTls.make([newer, older], () => 1),
    "with both, after the roll": RunnerTls.make([newer, older]),
    "with the new secret": RunnerTls.make([newer])
  }
  const names = Object.keys(stages)

  for (const [i, from] of names.entries()) {
    for (const [j, to] of names.entries()) {
      // A process takes the next step only after all others have taken the one before.
      if (Math.abs(i - j) > 1) continue
      it(`speak to one another: one ${from}, and one ${to}`, async () => {
        const owner = await startProcess(stages[to])
        const { forwarder, placement } = await startProcess(stages[from])
        placement.setPlace(PARTITION, owner.url)
        assert.isTrue(Exit.isSuccess(await run(forwarder.forward(outgoing()))))
        assert.deepStrictEqual(owner.carried, ["/v1/payment_intents"])
      })
    }
  }

  it("do not believe one that has only the secret before it", async () => {
    const owner = await startProcess(stages["with the old secret"])
    const { forwarder, placement } = await startProcess(stages["with the new secret"])
    placement.setPlace(PARTITION, owner.url)
    assert.isTrue(Exit.isFailure(await run(forwarder.forward(outgoing()))))
    assert.deepStrictEqual(owner.carried, [])
  })
})

describe("a program in front of the listener", () => {
  const REQUEST = "POST /administration HTTP/1.1\r\nhost: a\r\ntill-forwarded: call;\r\ncontent-length: 2\r\n\r\n{}"

  it("gets no answer and runs nothing, in plain HTTP or with another key", async () => {
    const { carried, port } = await startProcess()
    for (const text of [REQUEST, "GET /health HTTP/1.1\r\nhost: a\r\n\r\n", "x"]) {
      assert.notInclude(String(await sendBytes(port, [text])), "HTTP/")
    }
    const clients: ReadonlyArray<tls.ConnectionOptions> = [
      OTHER_TLS.client,
      { rejectUnauthorized: false },
      { rejectUnauthorized: false, cert: LOCALHOST, key: KEY },
      { ...TLS.client, pskCallback: () => ({ ...TLS.client.pskCallback(), identity: "somebody" }) },
      { ...TLS.client, minVersion: "TLSv1.2", maxVersion: "TLSv1.2", ciphers: "PSK" }
    ]
    for (const client of clients) {
      const outcome = await new Promise<string>((resolve) => {
        const socket = tls.connect({ ...client, port, host: "127.0.0.1" }, () => socket.write(REQUEST))
        socket.on("data", (bytes) => resolve(`data ${bytes}`))
        socket.on("error", () => resolve("refused")).on("close", () => resolve("closed"))
      })
      assert.strictEqual(outcome, "refused")
    }
    assert.deepStrictEqual(carried, [])
  })

  it("is refused if it has the key but sends no envelope", async () => {
    const { carried, port } = await startProcess()
    for (const lines of ["", "till-forwarded: something;\r\n"]) {
      for (const target of ["GET /v1/customers", "GET /checkout/cs_x"]) {
        const answer = await new Promise<string>((resolve) => {
          const socket = tls.connect({ ...TLS.client, port, host: "127.0.0.1" }, () => {
            socket.write(`${target} HTTP/1.1\r\nhost: a\r\n${lines}\r\n`)
          })
          socket.once("data", (bytes) => {
            socket.destroy()
            resolve(String(bytes))
          })
        })
        assert.include(answer, "HTTP/1.1 403")
      }
    }
    assert.deepStrictEqual(carried, [])
  })
})
