/** The forwarder of `till listen` at the edges of its connections: nothing waits for ever, and nothing comes too early. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { createHmac } from "node:crypto"
import * as http from "node:http"
import * as net from "node:net"
import type { Forwarded } from "../../src/cli/Forwarder.ts"
import { forwarder, INSTANCE_HEADER } from "../../src/cli/Forwarder.ts"

const SECRET = "whsec_00000000000000000000000000000000"
const BODY = '{"id":"evt_1","type":"customer.created"}'

const signed = () => {
  const time = Math.floor(Date.now() / 1000)
  const signature = createHmac("sha256", SECRET).update(`v1=${time}.${BODY}`).digest("hex")
  return { "x-signature": `t=${time},v1=${signature}` }
}

/** An app that does with its connections what the test says. */
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

/** A forwarder to an app, and what it has said so far. */
const forwarding = Effect.fnUntraced(function* (
  behaves: (socket: net.Socket) => void,
  more: { readonly appMillisMax?: number; readonly secret?: Promise<Redacted.Redacted> } = {}
) {
  const { url: forwardTo } = yield* appThat(behaves)
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
    onForwarded,
    ...(appMillisMax !== undefined && { appMillisMax })
  })
  return { address, said, next: next.promise }
})

const post = (url: URL, headers: Record<string, string>) => fetch(url, { method: "POST", headers, body: BODY })

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

  it.live("lets go of the app when Till has gone", () =>
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
        assert.strictEqual((await next).outcome, "Till did not wait for the app")
      })
    })
  )

  it.live("takes the status of an app that then goes on for ever, or breaks off", () =>
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

  it.live("waits with what comes before it knows the secret", () =>
    Effect.gen(function* () {
      const known = Promise.withResolvers<Redacted.Redacted>()
      const { address, said } = yield* forwarding(
        (socket) => socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")),
        { secret: known.promise }
      )
      yield* Effect.promise(async () => {
        const answer = post(address, signed())
        // It takes requests meanwhile, and says who it is.
        const probe = await fetch(address)
        assert.strictEqual(probe.headers.get(INSTANCE_HEADER), "this one")
        assert.isEmpty(said)
        known.resolve(Redacted.make(SECRET))
        assert.strictEqual((await answer).status, 200)
      })
    })
  )

  it.live("stops to listen with its scope", () =>
    Effect.gen(function* () {
      const { address } = yield* Effect.scoped(forwarding(() => undefined))
      const refused = yield* Effect.promise(
        () => new Promise((resolve) => http.get(address).once("error", ({ message }) => resolve(message)))
      )
      assert.include(refused, "ECONNREFUSED")
    })
  )
})
