/** The receivers of `examples/webhooks` accept deliveries of the real Till, with one secret and with two. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import { startTill, until } from "../support/TillProcess.ts"
import { build, isThere, LANGUAGES, nameOf, Receiver } from "./ReceiverProcess.ts"

describe("Till's deliveries", () => {
  it.live(
    `are accepted by the receivers in ${LANGUAGES.map(nameOf).join(", ")}`,
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder()
        const server = yield* startTill()
        const receivers: Array<Receiver> = []
        yield* Effect.addFinalizer(() => Effect.promise(() => Promise.all(receivers.map((receiver) => receiver.end()))))
        yield* Effect.promise(async () => {
          const endpoints: Array<string> = []
          for (const language of LANGUAGES.filter(isThere)) {
            build(language, folder)
            // The receiver needs the secret before it has a port.
            const enabled_events = ["customer.created"]
            const created = await server.post("/v1/webhook_endpoints", { url: "http://127.0.0.1:1/", enabled_events })
            const receiver = new Receiver(language.command(folder), created.secret)
            const url = `http://127.0.0.1:${await receiver.port}/hooks`
            await server.post(`/v1/webhook_endpoints/${created.id}`, { url })
            receivers.push(receiver)
            endpoints.push(created.id)
          }
          // Text outside of ASCII, whose bytes are also signed.
          await server.post("/v1/customers", { name: 'Zoë 日本 💳 "\\/"\u2028' })
          await until("all have processed it", () => receivers.every(({ handled }) => handled.length === 1))
          // Deliveries have two signatures, and the receivers have the older secret.
          for (const id of endpoints) await server.post(`/v1/webhook_endpoints/${id}/roll_secret`, { expires_in: 3600 })
          await server.post("/v1/customers", { name: "After the roll" })
          await until("all have processed it", () => receivers.every(({ handled }) => handled.length === 2))
          const events = (await server.get("/v1/events?type=customer.created")).data.toReversed()
          const lines = events.map(({ id }: { readonly id: string }) => `${id} customer.created`)
          for (const receiver of receivers) assert.deepStrictEqual(receiver.handled, lines)
        })
      }),
    600_000
  )
})
