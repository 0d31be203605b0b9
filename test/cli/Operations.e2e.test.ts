/** `till operations` with the real Till and the example gateway (semantics operations.cli, operations.decide). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { formTo, openTab } from "../dashboard/People.ts"
import { exampleGateway, type Mistake } from "../processors/protocol/ExampleGateway.ts"
import { startTill, till, type TillProcess, until } from "../support/TillProcess.ts"

const OWNER = { email: "owner@example.com", password: "correct horse battery" }

/** Another amount in the answers to the call and to the first look; then the right one. */
const CONTRADICTS: ReadonlyArray<Mistake> = [
  [
    `"operation.execute": ({ operation }) => execute(operation)`,
    `"operation.execute": ({ operation }) => ({ ...execute(operation), amount: operation.amount + 1 })`
  ],
  [
    `"operation.retrieve": ({ id }) => operations.get(id)?.state ?? { id, status: "never_seen" }`,
    `"operation.retrieve": ({ id }) => {
      const { state } = operations.get(id)
      const seen = (globalThis.seen ??= new Set())
      return seen.size === seen.add(id).size ? state : { ...state, amount: state.amount + 1 }
    }`
  ]
]

interface Shown {
  readonly id: string
  readonly merchant_id: string
  readonly status: string
  readonly payment_intent: string
  readonly reference: string | null
  readonly evidence: ReadonlyArray<{ readonly by: string; readonly outcome: string }>
}

/** Gives the first owner an email and a password. */
const setCredentials = async (server: TillProcess) => {
  const { stdout } = await till(["dashboard", "--json"], server.variables)
  const { link } = JSON.parse(stdout) as { readonly link: string }
  const tab = openTab({ url: new URL(link).origin })
  await tab.signIn(link)
  const { action, values } = formTo(await tab.get("/dashboard/test/account"), "/credentials")
  assert.strictEqual((await tab.post(action, { ...values, ...OWNER })).status, 200)
}

describe("operations.cli: the operations of an installation", () => {
  it.live("are listed, shown, asked about and decided about, and no output has the password", () =>
    Effect.gen(function* () {
      const gateway = yield* exampleGateway(...CONTRADICTS)
      const server = yield* startTill()
      const printed: Array<string> = []
      const command = async (input: string | undefined, ...args: ReadonlyArray<string>) => {
        const text = input === undefined ? undefined : { text: input, ends: true }
        const ended = await till(["operations", ...args], server.variables, text)
        printed.push(ended.stdout, ended.stderr)
        return ended
      }
      const shown = async (input: string | undefined, ...args: ReadonlyArray<string>) => {
        const { code, stdout, stderr } = await command(input, ...args, "--json")
        assert.strictEqual(code, 0, stderr)
        return (JSON.parse(stdout) as { readonly operations: ReadonlyArray<Shown> }).operations
      }
      const refused = async (message: string, input: string | undefined, ...args: ReadonlyArray<string>) => {
        const { code, stderr } = await command(input, ...args)
        assert.strictEqual(code, 1, args.join(" "))
        assert.include(stderr, message)
      }
      yield* Effect.promise(async () => {
        await setCredentials(server)
        const credentials = JSON.stringify(OWNER)
        assert.deepStrictEqual(await shown(undefined, "list"), [])
        const { stdout } = await till(["merchants", "list", "--json"], server.variables)
        const merchant = (JSON.parse(stdout) as { readonly merchants: ReadonlyArray<{ readonly id: string }> })
          .merchants[0]!.id
        const secret = JSON.stringify({ secret: Redacted.value(gateway.secret) })
        const place = [merchant, "--mode", "test", "--kind", "http", "--url", gateway.url, "--credentials", "-"]
        const added = await till(["processors", "add", ...place], server.variables, { text: secret, ends: true })
        assert.strictEqual(added.code, 0, added.stderr)
        const payment_method_data = { type: "card", token: "tok_approve" }
        const pay = () =>
          server.post("/v1/payment_intents", { amount: 2000, currency: "usd", confirm: true, payment_method_data })
        const [first, second] = [await pay(), await pay()]
        assert.strictEqual(first.status, "processing")

        const isLookedAt = async () =>
          (await shown(undefined, "list", "--status", "decide")).filter(({ evidence }) => evidence.length === 2)
            .length === 2
        await until("both operations were looked at", isLookedAt)
        const listed = await shown(undefined, "list")
        assert.deepStrictEqual(
          listed.map(({ payment_intent, status }) => [payment_intent, status]),
          [
            [second.id, "decide"],
            [first.id, "decide"]
          ]
        )
        assert.lengthOf(await shown(undefined, "list", merchant, "--mode", "live"), 0)
        assert.lengthOf(await shown(undefined, "list", "--status", "final"), 0)
        const one = await command(undefined, "list", "--limit", "1")
        assert.match(one.stdout, new RegExp(`^ID +MERCHANT.*\\n${listed[0]!.id} +${merchant} +test +authorize +decide`))
        assert.include(one.stderr, "Only the newest 1 are shown")
        await refused("There is no merchant mer_x.", undefined, "list", "mer_x")
        await refused("must be from 1 to 1000", undefined, "list", "--limit", "0")
        await refused("There is no operation op_x.", undefined, "show", "op_x")
        await refused("An operation is named by its id", undefined, "check", first.id)

        const [checked, undecided] = listed as [Shown, Shown]
        const facts = await command(undefined, "show", undecided.id)
        assert.match(facts.stdout, /^outcome +mismatch - The amount is 2001 instead of 2000\.$/mu)
        assert.match(facts.stdout, /^heard +\d{4}-\S+ {2}mismatch {2}by answer/mu)
        const [asked] = await shown(undefined, "check", checked.id)
        assert.deepInclude(asked, { status: "final", reference: `gw_${second.id}` })
        assert.strictEqual(asked!.evidence.at(-1)!.by, "look")
        await refused(`${checked.id} is final: there is nothing to ask.`, undefined, "check", checked.id)

        const decision = ["decide", undecided.id, "--reason", "Seen in the gateway's records"]
        const happened = [...decision, "--outcome", "happened"]
        await refused("--outcome happened needs the processor's reference", credentials, ...happened)
        const missed = [...decision, "--outcome", "did-not-happen"]
        await refused("--reference is only for", credentials, ...missed, "--reference", "gw_1")
        await refused("the credentials must be JSON", "correct horse battery", ...missed)
        const wrong = JSON.stringify({ ...OWNER, password: "wrong" })
        await refused("This is not the email and password of anybody", wrong, ...missed)
        const short = ["decide", undecided.id, "--reason", "short", "--outcome", "did-not-happen"]
        await refused("The reason must be a line of 10 to 500 characters.", credentials, ...short)
        assert.strictEqual((await shown(undefined, "show", undecided.id))[0]!.status, "decide")

        const file = Path.join(server.folder, "owner.json")
        fs.writeFileSync(file, credentials, { mode: 0o644 })
        await refused("other users can read the file of --credentials", undefined, ...missed, "--credentials", file)
        fs.chmodSync(file, 0o600)
        const reference = ["--reference", "gw_6735", "--credentials", file]
        const [decided] = await shown(undefined, ...happened, ...reference)
        assert.deepInclude(decided, { status: "final", reference: "gw_6735" })
        // The gateway may have confirmed it already.
        assert.deepInclude(
          decided!.evidence.find(({ by }) => by === "operator"),
          { outcome: "approved" }
        )
        const again = `${undecided.id} is final: there is nothing to decide.`
        await refused(again, credentials, ...missed)
        assert.strictEqual((await server.get(`/v1/payment_intents/${first.id}`)).status, "succeeded")
        assert.lengthOf(await shown(undefined, "list"), 0)
      })
      yield* Effect.promise(() => server.kill("SIGTERM"))
      // The database ends a moment after the service.
      const isRefused = async (...command: ReadonlyArray<string>) =>
        (await till(command, server.variables)).stderr.includes("till: Till is not running here.")
      yield* Effect.promise(() => until("the command needs a running service", () => isRefused("operations", "list")))
      assert.isTrue(yield* Effect.promise(() => isRefused("processors", "check", "prc_1")))
      const everything = [...printed, server.stdout, server.stderr].join("\n")
      assert.notInclude(everything, OWNER.password)
    })
  )
})
