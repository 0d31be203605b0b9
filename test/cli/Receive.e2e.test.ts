/** `till trigger` reaches an app behind `till listen`, and everything in between is real. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { triggerEvent } from "../../src/cli/Trigger.ts"
import { Till } from "../../src/client/effect.ts"
import { verifyWebhook, type WebhookEvent } from "../../src/client/index.ts"
import type { TriggerableEventType } from "../../src/domain/TriggerRecipes.ts"
import { KEYS, startTill, type TillProcess, until } from "../support/TillProcess.ts"
import { startListen } from "./ListenProcess.ts"

/** An app that verifies webhooks, keeps the valid ones, and answers with a status set by the test. */
const startApp = Effect.acquireRelease(
  Effect.promise(async () => {
    const app = { status: 200, secret: "", events: [] as Array<WebhookEvent>, errors: [] as Array<unknown>, url: "" }
    const server = http.createServer(async (request, response) => {
      const chunks: Array<Buffer> = []
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
      try {
        const header = request.headers["x-signature"]
        app.events.push(verifyWebhook({ body: Buffer.concat(chunks), header, secret: app.secret }))
      } catch (error) {
        app.errors.push(error)
      }
      response.writeHead(app.status).end()
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    app.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`
    return { app, server }
  }),
  ({ server }) =>
    Effect.sync(() => {
      server.close()
      server.closeAllConnections()
    })
)

const trigger = (server: TillProcess, type: TriggerableEventType): Promise<string> =>
  Effect.runPromise(
    Effect.flatMap(Till, (till) => triggerEvent(type, { till, overrides: [], authorizationHoldSeconds: 604_800 })).pipe(
      Effect.provide(Till.layerFetch({ apiKey: Redacted.make(KEYS.secretTest), baseUrl: server.baseUrl }))
    )
  )

const idsOf = (events: ReadonlyArray<WebhookEvent>): ReadonlyArray<string> => events.map(({ id }) => id)

describe("an app behind till listen", () => {
  it.live("gets the webhooks of triggered events, and repetitions of those that it refused", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      const { app } = yield* startApp
      const listening = yield* startListen(server, "--forward-to", app.url)
      app.secret = listening.secret
      yield* Effect.promise(async () => {
        const ids = [await trigger(server, "charge.refunded"), await trigger(server, "customer.deleted")]
        await until("both have come", () => ids.every((id) => idsOf(app.events).includes(id)))
        const refunded = app.events.find(({ id }) => id === ids[0])!
        const stored = await server.get(`/v1/events/${ids[0]}`)
        assert.deepStrictEqual<unknown>(refunded.data, stored.data)

        app.status = 500
        const missed = await trigger(server, "product.created")
        await until("it was refused", () => listening.lines.includes(`product.created  ${missed}  500`))
        const [endpoint] = (await server.get("/v1/webhook_endpoints")).data
        const deliveries = `/v1/webhook_endpoints/${endpoint.id}/deliveries?limit=1`
        await until("Till has it in writing", async () => (await server.get(deliveries)).data[0].attempt_count === 1)
        // Restarted, Till continues its deliveries.
        await server.kill("SIGKILL")
        await server.start()
        app.status = 200
        await server.post("/v1/test_helpers/clock/advance", { seconds: 3600 })
        const again = `product.created  ${missed}  200  attempt 2`
        await until("it has come again", () => listening.lines.includes(again))
        assert.isEmpty(app.errors)
        assert.deepStrictEqual(await listening.kill("SIGINT"), { code: 0, signal: null })
      })
    })
  )
})
