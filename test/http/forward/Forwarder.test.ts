/** Requests whose account's process refuses them, hangs, ends, or is another program (semantics runners.forwarding). */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, ManagedRuntime } from "effect"
import type { AddressInfo, Socket } from "node:net"
import * as tls from "node:tls"
import { partitionOf, Placement, type PlacementShape } from "../../../src/engine/process/Placement.ts"
import {
  Forwarder,
  type ForwarderShape,
  layer,
  newCourse,
  type Options,
  type Outgoing
} from "../../../src/http/forward/Forwarder.ts"
import type { ForwardedIncoming } from "../../../src/http/forward/Listener.ts"
import { basic } from "../../support/HttpExchange.ts"
import { start, TLS } from "../../support/MemoryFleet.ts"

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

type Limits = Pick<Options, "laterMillisMax" | "seekMillisMax">

const startProcess = async (limits: Limits = {}): Promise<Process> => {
  const options = { tls: TLS, host: "127.0.0.1", port: 0, seekMillisMax: 2000, ...limits }
  const runtime = ManagedRuntime.make(layer(options).pipe(Layer.provideMerge(Placement.layerShared)))
  endings.push(() => runtime.dispose())
  const placement = await runtime.runPromise(Placement)
  const forwarder = await runtime.runPromise(Effect.flatMap(Effect.void, () => Forwarder))
  placement.confirm(performance.now())
  const timer = setInterval(() => placement.confirm(performance.now()), 500)
  endings.push(() => clearInterval(timer))
  return { forwarder, placement, url: forwarder.url! }
}

/** A process that answers every forwarded request in the given way. */
const startOwner = async (answer: (incoming: ForwardedIncoming) => void, limits?: Limits): Promise<Process> => {
  const process = await startProcess(limits)
  const handlers = { api: answer, page: () => undefined, call: () => Effect.undefined }
  const runtime = ManagedRuntime.make(Layer.effectDiscard(process.forwarder.serve(handlers)))
  endings.push(() => runtime.dispose())
  await runtime.runPromise(Effect.void)
  return process
}

/** A process of the installation that handles each connection as the test defines. */
const startDouble = async (onConnection: (socket: Socket) => void): Promise<string> => {
  const sockets = new Set<Socket>()
  const server = tls.createServer(TLS.server, (socket) => {
    sockets.add(socket)
    socket.on("error", () => undefined)
    onConnection(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  endings.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const outgoing = (method = "GET", body = "", more: Partial<Outgoing> = {}): Outgoing => ({
  account: ACCOUNT,
  kind: "request",
  method,
  url: "/v1/customers/cus_x",
  rawHeaders: ["Authorization", "Basic x"],
  remoteAddress: "192.0.2.1",
  body: Buffer.from(body),
  mayRepeat: method !== "DELETE",
  course: newCourse(),
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
  it("is answered there, with the client's address", async () => {
    const seen: Array<unknown> = []
    const owner = await startOwner((incoming) => {
      seen.push(incoming.method, incoming.url, incoming.remoteAddress, incoming.headers["authorization"])
      ok(incoming)
    })
    const { forwarder, placement } = await startProcess()
    placement.setPlace(PARTITION, owner.url)
    assert.strictEqual(bodyOf(await run(forwarder.forward(outgoing()))), "{}")
    assert.deepStrictEqual(seen, ["GET", "/v1/customers/cus_x", "192.0.2.1", "Basic x"])
  })

  it("waits while the account moves, then goes to its new process", async () => {
    const owner = await startOwner(ok)
    const { forwarder, placement } = await startProcess()
    const answers = Promise.all(Array.from({ length: 50 }, () => run(forwarder.forward(outgoing("POST", "{}")))))
    await new Promise((resolve) => setTimeout(resolve, 50))
    placement.setPlace(PARTITION, owner.url)
    for (const answer of await answers) assert.strictEqual(bodyOf(answer), "{}")
  })

  // Semantics operations.limits.
  it("holds no connection while its answer comes later", async () => {
    const waiting: Array<ForwardedIncoming> = []
    const owner = await startOwner((incoming) => {
      if (incoming.method !== "POST") return ok(incoming)
      incoming.later()
      waiting.push(incoming)
    })
    const { forwarder, placement } = await startOwner(ok, { seekMillisMax: 60_000, laterMillisMax: 60_000 })
    placement.setPlace(PARTITION, owner.url)
    const failed: Array<unknown> = []
    const send = async () => {
      const exit = await run(forwarder.forward(outgoing("POST", "{}")))
      if (Exit.isFailure(exit)) failed.push(exit.cause)
      return exit
    }
    const answering: Array<ReturnType<typeof send>> = []
    // More than the connections to one process, and few at once: each new connection takes a handshake.
    while (answering.length < 300) {
      for (let i = 0; i < 30; i++) answering.push(send())
      await until(() => waiting.length >= answering.length || failed.length > 0)
    }
    assert.strictEqual(bodyOf(await run(forwarder.forward(outgoing()))), "{}")
    for (const incoming of waiting) {
      assert.isFalse(incoming.isGone)
      ok(incoming, '{"a":1}')
    }
    const answers = await Promise.all(answering)
    assert.deepStrictEqual(failed, [])
    assert.deepStrictEqual(new Set(answers.map(bodyOf)), new Set(['{"a":1}']))
    const [first] = answers
    assert.deepInclude(Exit.isSuccess(first!) && first.value !== "here" ? first.value.headers : {}, { "x-a": "1" })
  })

  it("is sent again if the answer that was to come later does not", async () => {
    let attempts = 0
    const owner = await startOwner((incoming) => {
      if (attempts++ === 0) incoming.later()
      else ok(incoming, `{"n":${attempts}}`)
    })
    const { forwarder, placement } = await startOwner(ok, { laterMillisMax: 100 })
    placement.setPlace(PARTITION, owner.url)
    assert.strictEqual(bodyOf(await run(forwarder.forward(outgoing("POST", "{}")))), '{"n":2}')
  })

  it("runs here once the account has moved here", async () => {
    const { forwarder, placement } = await startProcess()
    const answer = run(forwarder.forward(outgoing()))
    await Effect.runPromise(placement.acquire(PARTITION))
    assert.strictEqual(bodyOf(await answer), "here")
  })

  it("is forwarded again by a process without the account, and fails if no process has it", async () => {
    let refusals = 0
    const refusing = await startOwner((incoming) => {
      refusals++
      incoming.elsewhere(ACCOUNT)
    })
    const owner = await startOwner(ok)
    const { forwarder, placement } = await startProcess()
    placement.setPlace(PARTITION, refusing.url)
    const answer = run(forwarder.forward(outgoing()))
    await until(() => refusals === 1)
    placement.setPlace(PARTITION, owner.url)
    assert.strictEqual(bodyOf(await answer), "{}")

    // Two processes that refer to one another, for ever.
    placement.setPlace(PARTITION, refusing.url)
    const again = setInterval(() => placement.setPlace(PARTITION, refusing.url), 5)
    endings.push(() => clearInterval(again))
    assert.isTrue(Exit.isFailure(await run(forwarder.forward(outgoing()))))
    assert.isBelow(refusals, 100)
  })

  it("follows the account that a process' refusal names", async () => {
    const other = "mer_2:test"
    assert.notStrictEqual(partitionOf(other), PARTITION)
    const naming = await startOwner((incoming) => incoming.elsewhere(other))
    const owner = await startOwner(ok)
    const { forwarder, placement } = await startProcess()
    placement.setPlace(PARTITION, naming.url)
    placement.setPlace(partitionOf(other), owner.url)
    assert.strictEqual(bodyOf(await run(forwarder.forward(outgoing()))), "{}")
  })

  it("is not answered by a process without the answer's header", async () => {
    const other = await startDouble((socket) => {
      socket.on("data", () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]"))
    })
    const owner = await startOwner(ok)
    const { forwarder, placement } = await startProcess()
    placement.setPlace(PARTITION, other)
    const answer = run(forwarder.forward(outgoing()))
    await new Promise((resolve) => setTimeout(resolve, 100))
    placement.setPlace(PARTITION, owner.url)
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
        placement.setPlace(PARTITION, dying)
        const answer = run(forwarder.forward(outgoing(method, method === "POST" ? "{}" : "")))
        await until(() => arrived.includes(method))
        placement.setPlace(PARTITION, owner.url)
        assert.strictEqual(bodyOf(await answer), "{}")
        assert.include(arrived, `${method} again`)
      }
      placement.setPlace(PARTITION, dying)
      assert.isTrue(Exit.isFailure(await run(forwarder.forward(outgoing("DELETE")))))
      assert.strictEqual(arrived.filter((line) => line.startsWith("DELETE")).length, 1)
    })
  }

  it("or that cannot be made: repeats a DELETE, too, which was not sent", async () => {
    const gone = await startDouble(() => undefined)
    await endings.pop()!()
    const owner = await startOwner(ok)
    const { forwarder, placement } = await startProcess()
    placement.setPlace(PARTITION, gone)
    const answer = run(forwarder.forward(outgoing("DELETE")))
    await new Promise((resolve) => setTimeout(resolve, 50))
    placement.setPlace(PARTITION, owner.url)
    assert.strictEqual(bodyOf(await answer), "{}")
  })

  it("that hangs instead is abandoned once the account has moved", async () => {
    const frozen = await startDouble((socket) => socket.pause())
    const owner = await startOwner(ok)
    const { forwarder, placement } = await startProcess()
    placement.setPlace(PARTITION, frozen)
    const answer = run(forwarder.forward(outgoing("POST", "{}")))
    await new Promise((resolve) => setTimeout(resolve, 50))
    placement.setPlace(PARTITION, owner.url)
    assert.strictEqual(bodyOf(await answer), "{}")
  })
})

/** The effect of a request on each process that receives it. */
const DEADLY = {
  kills: (socket: Socket) => socket.destroy(),
  hangs: (socket: Socket) => socket.pause()
}

describe("a request that silences its process", () => {
  for (const [what, silence] of Object.entries(DEADLY)) {
    it(`is sent again once if it ${what} it, and then is unavailable`, async () => {
      const got: Array<string> = []
      const victim = (name: string) =>
        startDouble((socket) => {
          socket.once("data", () => {
            got.push(name)
            silence(socket)
          })
        })
      const [first, second] = [await victim("first"), await victim("second")]
      const third = await startOwner((incoming) => {
        got.push("third")
        ok(incoming)
      })
      const { forwarder, placement } = await startProcess()
      placement.setPlace(PARTITION, first)
      const answer = run(forwarder.forward(outgoing("POST", "{}")))
      await until(() => got.includes("first"))
      placement.setPlace(PARTITION, second)
      await until(() => got.includes("second"))
      placement.setPlace(PARTITION, third.url)
      const exit = await answer
      assert.isTrue(Exit.isFailure(exit) && String(exit.cause).includes("lost"), String(exit))
      assert.deepStrictEqual(got, ["first", "second"])
      // Other requests are answered.
      assert.strictEqual(bodyOf(await run(forwarder.forward(outgoing("POST", "{}")))), "{}")
    })
  }

  it("is counted over all of its attempts, also if its account was here in between", async () => {
    let got = 0
    const victim = await startDouble((socket) => {
      socket.once("data", () => {
        got++
        socket.destroy()
      })
    })
    const { forwarder, placement } = await startProcess()
    const sent = outgoing("POST", "{}")
    placement.setPlace(PARTITION, victim)
    const answer = run(forwarder.forward(sent))
    await until(() => got === 1)
    await Effect.runPromise(placement.acquire(PARTITION))
    assert.strictEqual(bodyOf(await answer), "here")
    await Effect.runPromise(placement.release(PARTITION))
    placement.setPlace(PARTITION, victim)
    assert.isTrue(Exit.isFailure(await run(forwarder.forward(sent))))
    assert.strictEqual(got, 2)
  })
})

describe("a client whose request silences every process that gets it", () => {
  it("gets a 503 with Retry-After", async () => {
    const runners = await start(2)
    endings.push(() => runners.close())
    const { merchantId, secretTest } = await runners.merchant()
    const account = `${merchantId}:test`
    // The process of the installation's account has the key.
    const asked = runners.ownerOf("till")
    await runners.move(account, 1 - asked)
    let got = 0
    const victim = await startDouble((socket) => {
      socket.once("data", () => {
        got++
        socket.destroy()
      })
    })
    const { placement, port } = runners.all[asked]!
    placement.setPlace(partitionOf(account), victim)
    for (const [method, times] of [
      ["POST", 2],
      ["GET", 2],
      ["DELETE", 1]
    ] as const) {
      got = 0
      const path = method === "DELETE" ? "/v1/customers/cus_x" : "/v1/customers"
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: { authorization: basic(secretTest), "content-type": "application/json", "idempotency-key": "k" },
        ...(method === "POST" && { body: "{}" })
      })
      const { error } = (await response.json()) as { readonly error: { readonly code: string } }
      assert.deepStrictEqual([response.status, error.code], [503, "service_unavailable"])
      assert.strictEqual(response.headers.get("retry-after"), "1")
      assert.strictEqual(got, times, method)
    }
  })
})

describe("a client that leaves", () => {
  it("is gone for the account's process, too", async () => {
    let incoming: ForwardedIncoming | undefined
    let isGone = false
    const owner = await startOwner((received) => {
      incoming = received
      received.onGone(() => (isGone = true))
    })
    const { forwarder, placement } = await startProcess()
    placement.setPlace(PARTITION, owner.url)
    const fiber = Effect.runFork(forwarder.forward(outgoing()))
    await until(() => incoming !== undefined)
    fiber.interruptUnsafe()
    await until(() => isGone)
    assert.isTrue(incoming!.isGone)
  })
})
