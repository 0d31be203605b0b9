/** `till listen` takes over an abandoned endpoint for the same app, and does not touch those of others. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { temporaryEndpoint } from "../../src/cli/TemporaryEndpoint.ts"
import { Till } from "../../src/client/effect.ts"
import { start, type MemoryTill } from "../support/MemoryTill.ts"

let server: MemoryTill
beforeAll(async () => {
  server = await start()
})
afterAll(() => server.close())

const APP = "http://localhost:3000/hooks"
const HERE = "http://127.0.0.1:1/"

/** A new merchant's endpoints, and a command that runs as long as its scope. */
const merchant = Effect.gen(function* () {
  const { secretTest: key } = yield* Effect.promise(() => server.merchant())
  const baseUrl = `http://127.0.0.1:${server.port}`
  const till = yield* Effect.provide(Till, Till.layerFetch({ apiKey: Redacted.make(key), baseUrl }))
  const request = (method: string, path: string, body?: unknown) =>
    Effect.map(
      Effect.promise(() => server.request(method, `/v1/webhook_endpoints${path}`, { key, body })),
      (reply) => reply.body
    )
  const left = (url: string, forwardTo: string, instance = "another") => {
    const metadata = { till_listen_forward_to: forwardTo, till_listen_instance: instance }
    return request("POST", "", { url, enabled_events: ["customer.created"], metadata })
  }
  const listen = temporaryEndpoint({
    till,
    forwardTo: new URL(APP),
    address: new URL(HERE),
    instance: "this one",
    enabledEvents: ["*"],
    onLeftBehind: (_id, error) => Effect.die(error)
  })
  const all = Effect.map(request("GET", ""), ({ data }) => data as ReadonlyArray<Record<string, unknown>>)
  return { all, left, listen, request }
})

/** A server on this machine that identifies itself as a till listen, and counts requests. */
const listener = (says: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const asked: Array<string> = []
      const other = http.createServer(({ headers }, response) => {
        asked.push(headers.host!)
        response.setHeader("x-till-listen", says).end()
      })
      await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve))
      return { asked, port: (other.address() as AddressInfo).port, other }
    }),
    ({ other }) => Effect.sync(() => other.close())
  )

describe("the endpoint of till listen", () => {
  it.live(
    "is an abandoned one for the same app, renewed; further abandoned ones are deleted, and all others stay",
    () =>
      Effect.gen(function* () {
        const { all, left, listen, request } = yield* merchant
        const elsewhere = yield* left("http://127.0.0.1:9/", "http://localhost:3001/hooks")
        const mine = yield* request("POST", "", { url: APP, enabled_events: ["*"] })
        const leftovers = [yield* left("http://127.0.0.1:9/", APP), yield* left("http://127.0.0.1:9/", APP)]
        for (const { id } of leftovers) yield* request("POST", `/${id}`, { status: "disabled" })
        yield* Effect.scoped(
          Effect.gen(function* () {
            const { secret } = yield* listen
            const [own, ...others] = yield* all
            assert.deepStrictEqual(
              others.map(({ id }) => id),
              [mine.id, elsewhere.id]
            )
            assert.deepInclude(own, {
              id: leftovers[1].id,
              url: HERE,
              status: "enabled",
              enabled_events: ["*"],
              metadata: { till_listen_forward_to: APP, till_listen_instance: "this one" }
            })
            assert.notInclude([leftovers[0].secret, leftovers[1].secret], Redacted.value(secret))
          })
        )
        assert.deepStrictEqual(
          (yield* all).map(({ id }) => id),
          [mine.id, elsewhere.id]
        )
      })
  )

  it.live("is refused only if another command identifies itself on loopback", () =>
    Effect.gen(function* () {
      const { all, left, listen } = yield* merchant
      const { asked, port } = yield* listener("another")
      for (const [url, instance] of [
        [`http://127.0.0.1:${port}/`, "one more"],
        [`http://localhost:${port}/`, "another"]
      ] as const) {
        yield* left(url, APP, instance)
        yield* Effect.scoped(listen)
        assert.isEmpty(yield* all)
      }
      assert.deepStrictEqual(asked, [`127.0.0.1:${port}`])
      yield* left(`http://127.0.0.1:${port}/`, APP)
      const { message } = yield* Effect.flip(Effect.scoped(listen))
      assert.strictEqual(message, `another till listen forwards to ${APP} already`)
      assert.lengthOf(yield* all, 1)
    })
  )

  it.live("is replaced when it is deleted, and the replacement is removed with the command", () =>
    Effect.gen(function* () {
      const { all, listen, request } = yield* merchant
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { replaced, secret } = yield* listen
          const [first] = yield* all
          yield* request("DELETE", `/${first!["id"]}`)
          assert.notStrictEqual(Redacted.value(yield* replaced), Redacted.value(secret))
          const [second] = yield* all
          assert.notStrictEqual(second!["id"], first!["id"])
          assert.strictEqual(second!["url"], HERE)
        })
      )
      assert.isEmpty(yield* all)
    })
  )

  it.live("need not be removed if it was deleted", () =>
    Effect.gen(function* () {
      const { all, listen, request } = yield* merchant
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* listen
          for (const { id } of yield* all) yield* request("DELETE", `/${id}`)
        })
      )
      assert.deepStrictEqual(yield* all, [])
    })
  )
})
