/** If sign-in is turned off, Till prints no link and gives the reason (semantics dashboard.browser). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { freshDatabase } from "../support/Postgres.ts"
import { startTill, till } from "../support/TillProcess.ts"

const started = (settings: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    return yield* startTill({ variables: { DATABASE_URL: Redacted.value(yield* freshDatabase), ...settings } })
  })

describe("a dashboard without sign-in", () => {
  it.live("is reported at the start, by `till dashboard` and on its pages, if the connection is not private", () =>
    Effect.gen(function* () {
      const server = yield* started({ HOST: "0.0.0.0" })
      yield* Effect.promise(async () => {
        assert.notInclude(server.stdout, "/dashboard/link/")
        assert.include(server.stdout, "Nobody can sign in to the dashboard. Till listens on 0.0.0.0")
        const { code, stderr, stdout } = await till(["dashboard"], server.variables)
        assert.deepStrictEqual([code, stdout], [1, ""])
        assert.match(stderr, /^till: Till listens on 0\.0\.0\.0.*TILL_DASHBOARD_INSECURE=on\.\n$/)
        const page = await fetch(`${server.baseUrl}/dashboard`)
        assert.strictEqual(page.status, 403)
        assert.include(await page.text(), "Till listens on 0.0.0.0")
      })
    })
  )

  it.live("does not exist if it is turned off, and nothing links to it", () =>
    Effect.gen(function* () {
      const server = yield* started({ TILL_DASHBOARD: "off" })
      yield* Effect.promise(async () => {
        assert.notInclude(server.stdout, "dashboard")
        assert.deepStrictEqual(await till(["dashboard"], server.variables), {
          code: 1,
          stdout: "",
          stderr: "till: The dashboard is turned off: TILL_DASHBOARD is off.\n"
        })
        for (const path of ["/dashboard", "/dashboard/sign-in", "/dashboard/test/payments", "/dashboard/link/x"]) {
          assert.strictEqual((await fetch(server.baseUrl + path)).status, 404)
        }
        assert.strictEqual((await server.request("GET", "/v1/payment_intents")).status, 200)
      })
    })
  )
})
