/** The commands on objects, events and fixtures, against the real Till. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { COMMAND_NAMES } from "../../src/cli/Summaries.ts"
import { freePort } from "../../src/postgres/embedded/FreePort.ts"
import { KEYS, run, startTill, till, until } from "../support/TillProcess.ts"

describe("the commands of till", () => {
  it.live("create, read and change objects, print events, and create fixtures once", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      const variables = { ...server.variables, TILL_API_KEY: KEYS.secretTest }
      const command = async (...args: ReadonlyArray<string>) => {
        const { code, stderr, stdout } = await till(args, variables)
        assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" }, args.join(" "))
        return stdout
      }
      yield* Effect.promise(async () => {
        const customer = JSON.parse(await command("post", "customers", "email=a@example.com", "metadata[order]=7"))
        assert.deepInclude(customer, { object: "customer", email: "a@example.com", metadata: { order: "7" } })
        assert.deepStrictEqual(JSON.parse(await command("get", "customer", customer.id)), customer)
        await command("post", "customers", "name=B")
        const listed = (await command("list", "customers", "--json")).trimEnd().split("\n")
        assert.deepStrictEqual(JSON.parse(listed[1]!), customer)
        assert.lengthOf(listed, 2)
        assert.include(await command("delete", "customers", customer.id, "--json"), '"deleted":true')
        const refused = await till(["get", "customers", "cus_missing"], variables)
        assert.deepStrictEqual([refused.code, refused.stderr], [1, "till: No Customer found with ID 'cus_missing'.\n"])

        const following = run(["events", "--limit", "1", "--json"], variables)
        await until("it has printed the past event", () => following.stdout().includes("customer.deleted"))
        const file = Path.join(server.folder, "fixtures.json")
        const pay = { amount: 500, currency: "usd", customer: "${jenny:id}", description: "${jenny:email}" }
        const fixtures = [
          { name: "jenny", path: "/v1/customers", params: { email: "jenny@example.com" } },
          { name: "payment", path: "/v1/payment_intents", method: "post", params: pay }
        ]
        fs.writeFileSync(file, JSON.stringify({ fixtures }))
        const created = JSON.parse(await command("fixtures", file, "--json"))
        assert.strictEqual(created.payment.customer, created.jenny.id)
        assert.strictEqual(created.payment.description, "jenny@example.com")
        const again = await command("fixtures", file)
        assert.strictEqual(again, `jenny    ${created.jenny.id}\npayment  ${created.payment.id}\n`)

        await until("it has printed the new events", () => following.stdout().includes("payment_intent.created"))
        following.child.kill("SIGTERM")
        assert.deepStrictEqual(await following.ended, { code: 0, signal: null })
        const types = following
          .stdout()
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line).type)
        assert.deepStrictEqual(types, ["customer.deleted", "customer.created", "payment_intent.created"])
        assert.strictEqual(await command("open", "docs", "--print"), `${server.baseUrl}/docs\n`)
        const opened = JSON.parse(await command("open", "docs", "--print", "--json"))
        assert.deepStrictEqual(opened, { link: `${server.baseUrl}/docs` })
        assert.match(await command("dashboard", "--json"), /^\{"link":"http/u)
        const [merchant] = JSON.parse(await command("merchants", "list", "--json")).merchants
        const named = await command("keys", "create", merchant.id, "--name", "The build server", "--json")
        const [{ id, name }] = JSON.parse(named).keys
        assert.strictEqual(name, "The build server")
        assert.match(
          await command("keys", "list"),
          new RegExp(`^ID +MERCHANT +KEY.*\\n[^]*^${id}.*The build server$`, "mu")
        )
      })
    })
  )

  it.live("report within a second that nothing listens", () =>
    Effect.gen(function* () {
      const port = yield* freePort("127.0.0.1", 0)
      const variables = { PORT: String(port), TILL_API_KEY: KEYS.secretTest }
      yield* Effect.promise(async () => {
        for (const args of [
          ["get", "customers", "cus_1"],
          ["listen", "--forward-to", "http://localhost:1/"],
          ["logs"]
        ]) {
          const { code, stderr } = await till(args, variables)
          assert.strictEqual(code, 1)
          assert.match(stderr, /^till: nothing listens at http:\/\/localhost:\d+\/: start Till with `till serve`, or /u)
        }
      })
    })
  )

  it.live("print completion scripts", () =>
    Effect.promise(async () => {
      const names = COMMAND_NAMES.filter((name) => name !== "completion")
      for (const shell of ["bash", "zsh", "fish"]) {
        const { code, stdout } = await till(["completion", shell], {})
        assert.strictEqual(code, 0)
        for (const word of [...names, "forward-to"]) assert.include(stdout, word, shell)
      }
    })
  )
})
