/**
 * The command line creates, lists, rolls and revokes merchants and keys, with and without a running Till (semantics
 * keys.cli, keys.roll, versions.default, keys.revoke).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import { socketsOf } from "../../src/control/ControlSocket.ts"
import { inParallel } from "../support/HttpExchange.ts"
import { prepareTill, till, type TillProcess } from "../support/TillProcess.ts"

const command = async (server: TillProcess, ...args: ReadonlyArray<string>): Promise<string> => {
  const { code, stderr, stdout } = await till(args, server.variables)
  assert.strictEqual(code, 0, `till ${args.join(" ")}: ${stderr}`)
  return stdout
}

const refused = async (server: TillProcess, message: string, ...args: ReadonlyArray<string>): Promise<void> => {
  const { code, stderr } = await till(args, server.variables)
  assert.strictEqual(code, 1, args.join(" "))
  assert.strictEqual(stderr, `till: ${message}\n`)
}

interface Created {
  readonly merchant: string
  /** Keys by their prefix. */
  readonly keys: Readonly<Record<string, { readonly id: string; readonly secret: string }>>
}

/** Returns the new keys in a command's output. */
const keysIn = (stdout: string): Created["keys"] =>
  Object.fromEntries(
    [...stdout.matchAll(/ (key_\w{24}) +(([sp]k_(?:test|live)_)\w{32})$/gm)].map(([, id, secret, prefix]) => [
      prefix,
      { id, secret }
    ])
  )

const created = (stdout: string): Created => {
  const merchant = /^(mer_\w{24}) {2}2026-03-09 {2}\S+Z {2}Acme Inc\.$/m.exec(stdout)?.[1]
  assert.isDefined(merchant, stdout)
  const keys = keysIn(stdout)
  assert.sameMembers(Object.keys(keys), ["sk_test_", "pk_test_", "sk_live_", "pk_live_"])
  return { merchant: merchant!, keys }
}

const codeFor = async (server: TillProcess, key: string): Promise<string | number> => {
  const { body, status } = await server.request("GET", "/v1/api_keys", { key })
  return body?.error?.code ?? status
}

/** Only the owner may use the socket of a running service. */
const assertSocket = (server: TillProcess) => {
  const [path] = socketsOf(server.folder)
  const stats = fs.statSync(path!)
  assert.isTrue(stats.isSocket())
  assert.strictEqual(stats.mode & 0o777, 0o600)
}

/** Rolls a used key; the change is in force with the next request. */
const assertRolls = async (server: TillProcess, { keys }: Created) => {
  const { id, secret } = keys["sk_test_"]!
  assert.strictEqual(await codeFor(server, secret), 200)
  const graced = keysIn(await command(server, "keys", "roll", id, "--expires-in", "3600"))["sk_test_"]!
  assert.strictEqual(await codeFor(server, secret), 200)
  assert.strictEqual(await codeFor(server, graced.secret), 200)
  const next = keysIn(await command(server, "keys", "roll", id, "--expires-in", "0"))["sk_test_"]!
  assert.strictEqual(await codeFor(server, secret), "api_key_expired")
  assert.strictEqual(await codeFor(server, next.secret), 200)
}

/** Semantics dashboard.settings: a command shows and changes a brand, and pages show the change at once. */
const assertBrands = async (server: TillProcess, merchant: string, url: string) => {
  const brand = (...flags: ReadonlyArray<string>) => command(server, "merchants", "brand", merchant, ...flags)
  const terms = "https://shop.example/terms"
  const set = await brand(
    "--name",
    "Ajax",
    "--accent",
    "#1B7F5E",
    "--terms",
    terms,
    "--support",
    "mailto:a@shop.example"
  )
  assert.match(set, new RegExp(`^merchant  ${merchant}\nname      Ajax\n`))
  for (const line of ["icon      -", "accent    #1b7f5e", `terms     ${terms}`]) assert.include(set, `${line}\n`)
  const page = await (await fetch(url)).text()
  for (const shown of ["Pay Ajax", "accent/1b7f5e.css", terms, "mailto:a@shop.example"]) assert.include(page, shown)
  assert.include(await brand("--clear", "terms", "--clear", "support"), "terms     -\n")
  assert.notInclude(await (await fetch(url)).text(), "shop.example/terms")
}

/** Commands that change nothing and print the reason. */
const assertRefusals = async (server: TillProcess, { keys, merchant }: Created) => {
  const badName = "Enter a merchant name of 1 to 256 characters, without control characters."
  const noMerchant = "There is no merchant mer_x."
  const icon = "https://a.example/i.png"
  const refusals: ReadonlyArray<readonly [message: string, ...args: ReadonlyArray<string>]> = [
    [noMerchant, "merchants", "rename", "mer_x", "Nobody"],
    [badName, "merchants", "create", " "],
    [badName, "merchants", "create", "x".repeat(257)],
    [badName, "merchants", "rename", merchant, "\u001b[31mred"],
    ["The brand's accent must be a colour such as #1b7f5e.", "merchants", "brand", merchant, "--accent", "green"],
    ["--icon and --clear icon exclude each other", "merchants", "brand", merchant, "--icon", icon, "--clear", "icon"],
    ["Name the key by its ID, key_…, which the list of keys shows.", "keys", "roll", keys["sk_test_"]!.secret],
    [noMerchant, "keys", "list", "mer_x"],
    ["There is no API key key_x, or it has been revoked.", "keys", "roll", "key_x"]
  ]
  await inParallel(refusals, 2, ([message, ...args]) => refused(server, message, ...args))
}

/** Revokes a used key, which is refused from the next request on. */
const assertRevokes = async (server: TillProcess, { keys }: Created) => {
  const { id, secret } = keys["sk_live_"]!
  assert.strictEqual(await codeFor(server, secret), 200)
  assert.match(await command(server, "keys", "revoke", id), new RegExp(`^${id} .* revoked\n$`))
  assert.strictEqual(await codeFor(server, secret), "authentication_failed")
  await refused(server, `There is no API key ${id}, or it has been revoked.`, "keys", "revoke", id)
}

describe("administration", () => {
  it.live(
    "of a running service takes effect immediately",
    () =>
      Effect.gen(function* () {
        const server = yield* prepareTill()
        yield* Effect.promise(async () => {
          await server.start()
          assertSocket(server)
          const merchant = created(await command(server, "merchants", "create", "Acme Inc."))
          for (const { secret } of Object.values(merchant.keys)) {
            assert.strictEqual(await codeFor(server, secret), secret.startsWith("sk_") ? 200 : "secret_key_required")
          }
          const listed = await command(server, "merchants", "list")
          assert.match(listed, /^ID +VERSION +CREATED +NAME\nmer_\w+ .*Default merchant\nmer_\w+ .*Acme Inc\.\n$/)
          await command(server, "merchants", "set-version", merchant.merchant, "2026-03-09")
          const key = merchant.keys["sk_test_"]!.secret
          const product = await server.post("/v1/products", { name: "Anvil" }, { key })
          const session = {
            mode: "payment",
            success_url: "https://shop.example/",
            line_items: [{ price_data: { currency: "usd", product: product.id, unit_amount: 100 } }]
          }
          const { url } = await server.post("/v1/checkout_sessions", session, { key })
          assert.include(await (await fetch(url)).text(), "Pay Acme Inc.")
          await command(server, "merchants", "rename", merchant.merchant, "Ajax & Sons")
          assert.include(await (await fetch(url)).text(), "Pay Ajax &amp; Sons")
          // The checks are independent, and each command waits for a process of its own.
          await Promise.all([
            assertBrands(server, merchant.merchant, url),
            assertRolls(server, merchant),
            assertRevokes(server, merchant),
            assertRefusals(server, merchant)
          ])
          const keys = await command(server, "keys", "list", merchant.merchant)
          assert.match(keys, new RegExp(`^${merchant.keys["sk_test_"]!.id} .* expired$`, "m"))
          assert.notMatch(keys, /[sp]k_(?:test|live)_\w/)

          await server.kill("SIGTERM")
          assert.isEmpty(socketsOf(server.folder))
        })
      }),
    600_000
  )

  it.live(
    "of a stopped or killed service is in effect when it starts",
    () =>
      Effect.gen(function* () {
        const server = yield* prepareTill()
        yield* Effect.promise(async () => {
          const merchant = created(await command(server, "merchants", "create", "Acme Inc."))
          await server.start()
          await server.kill("SIGKILL")
          // The socket file of the killed service stays, without a listener.
          assert.strictEqual(socketsOf(server.folder).length, 1)
          const more = await command(
            server,
            "keys",
            "create",
            merchant.merchant,
            "--type",
            "publishable",
            "--mode",
            "live"
          )
          const { id, secret } = keysIn(more)["pk_live_"]!
          await command(server, "keys", "roll", merchant.keys["sk_live_"]!.id, "--expires-in", "0")
          await refused(server, "There is no merchant mer_x.", "keys", "create", "mer_x")
          await server.start()
          assert.strictEqual(await codeFor(server, merchant.keys["sk_test_"]!.secret), 200)
          assert.strictEqual(await codeFor(server, merchant.keys["sk_live_"]!.secret), "api_key_expired")
          assert.strictEqual(await codeFor(server, secret), "secret_key_required")
          assert.include(await command(server, "keys", "list"), id)
          await server.kill("SIGTERM")
          assert.strictEqual((await till(["verify"], server.variables)).code, 0)
        })
      }),
    600_000
  )
})
