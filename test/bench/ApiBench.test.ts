import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import type { Scenario } from "../../bench/scenarios/Scenario.ts"

const create = (name: string, expect: string): Scenario => ({
  name,
  title: name,
  connections: 2,
  writes: false,
  expect,
  subjects: (["echo", "emulate"] as const).map((contender) => ({
    title: contender,
    contender,
    requests: ({ apiKeys }) =>
      Effect.succeed({ method: "POST", paths: ["/v1/payment_intents"], apiKeys, body: `{"amount":1}` })
  }))
})

describe("ApiBench", () => {
  it.live("goes on where a scenario fails, and where the fake is not to be had", () =>
    Effect.gen(function* () {
      const cache = yield* temporaryFolder()
      const before = process.env
      process.env = { ...before }
      yield* Effect.addFinalizer(() => Effect.sync(() => void (process.env = before)))
      // The fake is not installed, and npm is not on the path.
      Object.assign(process.env, { PATH: cache, XDG_CACHE_HOME: cache })
      // The fake's folder is read from the environment when its module is loaded, which other files may have done.
      vi.resetModules()
      const ApiBench = yield* Effect.promise(() => import("../../bench/ApiBench.ts"))
      const results = yield* ApiBench.run({
        pace: { firstWarmUpSeconds: 0.1, warmUpSeconds: 0.1, secondsPerRound: 0.1, rounds: 1 },
        scenarios: [create("wrong", "no echo says this"), create("right", `"object":"payment_intent"`)],
        pacedPace: null,
        takesPart: () => true,
        objects: 0,
        nodeOptions: []
      })
      assert.deepStrictEqual(
        results.scenarios.map(({ name, subjects }) => [name, subjects.map(({ title }) => title)]),
        [["right", ["echo"]]]
      )
      const [wrong, ...others] = results.failures
      assert.include(results.leftOut[0], "emulate 0.12.2 cannot be installed")
      assert.include(wrong, "wrong, echo: Expected a 200 with no echo says this")
      assert.deepStrictEqual(others, [])
    })
  )
})
