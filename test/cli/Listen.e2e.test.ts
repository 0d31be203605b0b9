/** `till listen` forwards webhooks between the real Till and an app, and leaves nothing behind when it ends. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { createHmac } from "node:crypto"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { verifyWebhook } from "../../src/client/index.ts"
import { startTill, type TillProcess, until } from "../support/TillProcess.ts"
import { spawnListen, startListen } from "./ListenProcess.ts"

interface Received {
  readonly url: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: Buffer
}

/** An app that answers with a status set by the test, and records the webhooks. */
const startApp = Effect.acquireRelease(
  Effect.promise(async () => {
    const app = { received: [] as Array<Received>, status: 200, url: "", listens: "", close: () => {} }
    const server = http.createServer(async (request, response) => {
      const chunks: Array<Buffer> = []
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
      app.received.push({ url: request.url!, headers: request.headers, body: Buffer.concat(chunks) })
      if (app.listens !== "") response.setHeader("x-till-listen", app.listens)
      response.writeHead(app.status, { location: "http://127.0.0.1:1/" }).end("a body that nobody needs")
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    app.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks?from=till`
    app.close = () => {
      server.close()
      server.closeAllConnections()
    }
    return app
  }),
  (app) => Effect.sync(() => app.close())
)

const BODY = '{ "id":"evt_1","type":"charge.refunded", "name": "Zo\\u00eb 💳 1.0" }'

const headersFor = (body: string, secret: string) => {
  const time = Math.floor(Date.now() / 1000)
  const signature = createHmac("sha256", secret).update(`v1=${time}.${body}`).digest("hex")
  return {
    "content-type": "application/json",
    "x-signature": `t=${time},v1=${signature}`,
    "x-webhook-id": "evt_1",
    "x-webhook-attempt": "3",
    "user-agent": "Till-Webhooks/1"
  }
}

const post = (url: string, headers: http.OutgoingHttpHeaders, body: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const request = http.request(url, { method: "POST", headers, agent: false }, (response) => {
      response.resume().once("end", () => resolve(response.statusCode!))
    })
    request.once("error", reject).end(body)
  })

const endpointsOf = async (server: TillProcess) => (await server.get("/v1/webhook_endpoints")).data

describe("till listen", () => {
  it.live("forwards webhooks unchanged, and returns the app's status", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      const app = yield* startApp
      const listening = yield* startListen(
        server,
        "--forward-to",
        app.url,
        "--events",
        "charge.refunded,refund.created"
      )
      yield* Effect.promise(async () => {
        const [endpoint, ...others] = await endpointsOf(server)
        assert.isEmpty(others)
        assert.deepStrictEqual(endpoint.enabled_events, ["charge.refunded", "refund.created"])
        const { secret } = listening
        const headers = headersFor(BODY, secret)
        const deliver = () => post(endpoint.url, headers, BODY)

        for (const status of [200, 204, 500, 302]) {
          app.status = status
          assert.strictEqual(await deliver(), status)
        }
        assert.lengthOf(app.received, 4)
        for (const received of app.received) {
          assert.strictEqual(received.body.toString(), BODY)
          assert.strictEqual(received.url, "/hooks?from=till")
          const { connection, host, ...rest } = received.headers
          assert.deepStrictEqual(rest, { ...headers, "content-length": String(Buffer.byteLength(BODY)) })
          assert.strictEqual(`http://${host}/hooks?from=till`, app.url)
          assert.isString(connection)
          verifyWebhook({ body: received.body, header: received.headers["x-signature"], secret })
        }

        // A request without Till's signature reaches no app, and is not printed.
        assert.strictEqual(await post(endpoint.url, headers, `${BODY} `), 400)
        assert.strictEqual(await post(endpoint.url, {}, BODY), 400)
        assert.strictEqual(await post(endpoint.url, headersFor(BODY, "whsec_wrong"), BODY), 400)
        assert.lengthOf(app.received, 4)

        app.close()
        assert.strictEqual(await deliver(), 502)
        const outcomes = ["200", "204", "500", "302", "ECONNREFUSED"]
        await until("it has said so", () => listening.lines.length === outcomes.length)
        assert.deepStrictEqual(
          listening.lines,
          outcomes.map((outcome) => `charge.refunded  evt_1  ${outcome}  attempt 3`)
        )

        assert.deepStrictEqual(await listening.kill("SIGINT"), { code: 0, signal: null })
        assert.strictEqual(listening.stderr, "")
        assert.isEmpty(await endpointsOf(server))
      })
    })
  )

  it.live("continues with the same secret when its endpoint is deleted, and its requests do not fill the log", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      const app = yield* startApp
      const listening = yield* startListen(server, "--forward-to", app.url, "--events", "customer.created")
      yield* Effect.promise(async () => {
        const { secret } = listening
        await new Promise((resolve) => setTimeout(resolve, 3000))
        const asked = (await server.get("/v1/request_logs?limit=100&method=GET")).data
        assert.isAtMost(asked.length, 3)

        await server.request("DELETE", "/v1/test_helpers/data")
        await until("it has another endpoint", () => listening.stderr !== "")
        assert.match(listening.stderr, /^The webhook endpoint was deleted, and has another one now\./u)
        await server.post("/v1/customers", {})
        await until("the webhook has come", () => app.received.length === 1)
        const [{ body, headers }] = app.received as [Received]
        verifyWebhook({ body, header: headers["x-signature"], secret })
        assert.deepStrictEqual(await listening.kill("SIGTERM"), { code: 0, signal: null })
        assert.isEmpty(await endpointsOf(server))
      })
    })
  )

  it.live("ends with the reason if it cannot create another endpoint", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      const app = yield* startApp
      const other = yield* startApp
      other.listens = "another one"
      const listening = yield* startListen(server, "--forward-to", app.url)
      yield* Effect.promise(async () => {
        const [mine] = await endpointsOf(server)
        const metadata = { ...mine.metadata, till_listen_instance: other.listens }
        await server.post("/v1/webhook_endpoints", { url: other.url, enabled_events: ["*"], metadata })
        await server.request("DELETE", `/v1/webhook_endpoints/${mine.id}`)
        assert.deepStrictEqual(await listening.ended, { code: 1, signal: null })
        assert.strictEqual(listening.stderr, `till: another till listen forwards to ${app.url} already\n`)
      })
    })
  )

  it.live("takes over a killed one's endpoint, outlives Till, and allows no second one", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      const app = yield* startApp
      const mine = yield* Effect.promise(() =>
        server.post("/v1/webhook_endpoints", { url: app.url, enabled_events: ["*"] })
      )
      const endpoint = Effect.promise(async () => {
        const [temporary, other, ...more] = await endpointsOf(server)
        assert.strictEqual(other.id, mine.id)
        assert.isEmpty(more)
        return temporary
      })

      const killed = yield* startListen(server, "--forward-to", app.url)
      const before = yield* endpoint
      yield* Effect.promise(() => killed.kill("SIGKILL"))
      const listening = yield* startListen(server, "--forward-to", app.url, "--events", "charge.refunded")
      const after = yield* endpoint
      assert.strictEqual(after.id, before.id)
      assert.notStrictEqual(after.url, before.url)
      assert.deepStrictEqual(after.enabled_events, ["charge.refunded"])
      assert.strictEqual(listening.secret, killed.secret)

      const second = yield* spawnListen(server, "--forward-to", app.url)
      const end = yield* Effect.promise(() => second.ended)
      assert.deepStrictEqual(end, { code: 1, signal: null })
      assert.strictEqual(second.stderr, `till: another till listen forwards to ${app.url} already\n`)

      yield* Effect.promise(async () => {
        await server.kill("SIGTERM")
        await server.start()
        assert.strictEqual(await post(after.url, headersFor(BODY, listening.secret), BODY), 200)
        await server.kill("SIGTERM")
        assert.deepStrictEqual(await listening.kill("SIGTERM"), { code: 0, signal: null })
        assert.match(
          listening.stderr,
          new RegExp(
            `^The webhook endpoint ${after.id} could not be removed \\(.+\\)\\. The next till listen takes it over\\.\n$`,
            "u"
          )
        )
        await server.start()
      })
      const last = yield* startListen(server, "--forward-to", app.url)
      assert.strictEqual((yield* endpoint).id, after.id)
      yield* Effect.promise(async () => {
        assert.deepStrictEqual(await last.kill("SIGTERM"), { code: 0, signal: null })
        const remaining = await endpointsOf(server)
        assert.deepStrictEqual(
          remaining.map(({ id }: { readonly id: string }) => id),
          [mine.id]
        )
      })
    })
  )
})
