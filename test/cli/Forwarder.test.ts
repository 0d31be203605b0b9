/**
 * The forwarder of `till listen` at the limits of its connections: no wait is endless, and nothing is sent too early.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Redacted, Scope } from "effect"
import { createHmac } from "node:crypto"
import * as http from "node:http"
import * as net from "node:net"
import { verifyWebhook } from "../../src/client/index.ts"
import { type Forwarded, forwarder, INSTANCE_HEADER } from "../../src/cli/Forwarder.ts"

const SECRET = "whsec_00000000000000000000000000000000"
const APP_SECRET = "whsec_11111111111111111111111111111111"
const BODY = '{"id":"evt_1","type":"customer.created"}'

const signed = (body = BODY) => {
  const time = Math.floor(Date.now() / 1000)
  const signature = createHmac("sha256", SECRET).update(`v1=${time}.${body}`).digest("hex")
  return { "x-signature": `t=${time},v1=${signature}` }
}

/** An app that handles its connections as the test defines. */
const appThat = (behaves: (socket: net.Socket) => void) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const sockets = new Set<net.Socket>()
      const server = net.createServer((socket) => {
        sockets.add(socket)
        socket.on("error", () => undefined)
        behaves(socket)
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const url = new URL(`http://127.0.0.1:${(server.address() as net.AddressInfo).port}/hooks`)
      return { url, server, sockets }
    }),
    ({ server, sockets }) =>
      Effect.sync(() => {
        server.close()
        for (const socket of sockets) socket.destroy()
      })
  )

/** A forwarder to an app, and the lines written so far. */
const forwarding = Effect.fnUntraced(function* (
  behaves: (socket: net.Socket) => void,
  more: { readonly appMillisMax?: number; readonly secret?: Promise<Redacted.Redacted>; readonly scheme?: "https" } = {}
) {
  const { url } = yield* appThat(behaves)
  const forwardTo = new URL(url.href.replace("http", more.scheme ?? "http"))
  const said: Array<Forwarded> = []
  const next = Promise.withResolvers<Forwarded>()
  const onForwarded = (forwarded: Forwarded) => {
    said.push(forwarded)
    next.resolve(forwarded)
  }
  const secret = Promise.resolve(Redacted.make(SECRET))
  const { appMillisMax, secret: known = secret } = more
  const address = yield* forwarder({
    forwardTo,
    instance: "this one",
    secret: () => known,
    appSecret: Redacted.make(APP_SECRET),
    onForwarded,
    ...(appMillisMax !== undefined && { appMillisMax })
  })
  return { address, said, next: next.promise }
})

const post = (url: URL, headers: Record<string, string>, body = BODY) => fetch(url, { method: "POST", headers, body })

/** An app that accepts everything. */
const takes = (socket: net.Socket) =>
  void socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))

const BODY_BYTES_MAX = 8 * 1024 * 1024

describe("the forwarder", () => {
  it.live("gives up on an app that does not answer", () =>
    Effect.gen(function* () {
      const { address, said } = yield* forwarding(() => undefined, { appMillisMax: 50 })
      const { status } = yield* Effect.promise(() => post(address, signed()))
      assert.strictEqual(status, 502)
      assert.deepStrictEqual(
        said.map(({ outcome }) => outcome),
        ["no answer in time"]
      )
    })
  )

  it.live("closes the app's connection when Till has closed its own", () =>
    Effect.gen(function* () {
      const asked = Promise.withResolvers<void>()
      const left = Promise.withResolvers<void>()
      const { address, next } = yield* forwarding((socket) => {
        socket.once("data", () => asked.resolve())
        socket.once("close", () => left.resolve())
      })
      const abort = new AbortController()
      const gone = fetch(address, { method: "POST", headers: signed(), body: BODY, signal: abort.signal })
      yield* Effect.promise(async () => {
        await asked.promise
        abort.abort()
        await gone.catch(() => undefined)
        await left.promise
        assert.strictEqual((await next).outcome, "Till stopped waiting for the app")
      })
    })
  )

  it.live("uses the status of an app whose body never ends, or breaks off", () =>
    Effect.gen(function* () {
      const goesOn = yield* forwarding((socket) => {
        socket.once("data", () => socket.write("HTTP/1.1 201 Created\r\nContent-Length: 1000000\r\n\r\nx"))
      })
      assert.strictEqual((yield* Effect.promise(() => post(goesOn.address, signed()))).status, 201)
      const breaksOff = yield* forwarding((socket) => {
        socket.once("data", () => socket.end("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 9\r\n\r\nx"))
      })
      assert.strictEqual((yield* Effect.promise(() => post(breaksOff.address, signed()))).status, 503)
      const resets = yield* forwarding((socket) => socket.once("data", () => socket.resetAndDestroy()))
      assert.strictEqual((yield* Effect.promise(() => post(resets.address, signed()))).status, 502)
      assert.deepStrictEqual(
        [...goesOn.said, ...breaksOff.said, ...resets.said].map(({ outcome }) => outcome),
        [201, 503, "ECONNRESET"]
      )
    })
  )

  it.live("keeps webhooks waiting until it has the secret", () =>
    Effect.gen(function* () {
      const known = Promise.withResolvers<Redacted.Redacted>()
      const { address, said } = yield* forwarding(takes, { secret: known.promise })
      yield* Effect.promise(async () => {
        const answer = post(address, signed())
        // It answers other requests in that time, and identifies itself.
        const probe = await fetch(address)
        assert.strictEqual(probe.headers.get(INSTANCE_HEADER), "this one")
        assert.isEmpty(said)
        known.resolve(Redacted.make(SECRET))
        assert.strictEqual((await answer).status, 200)
      })
    })
  )

  it.live("forwards headers of the webhook, and none of its connection", () =>
    Effect.gen(function* () {
      let asked = ""
      const { address, said } = yield* forwarding((socket) => {
        socket.on("data", (chunk) => (asked += String(chunk)))
        takes(socket)
      })
      const ofConnection = {
        Connection: "keep-alive",
        "Keep-Alive": "timeout=5",
        "Proxy-Connection": "keep-alive",
        TE: "trailers",
        Trailer: "X-Last",
        Upgrade: "h2c",
        Expect: "100-continue",
        "Transfer-Encoding": "chunked"
      }
      const headers = { ...ofConnection, "X-Signature": signed()["x-signature"] }
      const status = yield* Effect.promise(
        () =>
          new Promise((resolve, reject) => {
            const request = http.request(address, { method: "POST", headers }, (response) => {
              response.resume()
              resolve(response.statusCode)
            })
            request.once("error", reject).end(BODY)
          })
      )
      assert.strictEqual(status, 200)
      const names = [...asked.matchAll(/^([\w-]+): /gmu)].map(([, name]) => name!.toLowerCase())
      assert.sameMembers(names, ["content-length", "x-signature", "host", "connection"])
      // The app verifies the body with a secret of its own, at the time at which Till has signed it.
      const header = /^x-signature: (.*)\r$/imu.exec(asked)![1]!
      assert.strictEqual(header.split(",")[0], headers["X-Signature"].split(",")[0])
      assert.strictEqual(verifyWebhook({ body: BODY, header, secret: APP_SECRET }).id, JSON.parse(BODY).id)
      assert.match(asked, /^connection: close\r$/imu)
      assert.isTrue(asked.endsWith(`\r\n\r\n${BODY}`))
      assert.deepStrictEqual(
        said.map(({ attempt }) => attempt),
        [1]
      )
    })
  )

  it.live("accepts bodies of 8 MiB at most", () =>
    Effect.gen(function* () {
      const { address, said } = yield* forwarding(takes)
      for (const [bytes, expected] of [
        [BODY_BYTES_MAX, 200],
        [BODY_BYTES_MAX + 1, 413]
      ] as const) {
        const body = BODY.padEnd(bytes)
        assert.strictEqual((yield* Effect.promise(() => post(address, signed(body), body))).status, expected)
      }
      assert.strictEqual(said.length, 1)
    })
  )

  it.live("uses TLS for an https URL", () =>
    Effect.gen(function* () {
      const { address, said } = yield* forwarding(takes, { scheme: "https" })
      assert.strictEqual((yield* Effect.promise(() => post(address, signed()))).status, 502)
      assert.match(String(said[0]!.outcome), /^ERR_SSL_|^EPROTO$/u)
    })
  )

  // macOS has no other loopback address to try.
  it.live.skipIf(process.platform === "darwin")("listens on 127.0.0.1 and no other address", () =>
    Effect.gen(function* () {
      const { address } = yield* forwarding(takes)
      const error = yield* Effect.promise(
        () =>
          new Promise((resolve) =>
            net.connect(Number(address.port), "127.0.0.2").once("error", resolve).once("connect", resolve)
          )
      )
      assert.instanceOf(error, Error)
    })
  )

  it.live("closes the connections of running webhooks when its scope closes", () =>
    Effect.gen(function* () {
      const asked = Promise.withResolvers<void>()
      const scope = yield* Scope.make()
      const { address } = yield* Scope.provide(
        forwarding((socket) => socket.once("data", () => asked.resolve())),
        scope
      )
      const answer = post(address, signed()).then(
        ({ status }) => status,
        () => "broken off"
      )
      yield* Effect.promise(() => asked.promise)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(yield* Effect.promise(() => answer), "broken off")
    })
  )

  it.live("stops listening with its scope", () =>
    Effect.gen(function* () {
      const { address } = yield* Effect.scoped(forwarding(() => undefined))
      const refused = yield* Effect.promise(
        () => new Promise((resolve) => http.get(address).once("error", ({ message }) => resolve(message)))
      )
      assert.include(refused, "ECONNREFUSED")
    })
  )
})
