/**
 * No header and no body keeps the server busy for longer than a harmless one of the same length: 15 KB in each header
 * that Till or its pages read, and bodies of 1 MiB, over real sockets.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Http from "node:http"
import { asHeader, type Frame, hostileTexts } from "../support/HostileTexts.ts"
import { Random, runSeed } from "../support/Random.ts"
import { countRuns, isWhole } from "../support/Runs.ts"
import type { MemoryTillWithPages } from "../support/MemoryTillWithPages.ts"
import * as Server from "../support/MemoryTillWithPages.ts"
import { basic } from "../support/HttpExchange.ts"

const HEADER_LENGTH = 15_000
const BODY_LENGTH = 1_048_576
/** The allowed time of a request, as a multiple of a harmless one's, and in addition to it. */
const TIMES_MAX = 10
const MORE_MILLIS = 40
const HARMLESS_REQUESTS = 4
/** The number of attempts. A busy machine does not delay all of them, slow code does. */
const ATTEMPTS = 20

const HEADERS = [
  "accept",
  "accept-encoding",
  "accept-language",
  "access-control-request-method",
  "authorization",
  "content-type",
  "cookie",
  "forwarded",
  "host",
  "idempotency-key",
  "if-none-match",
  "origin",
  "sec-fetch-site",
  "user-agent",
  "x-api-version",
  "x-forwarded-for"
]

/** Beginnings and ends of a value by which a careless pattern matches at first and fails at the end. */
const FRAMES: Readonly<Record<string, ReadonlyArray<Frame>>> = {
  authorization: [["Basic ", "!"]],
  cookie: [["till_dashboard_80=", ";"]],
  forwarded: [["for=a", "b"]],
  origin: [["https://", "!"]]
}

let server: MemoryTillWithPages
let agent: Http.Agent
beforeAll(async () => {
  server = await Server.start()
  agent = new Http.Agent({ keepAlive: true, maxSockets: 1 })
})
afterAll(async () => {
  agent.destroy()
  await server.close()
})

interface Sent {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
}

let counter = 0

/** Each POST gets its own key, unless it sets one, so none is a replay. */
const statusOf = ({ body, headers: given, method, path }: Sent): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers = method === "POST" ? { "idempotency-key": `hostile-${++counter}`, ...given } : given
    const request = Http.request(server.url + path, { agent, method, headers }, (response) => {
      response.resume().once("end", () => resolve(response.statusCode!))
    })
    request.once("error", reject).end(body)
  })

/** Returns the time of the fastest of some requests, in milliseconds. Each must get an answer other than a 5xx. */
const millisOf = async (sent: Sent, requests: number, enough = 0): Promise<number> => {
  let fastest = Infinity
  for (let i = 0; i < requests && fastest > enough; i++) {
    const start = performance.now()
    const status = await statusOf(sent)
    fastest = Math.min(fastest, performance.now() - start)
    assert.isBelow(status, 500)
  }
  return fastest
}

const assertAsFast = async (harmless: Sent, hostile: ReadonlyArray<readonly [name: string, sent: Sent]>) => {
  const limit = TIMES_MAX * (await millisOf(harmless, HARMLESS_REQUESTS)) + MORE_MILLIS
  countRuns(hostile.length)
  const slow: Array<string> = []
  for (const [name, sent] of hostile) {
    const millis = await millisOf(sent, ATTEMPTS, limit)
    if (millis > limit) slow.push(`${name} takes ${millis.toFixed(1)} ms, more than ${limit.toFixed(1)} ms`)
  }
  assert.deepStrictEqual(slow, [])
}

/** A run uses one text in five, selected by the seed: LinearTime tries the functions with all of them. */
const some = (frames: ReadonlyArray<Frame>) => {
  const random = new Random(runSeed)
  return hostileTexts(frames).filter(() => isWhole || random.chance(0.2))
}

const PATHS = ["/v1/customers", "/dashboard/sign-in", "/"]

describe("a request with a header that makes careless code slow", () => {
  it.each(HEADERS)("%s", async (name) => {
    const withHeader = (path: string, value: string): Sent => ({
      method: name === "content-type" || name === "idempotency-key" ? "POST" : "GET",
      path,
      headers: { authorization: basic(server.secretTest), [name]: value }
    })
    const texts = some([["", ""], ...(FRAMES[name] ?? [])])
    for (const path of PATHS) {
      const hostile = texts.map(
        ([text, textOf]) => [`${path} ${text}`, withHeader(path, asHeader(textOf(HEADER_LENGTH)))] as const
      )
      await assertAsFast(withHeader(path, "x".repeat(HEADER_LENGTH)), hostile)
    }
  })
})

describe("a request with a body that makes careless code slow", () => {
  const FORM = "application/x-www-form-urlencoded"
  const TARGETS = [
    {
      path: "/v1/customers",
      type: "application/json",
      frames: [
        ["", ""],
        ['{"\\n":"', ""],
        ['{"\\n":"', '"}']
      ]
    },
    {
      path: "/v1/customers",
      type: "application/json",
      frames: [
        ['{"metadata":{"', '":"a"}}'],
        ['{"name":"', '"}']
      ]
    },
    {
      path: "/dashboard/sign-in",
      type: FORM,
      frames: [
        ["", ""],
        ["email=a@", "!"]
      ]
    }
  ] as const

  it.each(TARGETS)("$path $frames", async ({ frames, path, type }) => {
    const withBody = (text: string): Sent => ({
      method: "POST",
      path,
      headers: { authorization: basic(server.secretTest), "content-type": type },
      body: Buffer.from(text).subarray(0, BODY_LENGTH)
    })
    const length = isWhole ? BODY_LENGTH : BODY_LENGTH / 8
    for (const [text, textOf] of some(frames)) {
      const harmless = withBody(`{"name":"${"x".repeat(length)}"}`)
      await assertAsFast(harmless, [[text, withBody(textOf(length))]])
    }
  })
})
