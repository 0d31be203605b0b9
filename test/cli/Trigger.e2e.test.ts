/** `till trigger` as a person types it, against the real process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { KEYS, startTill, till } from "../support/TillProcess.ts"

describe("the command till trigger", () => {
  it.live("prints the event's ID, and one line about what it cannot do", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      yield* Effect.promise(async () => {
        const url = ["--url", server.baseUrl]
        const run = (args: ReadonlyArray<string>, variables = {}) => till(["trigger", ...args], variables)

        const made = await run(
          ["payment_intent.payment_failed", "--override", "amount=700", "--override", "metadata[order]=7"],
          server.variables
        )
        assert.deepInclude(made, { code: 0, stderr: "" })
        assert.match(made.stdout, /^evt_\w{24}\n$/u)
        const event = await server.get(`/v1/events/${made.stdout.trim()}`)
        assert.strictEqual(event.type, "payment_intent.payment_failed")
        assert.deepInclude(event.data.object, { amount: 700, metadata: { order: "7" } })

        const byFlags = await run(["customer.created", "--api-key", KEYS.secretTest, ...url])
        assert.match(byFlags.stdout, /^evt_\w{24}\n$/u)

        const help = await run(["--help"])
        assert.match(help.stdout, /charge\.expired moves the clock of the test environment ahead/u)
        const commands = (await till([], {})).stdout
        assert.match(commands, /^ *trigger +Make an event happen in test mode, and print its ID$/mu)

        const refusals: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
          ["price.deleted cannot be triggered: nothing emits it so far", ["price.deleted"]],
          [
            "the API key must be a secret one of test mode, sk_test_…",
            ["customer.created", "--api-key", KEYS.secretLive, ...url]
          ],
          ["there is no API key: give one with --api-key sk_test_… or in TILL_SK_TEST", ["customer.created", ...url]]
        ]
        const refused = await Promise.all(refusals.map(([, args]) => run(args)))
        for (const [index, [line]] of refusals.entries()) {
          assert.deepStrictEqual(refused[index], { code: 1, stderr: `till: ${line}\n`, stdout: "" })
        }
      })
    })
  )
})
