/**
 * The memory of a process after its answers (SECURITY.md): what V8 still holds, by a heap snapshot, and all that a core
 * file would contain. A text that nothing holds stays in memory until something else is written there, so that only
 * a text that was never there for long is absent from the second.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, type Scope } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { exampleGateway } from "../processors/protocol/ExampleGateway.ts"
import { basic } from "../support/HttpExchange.ts"
import { countInMemory, stringsOf } from "../support/ProcessMemory.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import { prepareTill, till, type TillProcess, until } from "../support/TillProcess.ts"

/** An American Express card that is none of the test cards: those are in the code. Its code has four digits. */
const CARD = { number: "371449635312309", exp_month: 12, exp_year: 2040, cvc: "7391" }
const PAYMENTS = 40
/** Requests that use V8's young generation several times over. */
const FURTHER = 3000
const AT_ONCE = 50
/** A text that is there, so that the search could find another. */
const PRESENT = "payment_intent"

interface Shop {
  readonly server: TillProcess
  readonly keys: { readonly test: string; readonly live: string; readonly publishable: string }
  /** The texts that may not be in memory. */
  readonly secrets: ReadonlyArray<string>
  readonly processorSecret: string
  /** Returns the strings that V8 holds. */
  readonly strings: () => Promise<ReadonlyArray<string>>
}

const command = async ({ variables }: TillProcess, args: ReadonlyArray<string>, text = ""): Promise<string> => {
  const { code, stderr, stdout } = await till(args, { ...variables, NODE_OPTIONS: "" }, { text, ends: true })
  assert.strictEqual(code, 0, stderr)
  return stdout
}

const snapshotOf = async (server: TillProcess, folder: string): Promise<ReadonlyArray<string>> => {
  server.signal("SIGUSR2")
  await until("the snapshot begins", () => fs.readdirSync(folder).length > 0)
  // It is written before the process goes on.
  await until("the process answers", () => server.isReady())
  const [file] = fs.readdirSync(folder)
  const strings = stringsOf(Path.join(folder, file!))
  fs.rmSync(Path.join(folder, file!))
  return strings
}

/** A merchant with a gateway in test mode and the simulator in live mode. */
const shop: Effect.Effect<Shop, never, Scope.Scope> = Effect.gen(function* () {
  const gateway = yield* exampleGateway()
  const folder = yield* temporaryFolder()
  const server = yield* prepareTill({
    withoutKeys: true,
    variables: {
      TILL_LIVE_PROCESSOR: "simulator",
      // A snapshot takes long, and nothing else runs.
      TILL_HANG_SECONDS: "0",
      NODE_OPTIONS: `--heapsnapshot-signal=SIGUSR2 --diagnostic-dir=${folder}`
    }
  })
  return yield* Effect.promise(async () => {
    await server.start()
    const created = await command(server, ["merchants", "create", "Shop", "--json"])
    const keyOf = (prefix: string) => new RegExp(`${prefix}_\\w{32}`, "u").exec(created)![0]
    const keys = { test: keyOf("sk_test"), live: keyOf("sk_live"), publishable: keyOf("pk_live") }
    const merchant = /mer_\w+/u.exec(created)![0]
    const secret = Redacted.value(gateway.secret)
    const options = ["--mode", "test", "--kind", "http", "--url", gateway.url, "--credentials", "-"]
    await command(server, ["processors", "add", merchant, ...options], JSON.stringify({ secret }))
    const encoded = Object.values(keys).map((key) => basic(key).slice("Basic ".length))
    // A code alone is a number like many others.
    const secrets = [
      CARD.number,
      `"cvc":"${CARD.cvc}"`,
      secret,
      secret.slice("whsec_".length),
      ...Object.values(keys),
      ...encoded
    ]
    return { server, keys, secrets, processorSecret: secret, strings: () => snapshotOf(server, folder) }
  })
})

/** Payments by the gateway and with card numbers, which are declined: the simulator does not know this card. */
const pay = async ({ keys, server }: Shop): Promise<void> => {
  const terms = { amount: 1000, currency: "usd", confirm: true }
  let last = ""
  for (let i = 0; i < PAYMENTS; i++) {
    const token = { payment_method_data: { type: "card", token: "tok_approve" } }
    const paid = await server.request("POST", "/v1/payment_intents", { key: keys.test, body: { ...terms, ...token } })
    assert.strictEqual(paid.body.status, "succeeded", paid.text)
    const card = { type: "card", card: CARD }
    const body = { ...terms, payment_method_data: card }
    const carded = await server.request("POST", "/v1/payment_intents", { key: keys.live, body })
    assert.include([200, 402], carded.status, carded.text)
    const saved = await server.request("POST", "/v1/payment_methods", { key: keys.publishable, body: card })
    assert.strictEqual(saved.body.card.last4, CARD.number.slice(-4), saved.text)
    last = String(saved.headers["x-request-id"])
  }
  // The log of requests has a request in memory until its next batch, for half a second.
  const logged = () => server.get("/v1/request_logs?limit=100", { key: keys.live })
  await until("the last request is logged", async () => JSON.stringify(await logged()).includes(last))
}

const assertNone = (strings: ReadonlyArray<string>, { secrets }: Shop): void => {
  assert.isAbove(strings.length, 1000)
  const found = strings.filter((text) => secrets.some((secret) => text.includes(secret)))
  assert.deepStrictEqual(found, [])
}

describe("the memory of a process after its answers", () => {
  it.live("holds no card number, security code, API key and no text of a processor's secret", () =>
    Effect.gen(function* () {
      const made = yield* shop
      yield* Effect.promise(async () => {
        assertNone(await made.strings(), made)
        await pay(made)
        assertNone(await made.strings(), made)
      })
    })
  )

  it.live("has the text of a processor's secret nowhere, once the process has gone on for a while", (context) =>
    Effect.gen(function* () {
      const made = yield* shop
      const { keys, processorSecret, server } = made
      yield* Effect.promise(async () => {
        // Adding a processor brings its secret in as a text. Another process has it from the database.
        await server.kill("SIGTERM")
        await server.start()
        await pay(made)
        const body = { amount: 1000, currency: "usd", description: "x".repeat(200) }
        const create = () => server.request("POST", "/v1/payment_intents", { key: keys.live, body })
        for (let sent = 0; sent < FURTHER; sent += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, create))
        server.signal("SIGSTOP")
        const counts = countInMemory(server.processId, [processorSecret, PRESENT])
        server.signal("SIGCONT")
        if (counts === undefined) return context.skip("the memory of another process may not be read here")
        assert.isAbove(counts.get(PRESENT)!, 0)
        assert.strictEqual(counts.get(processorSecret), 0)
      })
    })
  )
})
