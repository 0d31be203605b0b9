/** `TILL_RATE_LIMIT=on` reaches the requests of the service itself (semantics limits.rate). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { startTill } from "../support/TillProcess.ts"

describe("rate limits of the service", () => {
  it.live("are on if the environment turns them on, and for /v1 alone", () =>
    Effect.flatMap(startTill({ variables: { TILL_RATE_LIMIT: "on" } }), (till) =>
      Effect.promise(async () => {
        const { headers } = await till.request("GET", "/v1/customers")
        assert.strictEqual(headers["x-ratelimit-limit"], "1500")
        assert.match(String(headers["x-ratelimit-remaining"]), /^149\d$/)
        const health = await till.request("GET", "/healthz", { key: null })
        assert.notProperty(health.headers, "x-ratelimit-limit")
      })
    )
  )
})
