/**
 * Health reports and actions across accounts with several processes (semantics dashboard.try_out, dashboard.health).
 * Requests go to the processes in turn, regardless of the account's owner.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { freshDatabase } from "../../support/Postgres.ts"
import { startTill, till, until } from "../../support/TillProcess.ts"
import { formTo, openTab } from "../People.ts"

const plain = (text: string) => text.replaceAll(/<[^>]+>/g, " ").replaceAll(/\s+/g, " ")

describe("the dashboard of two runners", () => {
  it.live("dashboard.wipe: shows the installation's health, triggers an event, and wipes test data", () =>
    Effect.gen(function* () {
      const variables = { DATABASE_URL: Redacted.value(yield* freshDatabase) }
      const server = yield* startTill({ args: ["--runners", "2"], variables })
      yield* Effect.promise(async () => {
        const tab = openTab({ url: server.baseUrl })
        await tab.signIn((await till(["dashboard"], server.variables)).stdout.trim().split(/\s+/).at(-1)!)
        // Unreachable endpoints keep their deliveries pending.
        const url = "http://127.0.0.1:9/w"
        await server.post("/v1/webhook_endpoints", { url, enabled_events: ["customer.created"] })
        const { id } = await server.post("/v1/customers", { email: "payer@example.com" })

        const health = async () => plain((await tab.get("/dashboard/test/developers/installation")).text)
        // Views show durable records a moment later.
        await until("the views show the delivery", async () => (await health()).includes("Pending 1 "))
        const told = await health()
        assert.match(told, /Installation .*healthy This process/)
        assert.match(told, /Till 0\.\d+\.\d+ Node\.js \d+\.\d+\.\d+ Uptime/)
        assert.match(told, /Database State available Response time \d+ ms Postgres \d+(\.\d+)* .*Size \d+\.\d MiB/)
        assert.match(told, /Records [1-9]\d* Size about \d+(\.\d)? (bytes|KiB) Not yet indexed/)
        assert.strictEqual(told.match(/https:\/\/127\.0\.0\.1:\d+ running \d+ 0\.\d+\.\d+/g)?.length, 2)
        const other = await till(["merchants", "create", "Another"], server.variables)
        assert.strictEqual(other.code, 0, other.stderr)
        const withAnother = await health()
        assert.match(withAnother, /Database State available Response time \d+ ms Postgres \d+(\.\d+)* Journal/)

        const trigger = formTo(await tab.get("/dashboard/test/developers/trigger"), "/make")
        const made = await tab.post(trigger.action, { ...trigger.values, type: "charge.captured" })
        assert.include(made.text, "<code>charge.captured</code>")

        const name = /name to confirm: ([^<]+)</.exec((await tab.get("/dashboard/test/developers/wipe")).text)![1]!
        const wipe = formTo(await tab.get("/dashboard/test/developers/wipe"), "/data")
        for (let i = 0; i < 3; i++) {
          const wiped = await tab.post(wipe.action, { ...wipe.values, name })
          assert.include(wiped.text, "Test data wiped.")
        }
        assert.strictEqual((await server.request("GET", `/v1/customers/${id}`)).status, 404)
        const audit = (await tab.get("/dashboard/test/team/audit")).text
        assert.strictEqual(audit.match(/<code class="whole">test_data\.wipe<\/code>/g)?.length, 1)
      })
    })
  )
})
