/**
 * A client that ends its side of the connection still gets its answers (semantics requests.half_closed), then the
 * connection ends. For either parser, the API and pages, requests sent ahead, and every process.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { connect, type Socket } from "node:net"
import { HttpServerResponse } from "effect/http"
import { route } from "../../src/html/Routing.ts"
import type { Keys } from "../support/fixtures/Merchants.ts"
import { type MemoryFleet, start } from "../support/MemoryFleet.ts"
import { basic } from "../support/HttpExchange.ts"

const PAUSE_MILLIS = 30

let begun = 0
let interrupted = 0
/** A slow page, and one that goes on as long as its client is connected. */
const slow = route("GET", "/slow", () =>
  Effect.as(Effect.sleep(PAUSE_MILLIS), HttpServerResponse.text("slow page", { status: 200 }))
)
const hanging = route("GET", "/hanging", () =>
  Effect.andThen(
    Effect.sync(() => begun++),
    Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted++))
  )
)

let runners: MemoryFleet
let keys: Keys
beforeAll(async () => {
  runners = await start(2, { pages: Layer.merge(slow, hanging) })
  keys = await runners.merchant()
  await runners.move("till", 0)
  await runners.move(`${keys.merchantId}:test`, 1)
})
afterAll(() => runners.close())

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}

const OWNER = 1
const OTHER = 0

const open = (runner: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port: runners.all[runner]!.port, host: "127.0.0.1", allowHalfOpen: true })
    socket.once("connect", () => resolve(socket)).on("error", reject)
  })

/** Returns all bytes that the server sends until it ends the connection. */
const received = (socket: Socket): Promise<string> =>
  new Promise((resolve) => {
    let text = ""
    socket.on("data", (chunk) => (text += chunk.toString("latin1"))).once("end", () => resolve(text))
  })

/** Sends the bytes and the end of the connection, in one segment or in two. */
const halfClosed = async (runner: number, bytes: string, later: boolean = false): Promise<string> => {
  const socket = await open(runner)
  const answer = received(socket)
  if (later) {
    socket.write(bytes)
    await new Promise((resolve) => setTimeout(resolve, 1))
    socket.end()
  } else socket.end(bytes)
  return answer
}

const request = (method: string, path: string, lines: ReadonlyArray<string> = [], body = "") =>
  [
    `${method} ${path} HTTP/1.1`,
    "Host: a",
    ...lines,
    ...(body === "" ? [] : [`Content-Length: ${body.length}`]),
    "",
    body
  ].join("\r\n")

let counter = 0
const payment = (lines: ReadonlyArray<string>) =>
  request(
    "POST",
    "/v1/payment_intents",
    [
      `Authorization: ${basic(keys.secretTest)}`,
      "Content-Type: application/json",
      `Idempotency-Key: half-${++counter}`,
      ...lines
    ],
    '{"amount":1000,"currency":"usd","payment_method":"pm_card_visa","confirm":true}'
  )
const list = (lines: ReadonlyArray<string>) =>
  request("GET", "/v1/payment_intents?limit=1", [`Authorization: ${basic(keys.secretTest)}`, ...lines])

const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))

describe("a client that has ended its side", () => {
  for (const [parser, lines] of [
    ["the parser for plain requests", []],
    ["node's parser", ["TE: trailers"]]
  ] as const) {
    for (const [where, runner] of [
      ["at its account's process", OWNER],
      ["at another process", OTHER]
    ] as const) {
      it(`has its payment made and is answered, over ${parser}, ${where}`, async () => {
        for (const later of [false, true]) {
          const answer = await halfClosed(runner, payment(lines), later)
          assert.deepStrictEqual(statuses(answer), [200], answer)
          assert.include(answer, '"status":"succeeded"')
        }
        assert.deepStrictEqual(statuses(await halfClosed(runner, list(lines))), [200])
      })

      it(`gets answers to all requests sent ahead, over ${parser}, ${where}`, async () => {
        for (const later of [false, true]) {
          const answer = await halfClosed(
            runner,
            payment(lines) + list(lines) + payment(lines) + list(lines).repeat(10),
            later
          )
          assert.deepStrictEqual(statuses(answer), Array<number>(13).fill(200))
        }
      })
    }
  }

  it("gets answers to plain requests, one that is not plain, and one that is incomplete", async () => {
    const answer = await halfClosed(
      OWNER,
      list([]) + list([]) + list(["TE: trailers"]) + list([]) + list([]).slice(0, -2),
      true
    )
    assert.deepStrictEqual(statuses(answer), [200, 200, 200, 200, 400])
    assert.deepStrictEqual(statuses(await halfClosed(OWNER, list([]) + list([]).slice(0, -2))), [200, 400])
  })

  it("gets pages, quick and slow ones", async () => {
    for (const later of [false, true]) {
      assert.deepStrictEqual(statuses(await halfClosed(OTHER, request("GET", "/healthz"), later)), [200])
      assert.deepStrictEqual(statuses(await halfClosed(OTHER, request("GET", "/docs"), later)), [200])
      const answer = await halfClosed(OTHER, request("GET", "/slow").repeat(3), later)
      assert.deepStrictEqual(statuses(answer), [200, 200, 200])
      assert.isTrue(answer.includes("slow page"))
    }
  })

  it("and has sent no request is not waited for", async () => {
    assert.strictEqual(await halfClosed(OWNER, ""), "")
    assert.deepStrictEqual(statuses(await halfClosed(OWNER, "GET /v1/cust", true)), [400])
  })

  it("frees its resources if it is really gone", async () => {
    const socket = await open(OTHER)
    socket.write(request("GET", "/hanging"))
    await until(() => begun === 1)
    socket.resetAndDestroy()
    await until(() => interrupted === 1)
    assert.deepStrictEqual([begun, interrupted], [1, 1])
  })
})
