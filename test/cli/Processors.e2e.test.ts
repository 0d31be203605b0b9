/**
 * `till processor check` and `till processors`, with the example gateway and the real Till (semantics gateways.check,
 * processors.cli, processors.object, processors.check, processors.credentials).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { exampleGateway, type ExampleGateway } from "../processors/protocol/ExampleGateway.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import { startTill, till } from "../support/TillProcess.ts"

/** Writes a secret into a file that only its owner can read. */
const secretFile = (folder: string, text: string, mode = 0o600): string => {
  const file = Path.join(folder, `secret-${mode.toString(8)}-${fs.readdirSync(folder).length}`)
  fs.writeFileSync(file, text, { mode })
  fs.chmodSync(file, mode)
  return file
}

const check = (gateway: ExampleGateway, file: string, ...more: ReadonlyArray<string>) =>
  Effect.promise(() => till(["processor", "check", gateway.url, "--secret-file", file, ...more], {}))

describe("gateways.check: the check of a gateway", () => {
  it.live("exits with 0 and a line for each rule if all are kept", () =>
    Effect.gen(function* () {
      const gateway = yield* exampleGateway()
      const folder = yield* temporaryFolder()
      const file = secretFile(folder, `${Redacted.value(gateway.secret)}\n`)
      const { code, stderr, stdout } = yield* check(gateway, file, "--restart", "true")
      assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" })
      const lines = stdout.trimEnd().split("\n")
      assert.lengthOf(lines, 28)
      assert.match(lines[0]!, /^signature\.answer +kept$/u)
      assert.strictEqual(lines.at(-1), "27 rules kept, 0 broken, 0 not tried.")
    })
  )

  it.live("exits with 1 and names the broken rule, also as JSON", () =>
    Effect.gen(function* () {
      const gateway = yield* exampleGateway([`if (operation.amount > payment.held)`, `if (false)`])
      const folder = yield* temporaryFolder()
      const file = secretFile(folder, Redacted.value(gateway.secret))
      const lines = yield* check(gateway, file)
      assert.strictEqual(lines.code, 1)
      assert.match(lines.stdout, /^capture\.too_much +BROKEN: A capture got the status approved instead of 400/mu)
      assert.match(lines.stdout, /^ +The rule: More than the held amount cannot be captured\.$/mu)
      const json = yield* check(gateway, file, "--json")
      assert.strictEqual(json.code, 1)
      const { passed, rules } = JSON.parse(json.stdout) as {
        readonly passed: boolean
        readonly rules: ReadonlyArray<{ readonly rule: string; readonly result: string }>
      }
      assert.isFalse(passed)
      const named = (result: string) => rules.filter((rule) => rule.result === result).map(({ rule }) => rule)
      assert.deepStrictEqual(named("broken"), ["capture.too_much"])
      assert.deepStrictEqual(named("not_tried"), ["idempotent.after_restart"])
    })
  )

  it.live("exits with 1 if the gateway has no test tokens, as in live mode", () =>
    Effect.gen(function* () {
      const gateway = yield* exampleGateway([`const livemode = GATEWAY_LIVEMODE === "true"`, `const livemode = true`])
      const folder = yield* temporaryFolder()
      const { code, stdout } = yield* check(gateway, secretFile(folder, Redacted.value(gateway.secret)))
      assert.strictEqual(code, 1)
      assert.match(stdout, /^authorize\.approve +not tried: The gateway has no test tokens\.$/mu)
    })
  )

  it.live("refuses a secret that others can read, that is none, or a URL that is not allowed", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder()
      const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`
      for (const [url, file, message] of [
        ["http://localhost:1", secretFile(folder, secret, 0o640), "other users can read the file of --secret-file"],
        ["http://localhost:1", secretFile(folder, "whsec_short"), "the secret must be whsec_ and the base64"],
        ["http://localhost:1", Path.join(folder, "missing"), "the file of --secret-file cannot be read (ENOENT)"],
        ["http://gateway.example", secretFile(folder, secret), "the URL must begin with https://"]
      ] as const) {
        const { code, stderr, stdout } = yield* Effect.promise(() =>
          till(["processor", "check", url, "--secret-file", file], {})
        )
        assert.deepStrictEqual([code, stdout], [1, ""])
        assert.include(stderr, `till: ${message}`)
        assert.notInclude(stderr, secret)
      }
    })
  )
})

interface Shown {
  readonly id: string
  readonly status: string
  readonly livemode: boolean
  readonly url: string
  readonly profile: { readonly name: string } | null
}

describe("processors.cli: the processors of an installation", () => {
  it.live("are added after a check, listed, changed, paused, resumed and retired, and no output has a secret", () =>
    Effect.gen(function* () {
      const gateway = yield* exampleGateway()
      const other = yield* exampleGateway()
      const server = yield* startTill()
      const printed: Array<string> = []
      const command = async (input: string | undefined, ...args: ReadonlyArray<string>) => {
        const ended = await till(
          ["processors", ...args],
          server.variables,
          input === undefined ? undefined : { text: input, ends: true }
        )
        printed.push(ended.stdout, ended.stderr)
        return ended
      }
      const shown = async (input: string | undefined, ...args: ReadonlyArray<string>) => {
        const { code, stderr, stdout } = await command(input, ...args, "--json")
        assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" }, args.join(" "))
        return (JSON.parse(stdout) as { readonly processors: ReadonlyArray<Shown> }).processors
      }
      const refused = async (message: string, input: string | undefined, ...args: ReadonlyArray<string>) => {
        const { code, stderr } = await command(input, ...args)
        assert.strictEqual(code, 1, args.join(" "))
        assert.include(stderr, `till: ${message}`)
      }
      const credentialsOf = ({ secret }: ExampleGateway) => JSON.stringify({ secret: Redacted.value(secret) })
      yield* Effect.promise(async () => {
        const { stdout } = await till(["merchants", "list", "--json"], server.variables)
        const merchant = (JSON.parse(stdout) as { readonly merchants: ReadonlyArray<{ readonly id: string }> })
          .merchants[0]!.id
        const adding = (url: string, mode = "test", of = merchant) =>
          ["add", of, "--mode", mode, "--kind", "http", "--url", url, "--credentials", "-"] as const
        const credentials = credentialsOf(gateway)

        await refused("The gateway is in test mode: it cannot be", credentials, ...adding(gateway.url, "live"))
        await refused("The gateway failed the check: An answer with", credentialsOf(other), ...adding(gateway.url))
        await refused("The gateway failed the check: No connection", credentials, ...adding("http://localhost:1"))
        await refused("The URL must begin with https://", credentials, ...adding("http://gateway.example"))
        await refused("There is no merchant mer_x.", credentials, ...adding(gateway.url, "test", "mer_x"))
        await refused("the credentials must be JSON", Redacted.value(gateway.secret), ...adding(gateway.url))
        await refused("The secret must be whsec_", '{"secret": "whsec_short"}', ...adding(gateway.url))
        assert.deepStrictEqual(await shown(undefined, "list"), [])

        const added = (await shown(credentials, ...adding(gateway.url)))[0]!
        assert.deepInclude(added, { status: "active", livemode: false, url: gateway.url })
        assert.strictEqual(added.profile?.name, "Example gateway")
        await refused(`${merchant}:test has the processor ${added.id}`, credentials, ...adding(gateway.url))
        assert.deepStrictEqual(await shown(undefined, "show", added.id), [added])
        assert.deepStrictEqual(await shown(undefined, "check", added.id), [added])
        const { stdout: table } = await command(undefined, "list", merchant)
        assert.match(table, new RegExp(`^ID +MERCHANT +MODE.*\\n${added.id} +${merchant} +test +http +active`, "u"))

        const file = Path.join(server.folder, "credentials")
        fs.writeFileSync(file, credentialsOf(other), { mode: 0o600 })
        await refused("The gateway failed the check", undefined, "update", added.id, "--credentials", file)
        const [moved] = await shown(undefined, "update", added.id, "--credentials", file, "--url", other.url)
        assert.strictEqual(moved!.url, other.url)
        await refused("there is nothing to change", undefined, "update", added.id)

        for (const [step, status] of [
          ["pause", "paused"],
          ["resume", "active"],
          ["retire", "retiring"]
        ] as const) {
          assert.strictEqual((await shown(undefined, step, added.id))[0]!.status, status)
        }
        await refused(`${added.id} is retiring: it cannot be paused.`, undefined, "pause", added.id)
        assert.lengthOf(await shown(credentials, ...adding(gateway.url)), 1)
        assert.lengthOf(await shown(undefined, "list", merchant), 2)
        await refused("There is no processor prc_x.", undefined, "show", "prc_x")
      })
      const everything = [...printed, server.stdout, server.stderr].join("\n")
      for (const { secret } of [gateway, other]) assert.notInclude(everything, Redacted.value(secret).slice(6))
    })
  )
})
