import { connect } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Arrivals } from "../../bench/webhooks/Arrivals.ts"
import { deliveryOf, pathOf } from "../../bench/webhooks/Delivery.ts"
import { nowMicros } from "../../bench/load/MonotonicClock.ts"
import * as PacedLoad from "../../bench/load/PacedLoad.ts"
import { keyOf, type PacedLoadPlan } from "../../bench/load/PacedLoadPlan.ts"
import { RequestReader } from "../../bench/webhooks/RequestReader.ts"
import * as Sink from "../../bench/webhooks/Sink.ts"
import { serverOf } from "./LocalServer.ts"

const Number0 = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40_000 }))

const webhook = (endpoint: number, run: string, request: number, note = "é") => {
  const body = JSON.stringify({
    id: "evt_1",
    // Metadata may contain anything; the event's own request counts.
    data: { object: { metadata: { idempotency_key: "bench-other-7", note } } },
    request: { id: "req_1", idempotency_key: keyOf(run, request) }
  })
  const head = `POST ${pathOf(endpoint)} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n`
  return Buffer.from(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
}

describe("RequestReader and deliveryOf", () => {
  /** Lengths of the chunks, used cyclically. */
  const Cuts = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 400 }))).check(
    Schema.isMinLength(1)
  )
  const Deliveries = Schema.Array(
    Schema.Struct({
      endpoint: Number0,
      request: Number0,
      run: Schema.Literals(["a", "run7", "0"]),
      note: Schema.String.check(Schema.isMaxLength(300))
    })
  ).check(Schema.isMaxLength(5))

  it.effect.prop("find every delivery, however its request is cut", [Deliveries, Cuts], ([deliveries, cuts]) =>
    Effect.sync(() => {
      const reader = new RequestReader()
      for (const { note, ...delivery } of deliveries) {
        const bytes = webhook(delivery.endpoint, delivery.run, delivery.request, note)
        assert.isTrue(reader.empty)
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const chunk = bytes.subarray(at, at + cuts[i % cuts.length]!)
          at += chunk.length
          assert.strictEqual(reader.push(chunk, chunk.length), at === bytes.length)
          assert.isFalse(reader.empty)
        }
        assert.deepStrictEqual(deliveryOf(reader.text), delivery)
        reader.reset()
      }
    })
  )

  const push = (text: string) => new RequestReader().push(Buffer.from(text), Buffer.byteLength(text))

  it("refuse what they cannot measure", () => {
    assert.throws(() => push("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}"), "without Content-Length")
    assert.throws(() => push("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}POST"), "longer than")
    assert.throws(() => push("GET / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"), "Not a webhook")
    assert.throws(() => push("x".repeat(20_000)), "does not end")
    assert.throws(() => deliveryOf(`POST /0 HTTP/1.1\r\n\r\n{"request":{"idempotency_key":"other"}}`), "Not a delivery")
    assert.throws(() => deliveryOf(`POST /a HTTP/1.1\r\n\r\n{"idempotency_key":"${keyOf("a", 1)}"}`), "Not a delivery")
  })
})

describe("Arrivals", () => {
  const Added = Schema.Array(
    Schema.Struct({
      endpoint: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 })),
      request: Schema.Union([Number0, Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 }))]),
      run: Schema.Literals(["mine", "other"])
    })
  ).check(Schema.isMaxLength(40))

  it.effect.prop("keep the first time of each, and count the others", [Added], ([added]) =>
    Effect.sync(() => {
      const arrivals = new Arrivals("mine", 3)
      const model = new Map<string, number>()
      let [repeated, stray] = [0, 0]
      for (const [i, delivery] of added.entries()) {
        const name = `${delivery.endpoint} ${delivery.request}`
        arrivals.add(delivery, i + 1)
        if (delivery.run !== "mine" || delivery.endpoint === 3) stray++
        else if (model.has(name)) repeated++
        else model.set(name, i + 1)
      }
      const record = arrivals.record()
      assert.strictEqual(arrivals.distinct, model.size)
      assert.deepStrictEqual([record.repeated, record.stray], [repeated, stray])
      const kept = record.firstMicros.flatMap((times, endpoint) =>
        [...times.entries()].flatMap(([request, time]) =>
          time === 0 ? [] : [[`${endpoint} ${request}`, time] as const]
        )
      )
      assert.deepStrictEqual(new Map(kept), model)
    })
  )
})

/** Sends requests over one connection, each after the previous answer; returns the answers' status lines. */
const send = (url: string, requests: ReadonlyArray<Buffer>) =>
  Effect.callback<ReadonlyArray<string>>((resume) => {
    const answers: Array<string> = []
    const socket = connect({ host: "127.0.0.1", port: Number(new URL(url).port) })
    const next = () => {
      const request = requests[answers.length]
      if (request !== undefined) return void socket.write(request)
      socket.destroy()
      resume(Effect.succeed(answers))
    }
    socket.on("connect", next)
    socket.on("data", (bytes) => {
      answers.push(bytes.toString().split("\r\n")[0]!)
      next()
    })
    socket.on("close", () => resume(Effect.succeed(answers)))
  })

describe("Sink", () => {
  it.live("records first arrivals by the shared clock, and answers as commanded", () =>
    Effect.gen(function* () {
      const sink = yield* Sink.make
      yield* sink.begin("a", 2)
      const before = nowMicros()
      const answers = [...(yield* send(sink.url(0), [webhook(0, "a", 0), webhook(1, "a", 0), webhook(0, "a", 0)]))]
      yield* sink.arrived(2)
      const after = nowMicros()
      yield* sink.answer("failure")
      answers.push(...(yield* send(sink.url(0), [webhook(0, "b", 0)])))
      const { firstMicros, repeated, stray } = yield* sink.take
      assert.deepStrictEqual(
        answers.map((answer) => answer.slice(9, 12)),
        ["200", "200", "200", "500"]
      )
      assert.deepStrictEqual([repeated, stray], [1, 1])
      assert.isTrue(firstMicros.every((times) => times[0]! > before && times[0]! < after && times[1] === 0))
      assert.isBelow(firstMicros[0]![0]!, firstMicros[1]![0]!)
      yield* sink.begin("a", 1)
      assert.strictEqual((yield* sink.take).firstMicros[0]![0], 0)
    })
  )

  it.live("fails on what is no delivery", () =>
    Effect.gen(function* () {
      const sink = yield* Sink.make
      yield* sink.begin("a", 1)
      yield* send(sink.url(0), [Buffer.from("POST /0 HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}")])
      assert.include((yield* Effect.flip(sink.arrived(1))).problem, "Not a delivery")
      assert.include((yield* Effect.flip(sink.take)).problem, "Not a delivery")
    })
  )
})

describe("PacedLoad", () => {
  const plan = (port: number, changes: Partial<PacedLoadPlan> = {}): PacedLoadPlan => ({
    port,
    connections: 4,
    seconds: 0.3,
    ratePerSecond: null,
    path: "/a",
    apiKey: "k",
    body: `{"amount":1}`,
    run: "a",
    ...changes
  })
  /** Loads a server that answers with 200; returns the load's record and the keys that the server received. */
  const run = Effect.fnUntraced(function* (changes: Partial<PacedLoadPlan>) {
    const keys: Array<string> = []
    const { port } = yield* serverOf((request, response) => {
      keys.push(String(request.headers["idempotency-key"]))
      request.resume().on("end", () => response.end("{}"))
    })
    const load = yield* PacedLoad.make
    const record = yield* load.run(plan(port, changes))
    const { answeredMicros: answered, sentMicros: sent, wantedMicros: wanted } = record
    assert.isTrue([...wanted].every((at, i) => at <= sent[i]! && sent[i]! < answered[i]!))
    assert.deepStrictEqual(new Set(keys), new Set(Array.from(wanted, (_, i) => keyOf("a", i))))
    assert.strictEqual(keys.length, wanted.length)
    return record
  })

  it.live("in an open loop sends exactly at its rate, and no request early", () =>
    Effect.gen(function* () {
      for (const connections of [1, 16]) {
        const before = nowMicros()
        const { wantedMicros: wanted } = yield* run({ ratePerSecond: 500, connections })
        assert.strictEqual(wanted.length, 150)
        // 2 ms apart, counted from the start; a slow machine is late and never early.
        assert.isTrue(wanted.every((at, i) => at - before >= i * 2000))
      }
    })
  )

  it.live("in a closed loop keeps every connection busy, until the time or the requests are over", () =>
    Effect.gen(function* () {
      const { wantedMicros: wanted } = yield* run({})
      assert.isAbove(wanted.length, 4)
      assert.strictEqual((yield* run({ requestsMax: 10, seconds: 10 })).wantedMicros.length, 10)
    })
  )

  const failing = (name: string, handler: Parameters<typeof serverOf>[0], problem: string) =>
    it.live(name, () =>
      Effect.gen(function* () {
        const { port } = yield* serverOf(handler)
        const load = yield* PacedLoad.make
        assert.include((yield* Effect.flip(load.run(plan(port, { seconds: 30 })))).problem, problem)
      })
    )
  let answers = 0
  failing(
    "fails on a single answer that is not a 200",
    (_, response) => response.writeHead(++answers === 50 ? 503 : 200, { "content-length": 4 }).end("fine"),
    "503 Service Unavailable"
  )
  failing("fails on a lost connection", (request) => request.socket.destroy(), "closed a connection")
})
