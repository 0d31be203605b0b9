/** `till trigger` as typed in a terminal, with a real service. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { KEYS, startTill, till } from "../support/TillProcess.ts"

describe("the command till trigger", () => {
  it.live("prints the event's ID, or one line of error", () =>
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

        const byVariable = await run(["customer.created", ...url], { TILL_API_KEY: KEYS.secretTest })
        assert.match(byVariable.stdout, /^evt_\w{24}\n$/u)
        // TILL_API_KEY takes precedence over the default merchant's key.
        const keys = { TILL_API_KEY: `${KEYS.secretTest}x`, TILL_SK_TEST: KEYS.secretTest }
        assert.match((await run(["customer.created", ...url], keys)).stderr, /^till: .*API key.*\n$/u)
        const byInput = (input: string) =>
          till(["trigger", "customer.created", "--api-key", "-", ...url], keys, { text: input, ends: true })
        const inputs = [KEYS.secretTest, ` ${KEYS.secretTest}\r\nmore\n`]
        for (const { stdout } of await Promise.all(inputs.map(byInput))) assert.match(stdout, /^evt_\w{24}\n$/u)
        // A terminal stays open after the key.
        const terminal = { text: `${KEYS.secretTest}\n`, ends: false }
        const ended = await till(["trigger", "customer.created", "--api-key", "-", ...url], keys, terminal)
        assert.deepInclude(ended, { code: 0, stderr: "" })
        for (const refused of await Promise.all(["", KEYS.publishableTest].map(byInput))) {
          const stderr = "till: the API key must be a secret key of test mode, sk_test_…\n"
          assert.deepStrictEqual(refused, { code: 1, stderr, stdout: "" })
        }

        const help = await run(["--help"])
        assert.match(help.stdout, /charge\.expired moves the clock of the test environment ahead/u)
        const commands = (await till([], {})).stdout
        assert.match(commands, /^ *trigger +Cause an event in test mode and print its ID$/mu)

        const refusals: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
          ["price.deleted cannot be triggered: Till does not emit it", ["price.deleted"]],
          [
            "other users can see a key on the command line: set TILL_API_KEY, or pipe the key to --api-key -",
            ["customer.created", "--api-key", KEYS.secretTest, ...url]
          ],
          [
            "there is no API key: set TILL_API_KEY to sk_test_…, or pipe the key to --api-key -",
            ["customer.created", ...url]
          ]
        ]
        const refused = await Promise.all(refusals.map(([, args]) => run(args)))
        for (const [index, [line]] of refusals.entries()) {
          assert.deepStrictEqual(refused[index], { code: 1, stderr: `till: ${line}\n`, stdout: "" })
        }
      })
    })
  )
})
