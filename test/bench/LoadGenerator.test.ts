import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Load from "../../bench/load/Load.ts"
import type { LoadPlan } from "../../bench/load/LoadPlan.ts"
import { serverOf } from "./LocalServer.ts"

const plan = (port: number, changes: Partial<LoadPlan> = {}): LoadPlan => ({
  port,
  connections: 4,
  seconds: 0.2,
  requests: { method: "POST", paths: ["/a", "/b"], apiKeys: ["k1", "k2", "k3"], body: `{"amount":1}` },
  expect: "fine",
  ...changes
})

describe("LoadGenerator", () => {
  it.live("counts exactly what was answered; every key is new, paths and accounts take turns", () =>
    Effect.gen(function* () {
      const keys = new Set<string>()
      const kinds = new Map<string, number>()
      let bodies = 0
      const { port } = yield* serverOf((request, response) => {
        keys.add(String(request.headers["idempotency-key"]))
        const kind = `${request.url} ${request.headers.authorization}`
        kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
        request.on("data", (chunk) => (bodies += String(chunk) === `{"amount":1}` ? 1 : 0))
        request.on("end", () => response.end("fine"))
      })
      const load = yield* Load.make
      const result = yield* load.run(plan(port))
      assert.isAbove(result.acknowledged, 100)
      assert.strictEqual(keys.size, result.acknowledged)
      assert.strictEqual(bodies, result.acknowledged)
      assert.strictEqual(kinds.size, 6)
      assert.isAtMost(Math.max(...kinds.values()) - Math.min(...kinds.values()), 1)
      assert.strictEqual(result.latencies.length, result.acknowledged)
      assert.deepStrictEqual(result.latencies, result.latencies.toSorted())
      assert.isAbove(result.latencies[0]!, 0)
    })
  )

  it.live("spreads its connections over the servers of one service", () =>
    Effect.gen(function* () {
      const sockets = [new Set<unknown>(), new Set<unknown>(), new Set<unknown>()]
      const servers = yield* Effect.forEach(sockets, (seen) =>
        serverOf((request, response) => {
          seen.add(request.socket)
          request.resume().on("end", () => response.end("fine"))
        })
      )
      const [port, ...otherPorts] = servers.map((server) => server.port)
      const load = yield* Load.make
      yield* load.run(plan(port!, { otherPorts, connections: 7 }))
      assert.deepStrictEqual(
        sockets.map(({ size }) => size),
        [3, 2, 2]
      )
    })
  )

  const failing = (name: string, handler: Parameters<typeof serverOf>[0], problem: string) =>
    it.live(name, () =>
      Effect.gen(function* () {
        const { port } = yield* serverOf(handler)
        const load = yield* Load.make
        // The failure ends the load, on a slow machine after a while.
        assert.include((yield* Effect.flip(load.run(plan(port, { seconds: 30 })))).problem, problem)
      })
    )

  it.live("requests no path twice that can be requested once, and ends with the last", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const { port } = yield* serverOf((request, response) => {
        asked.push(request.url!)
        request.resume().on("end", () => response.end("fine"))
      })
      const load = yield* Load.make
      const paths = Array.from({ length: 50 }, (_, i) => `/${i}`)
      const requests = { ...plan(port).requests, paths, pathsOnce: true, apiKeys: ["k1", "k2"] }
      const result = yield* load.run(plan(port, { requests, seconds: 10 }))
      assert.strictEqual(result.acknowledged, 50)
      assert.deepStrictEqual(new Set(asked), new Set(paths))
      assert.isBelow(result.elapsedMillis, 10_000)
    })
  )

  let answers = 0
  failing(
    "fails on a single answer that is not a 200",
    (_, response) => response.writeHead(++answers === 50 ? 503 : 200, { "content-length": 4 }).end("fine"),
    "503 Service Unavailable"
  )
  let bodies = 0
  failing(
    "fails on a single wrong answer",
    (_, response) => response.end(++bodies === 50 ? "wrong" : "fine"),
    "Expected a 200 with fine"
  )
  it.live("accepts a right answer in parts", () =>
    Effect.gen(function* () {
      const { port } = yield* serverOf((_, response) => {
        response.writeHead(200, { "content-length": 4 }).write("fi")
        setTimeout(() => response.end("ne"), 5)
      })
      const load = yield* Load.make
      assert.isAbove((yield* load.run(plan(port))).acknowledged, 0)
    })
  )
  failing("fails on a lost connection", (request) => request.socket.destroy(), "closed a connection")

  it.live("fails without a server, and runs the next load", () =>
    Effect.gen(function* () {
      const { close, port } = yield* serverOf((_, response) => response.end("fine"))
      const load = yield* Load.make
      close()
      assert.include((yield* Effect.flip(load.run(plan(port)))).problem, "ECONNREFUSED")
      const other = yield* serverOf((_, response) => response.end("fine"))
      assert.isAbove((yield* load.run(plan(other.port))).acknowledged, 0)
    })
  )
})
