/** `till logs` as typed in a terminal, with a real service (semantics request_log.cli). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { KEYS, run, type Running, startTill, till, until } from "../support/TillProcess.ts"

const following = (args: ReadonlyArray<string>, variables: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.sync(() => run(["logs", ...args], variables)),
    ({ child, ended }) => Effect.promise(() => (child.kill("SIGKILL"), ended))
  )
const has = (running: Running, text: string) => until(`till logs shows ${text}`, () => running.stdout().includes(text))

describe("the command till logs", () => {
  it.live("prints past and new requests, by filters, as lines or JSON, also after the service was unavailable", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      const customer = (name: string) => server.post("/v1/customers", { name })
      const bad = (amount: number, idempotencyKey: string) =>
        server.request("POST", "/v1/payment_intents", { body: { amount, currency: "usd" }, idempotencyKey })
      yield* Effect.promise(() => bad(0, "before"))
      const once = (...args: ReadonlyArray<string>) => till(["logs", "--no-follow", ...args], server.variables)
      const columns = [
        /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/u,
        /400 {2}POST \/v1\/payment_intents/u,
        /req_\w{24} {2}\d+ ms/u,
        /parameter_\w+ {2}amount {2}key before/u
      ]
      const line = new RegExp(`^${columns.map(({ source }) => source).join(" {2}")}\n$`, "u")
      yield* Effect.promise(() => until("the request is logged", async () => line.test((await once()).stdout)))
      assert.strictEqual((yield* Effect.promise(() => once("--limit", "0"))).stdout, "")
      const errors = yield* following(["--status", "4xx"], server.variables)
      const all = yield* following(["--json"], server.variables)
      const live = yield* following([], { ...server.variables, TILL_API_KEY: KEYS.secretLive })
      yield* Effect.promise(async () => {
        // A command that has printed past requests follows new ones.
        await has(errors, "key before")
        await has(all, '"idempotency_key":"before"')
        await server.request("GET", "/v1/customers", { key: KEYS.secretLive })
        await has(live, "GET /v1/customers")
        await customer("4242 4242 4242 4242 x\u009b2J")
        await bad(-1, "declined")
        await has(errors, "key declined")
        await has(all, '"idempotency_key":"declined"')
        await server.kill("SIGKILL")
        await until("it is noticed", () => all.stderr().includes("Retrying") && errors.stderr().includes("Retrying"))
        await server.start()
        await bad(-2, "after the restart")
        await server.request("GET", "/v1/products", { key: KEYS.secretLive })
        await has(errors, "key after the restart")
        await has(all, '"idempotency_key":"after the restart"')
        await has(live, "GET /v1/products")
      })
      assert.notMatch(errors.stdout(), /customers|\p{Cc}(?<!\n)/u)
      assert.strictEqual(errors.stdout().match(/key declined/gu)?.length, 1)
      assert.notInclude(live.stdout(), "payment_intents")
      const lines = all.stdout().trim().split("\n")
      const requests = lines.map((json) => JSON.parse(json))
      assert.deepStrictEqual(
        requests.map(({ method, path, status }) => `${method} ${path} ${status}`),
        ["POST /v1/payment_intents 400", "POST /v1/customers 200", ...Array(2).fill("POST /v1/payment_intents 400")]
      )
      assert.deepStrictEqual(requests[1].request_body, { name: "**** x\u009b2J" })
      for (const written of [all, errors, live].map((running) => running.stdout() + running.stderr())) {
        assert.notMatch(written, /4242|sk_(?:test|live)_|\p{Cc}(?<!\n)/u)
      }

      yield* Effect.promise(async () => {
        const code = { code: 1, stdout: "" }
        const [secret, filtered, help] = await Promise.all([
          once("--key", KEYS.secretTest),
          once("--code", "parameter_invalid", "--method", "post", "--limit", "1"),
          till(["logs", "--help"], {})
        ])
        assert.deepInclude(secret, code)
        assert.notInclude(secret.stderr, KEYS.secretTest)
        assert.match(filtered.stdout, /^[^\n]+key after the restart\n$/u)
        assert.match(help.stdout, /--no-follow/u)
        await server.kill("SIGTERM")
        assert.deepInclude(await once(), code)
      })
    })
  )

  it.live("reports that the log is turned off", () =>
    Effect.gen(function* () {
      const server = yield* startTill({ variables: { TILL_REQUEST_LOG_DAYS: "0" } })
      const { code, stderr } = yield* Effect.promise(() => till(["logs"], server.variables))
      assert.deepStrictEqual(
        [code, stderr],
        [1, "till: This installation keeps no log of requests: TILL_REQUEST_LOG_DAYS is 0.\n"]
      )
    })
  )
})
