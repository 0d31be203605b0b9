/**
 * Semantics versions.events and interface.md Versioning, with two more versions than the published ones
 * (`TestVersions.ts`): each kind of change, in requests, answers, lists, errors, events and replays.
 */
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ApiVersion } from "../../src/domain/ApiVersion.ts"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import * as Merchants from "../../src/payments/merchants/Merchants.ts"
import type { Keys } from "../support/fixtures/Merchants.ts"
import { FIRST, NEWEST, SECOND, VERSIONS } from "../support/TestVersions.ts"
import { type MemoryTill, type Reply, type RequestOptions, start } from "../support/MemoryTill.ts"

let server: MemoryTill
let keys: Keys
beforeAll(async () => void (server = await start({ versions: VERSIONS })))
beforeEach(async () => void (keys = await server.merchant()))
afterAll(() => server.close())

const ALL = [FIRST, SECOND, NEWEST]

type Options = RequestOptions & { readonly version?: string }

const send = async (method: string, path: string, { version, ...options }: Options = {}): Promise<Reply> => {
  const headers = { ...options.headers, ...(version !== undefined && { "x-api-version": version }) }
  const reply = await server.request(method, `/v1/${path}`, { key: keys.secretTest, ...options, headers })
  const isReplay = reply.headers.get("idempotent-replayed") === "true"
  if (version !== undefined && !isReplay) assert.strictEqual(reply.headers.get("x-api-version"), version)
  return reply
}
const ok = async (method: string, path: string, options?: Options): Promise<Reply["body"]> => {
  const reply = await send(method, path, options)
  assert.strictEqual(reply.status, 200, reply.text)
  return reply.body
}
const post = (path: string, body: object, version: string, options: Options = {}) =>
  ok("POST", path, { body, version, ...options })
const get = (path: string, version: string) => ok("GET", path, { version })
const errorOf = async (method: string, path: string, options: Options) => {
  const { body, status } = await send(method, path, options)
  assert.isDefined(body.error, JSON.stringify(body))
  const { code, message, param } = body.error
  return { status, code, message, param }
}
const refusedPost = (path: string, body: object, version: string) => errorOf("POST", path, { body, version })

const setDefault = (version: string) =>
  Effect.runPromise(server.accounts.run(INSTALLATION, Merchants.setVersion(keys.merchantId, version as ApiVersion)))

const PHONE: Readonly<Record<string, string>> = { [FIRST]: "telephone", [SECOND]: "phone_number", [NEWEST]: "phone" }

/** The names of a customer's phone field. */
const phones = (customer: object) => Object.keys(customer).filter((name) => Object.values(PHONE).includes(name))

describe("a field that has another name", () => {
  it("is written and read under the name of its version, in every answer", async () => {
    for (const version of ALL) {
      const name = PHONE[version]!
      const made = await post("customers", { [name]: "123" }, version)
      const updated = await post(`customers/${made.id}`, { [name]: "456", name: "Jo" }, version)
      for (const seen of ALL) {
        for (const customer of [
          await get(`customers/${made.id}`, seen),
          (await get("customers?limit=1", seen)).data[0],
          (await get(`payment_intents/${(await intentOf(made.id)).id}?expand[]=customer`, seen)).customer
        ]) {
          assert.deepStrictEqual(phones(customer), [PHONE[seen]])
          assert.strictEqual(customer[PHONE[seen]!], "456")
          // Fields keep their places.
          assert.strictEqual(Object.keys(customer).indexOf(PHONE[seen]!), Object.keys(updated).indexOf(name))
        }
      }
    }
  })

  const intentOf = (customer: string) => post("payment_intents", { amount: 5, currency: "usd", customer }, NEWEST)

  it("is unknown under a name of another version, and errors use the name of their own", async () => {
    for (const version of ALL) {
      for (const [of, name] of Object.entries(PHONE)) {
        if (of === version) continue
        assert.deepStrictEqual(await refusedPost("customers", { [name]: "1" }, version), {
          status: 400,
          code: "parameter_unknown",
          message: `Received unknown parameter: ${name}.`,
          param: name
        })
      }
      const name = PHONE[version]!
      const tooLong = await refusedPost("customers", { [name]: "1".repeat(65) }, version)
      assert.include(tooLong, { status: 400, code: "parameter_invalid", param: name })
      assert.include(tooLong.message, `The \`${name}\` field`)
    }
  })

  it("is unchanged in metadata, under any name", async () => {
    const metadata = { object: "customer", phone: "1", telephone: "2" }
    const { id } = await post("customers", { metadata }, FIRST)
    for (const version of ALL) assert.deepStrictEqual((await get(`customers/${id}`, version)).metadata, metadata)
  })

  it("is shown to publishable keys under its version's name, and no other field is", async () => {
    for (const version of ALL) {
      const { client_secret, id } = await post("payment_intents", { amount: 5, currency: "usd" }, NEWEST)
      const options = { key: keys.publishableTest, version }
      const seen = await ok("GET", `payment_intents/${id}?client_secret=${client_secret}`, options)
      const name = version === FIRST ? "iso_currency" : "currency"
      assert.strictEqual(seen[name], "usd")
      const confirm = { ...options, body: { client_secret, payment_method: "pm_card_visa" }, idempotencyKey: id }
      const confirmed = await send("POST", `payment_intents/${id}/confirm`, confirm)
      const again = await send("POST", `payment_intents/${id}/confirm`, confirm)
      assert.strictEqual(again.text, confirmed.text)
      for (const body of [seen, confirmed.body]) {
        for (const hidden of ["metadata", "charges", "merchant_id", version === FIRST ? "currency" : "iso_currency"]) {
          assert.notProperty(body, hidden)
        }
        assert.strictEqual(body.amount, version === NEWEST ? 5 : "5")
      }
    }
  })
})

describe("other kinds of changes", () => {
  it("a removed field exists in older versions only, also in lists", async () => {
    const { id } = await post("products", { name: "Tea", shippable: true }, NEWEST)
    for (const version of ALL) {
      const kind = version === FIRST ? "good" : undefined
      assert.strictEqual((await get(`products/${id}`, version)).kind, kind)
      assert.strictEqual((await get("products", version)).data[0].kind, kind)
    }
    assert.notProperty(await ok("DELETE", `products/${id}`, { version: FIRST }), "kind")
  })

  it("a type is the version's, in requests, answers and errors that contain an object", async () => {
    for (const version of [FIRST, SECOND]) {
      const currency = { currency: "usd" }
      const made = await post("payment_intents", { amount: "2000", ...currency }, version)
      assert.strictEqual(made.amount, "2000")
      assert.strictEqual((await get(`payment_intents/${made.id}`, NEWEST)).amount, 2000)
      for (const amount of [2000, "2000.0", "", "0"]) {
        const refused = await refusedPost("payment_intents", { amount, ...currency }, version)
        assert.include(refused, { status: 400, code: "parameter_invalid", param: "amount" })
      }
      const missing = await refusedPost("payment_intents", currency, version)
      assert.include(missing, { code: "parameter_missing", param: "amount" })
      const confirm = { confirm: true, payment_method: "pm_card_declined" }
      const options = { body: { amount: "2000", ...currency, ...confirm }, version, idempotencyKey: `d-${version}` }
      const declined = await send("POST", "payment_intents", options)
      assert.strictEqual(declined.status, 402)
      assert.strictEqual(declined.body.error.payment_intent.amount, "2000")
      assert.strictEqual((await send("POST", "payment_intents", options)).text, declined.text)
    }
    const refused = await refusedPost("payment_intents", { amount: "2000", currency: "usd" }, NEWEST)
    assert.include(refused, { code: "parameter_invalid", param: "amount" })
  })

  it("a default is the version's, in bodies and in queries", async () => {
    for (const version of ALL) {
      const amount = version === NEWEST ? 5 : "5"
      const created = (parameters: object) =>
        post("payment_intents", { amount, currency: "usd", ...parameters }, version)
      const otherwise = version === NEWEST ? "automatic" : "manual"
      assert.strictEqual((await created({})).capture_method, otherwise)
      assert.strictEqual((await created({ capture_method: null })).capture_method, otherwise)
      assert.strictEqual((await created({ capture_method: "automatic" })).capture_method, "automatic")
      await post("customers", {}, version)
    }
    for (const version of ALL) {
      assert.lengthOf((await get("customers", version)).data, version === NEWEST ? 3 : 2)
      assert.lengthOf((await get("customers?limit=3", version)).data, 3)
      const refused = await errorOf("GET", "customers?limit=0", { version })
      assert.include(refused, { code: "parameter_invalid", param: "limit" })
    }
  })

  it("versions.refusals: a parameter that is required since a version is optional in older ones", async () => {
    for (const version of [FIRST, SECOND]) assert.strictEqual((await post("products", {}, version)).name, "Unnamed")
    assert.include(await refusedPost("products", {}, NEWEST), { code: "parameter_missing", param: "name" })
    assert.include(await refusedPost("products", { name: 1 }, FIRST), { code: "parameter_invalid", param: "name" })
  })

  it("an error has the code of the version", async () => {
    const { id: product } = await post("products", { name: "Tea" }, NEWEST)
    await post("prices", { product, currency: "usd", unit_amount: 1 }, NEWEST)
    for (const version of ALL) {
      const code = version === FIRST ? "product_has_prices" : "resource_in_use"
      assert.include(await errorOf("DELETE", `products/${product}`, { version }), { status: 400, code })
    }
  })

  it("an endpoint behaves as in the version, its status included", async () => {
    const { id } = await post("customers", {}, NEWEST)
    await ok("DELETE", `customers/${id}`)
    for (const version of [FIRST, SECOND]) {
      const refused = await errorOf("GET", `customers/${id}`, { version })
      assert.include(refused, { status: 404, code: "resource_missing", param: "id" })
    }
    assert.isTrue((await get(`customers/${id}`, NEWEST)).deleted)
  })

  it("versions.same: unchanged parts are the same, byte for byte, in every version", async () => {
    const { id: product } = await post("products", { name: "Tea" }, NEWEST)
    const { id } = await post(
      "prices",
      { product, currency: "usd", unit_amount: 1, metadata: { b: "1", 1: "2" } },
      NEWEST
    )
    const texts = async (path: string) =>
      Promise.all(ALL.map(async (version) => (await send("GET", path, { version })).text))
    for (const path of [
      `prices/${id}`,
      "prices",
      "refunds",
      "api_keys",
      "charges/ch_none",
      "nothing",
      "customers?x=1"
    ]) {
      assert.strictEqual(new Set(await texts(path)).size, 1, path)
    }
  })
})

describe("the version of a request", () => {
  // Semantics versions.unknown.
  it("must exist; errors before it is decided, or about it, name the version in their header", async () => {
    const unknown = await server.request("GET", "/v1/customers", { headers: { "x-api-version": "2027-03-01" } })
    assert.deepStrictEqual([unknown.status, unknown.body.error.code], [400, "invalid_api_version"])
    assert.strictEqual(unknown.headers.get("x-api-version"), FIRST)
    const stranger = await server.request("GET", "/v1/customers", { key: null, headers: { "x-api-version": FIRST } })
    assert.deepStrictEqual([stranger.status, stranger.headers.get("x-api-version")], [401, NEWEST])
  })

  it("versions.default: is the account's default if the request names none", async () => {
    const { id } = await post("customers", { phone: "1" }, NEWEST)
    for (const version of ALL) {
      await setDefault(version)
      const reply = await send("GET", `customers/${id}`)
      assert.strictEqual(reply.headers.get("x-api-version"), version)
      assert.deepStrictEqual(phones(reply.body), [PHONE[version]])
    }
  })
})

describe("a replay", () => {
  // Semantics idempotency.fingerprint, idempotency.replay.
  it("versions.replays: is in the version of the first request, byte for byte, for any version of the repetition", async () => {
    for (const first of ALL) {
      const body = { [PHONE[first]!]: "1" }
      const once = { body, idempotencyKey: `once-${first}` }
      const answer = await send("POST", "customers", { ...once, version: first })
      for (const version of [...ALL, undefined]) {
        const replay = await send("POST", "customers", { ...once, ...(version !== undefined && { version }) })
        assert.strictEqual(replay.headers.get("idempotent-replayed"), "true")
        assert.strictEqual(replay.headers.get("x-api-version"), first)
        assert.strictEqual(replay.text, answer.text)
      }
    }
    assert.lengthOf((await get("customers?limit=9", NEWEST)).data, 3)
  })

  it("idempotency.reuse: is refused for another body, though both mean the same in their versions", async () => {
    const idempotencyKey = "two-spellings"
    await post("customers", { telephone: "1" }, FIRST, { idempotencyKey })
    const other = await send("POST", "customers", { body: { phone: "1" }, version: NEWEST, idempotencyKey })
    assert.deepStrictEqual([other.status, other.body.error.code], [422, "idempotency_key_reuse"])
  })

  // Semantics idempotency.released.
  it("does not exist for a refused request: its key is free for the request in another version", async () => {
    const once = { body: { phone: "1" }, idempotencyKey: "refused-first" }
    assert.strictEqual((await send("POST", "customers", { ...once, version: FIRST })).status, 400)
    assert.strictEqual((await send("POST", "customers", { ...once, version: NEWEST })).body.phone, "1")
  })

  it("idempotency.replay: shows a sealed secret at its version's place, and a key's secret once", async () => {
    const body = { url: "http://127.0.0.1:1/", enabled_events: ["*"] }
    for (const version of ALL) {
      const once = { body, version, idempotencyKey: `sealed-${version}` }
      const endpoint = await ok("POST", "webhook_endpoints", once)
      assert.match(version === NEWEST ? endpoint.secret : endpoint.signing.secret, /^whsec_/)
      assert.deepStrictEqual((await send("POST", "webhook_endpoints", once)).body, endpoint)
    }
    const [{ id }] = (await get("api_keys", FIRST)).data
    const roll = () => send("POST", `api_keys/${id}/roll`, { version: FIRST, idempotencyKey: "roll" })
    assert.property((await roll()).body, "secret")
    assert.notProperty((await roll()).body, "secret")
  })
})

describe("an event", () => {
  const newest = async (version: string) => (await get("events?limit=1", version)).data[0]

  // Semantics webhooks.body, versions.events.
  it("is rendered in the default version at its time, and keeps those bytes", async () => {
    const texts = new Map<string, { readonly version: string; readonly text: string }>()
    for (const version of ALL) {
      await setDefault(version)
      const { id } = await post("customers", { phone: "1" }, NEWEST)
      const event = await newest(version)
      assert.strictEqual(event.api_version, version)
      assert.deepStrictEqual(phones(event.data.object), [PHONE[version]])
      assert.strictEqual(event.data.object.id, id)
      texts.set(event.id, { version, text: (await send("GET", `events/${event.id}`)).text })
    }
    for (const byDefault of ALL) {
      await setDefault(byDefault)
      for (const [id, { text }] of texts) {
        for (const version of ALL) {
          assert.strictEqual((await send("GET", `events/${id}`, { version })).text, text)
          assert.include((await send("GET", "events?limit=3", { version })).text, text)
        }
        assert.strictEqual((await send("POST", `events/${id}/resend`)).text, text)
      }
    }
  })

  it("shows an update in its version: with its names and values, and without fields that it lacks", async () => {
    const tea = await post("products", { name: "Tea", metadata: { a: "1", b: "2" } }, NEWEST)
    const { id } = await post("customers", { phone: "1", metadata: { a: "1", b: "2" } }, NEWEST)
    const previous = async (path: string, body: object) => {
      await post(path, body, NEWEST)
      return (await newest(NEWEST)).data.previous_attributes
    }
    for (const version of ALL) {
      await setDefault(version)
      const changes = { phone: version, metadata: { a: "3", b: null, c: version } }
      const before = await get(`customers/${id}`, version)
      const { metadata, ...others } = await previous(`customers/${id}`, changes)
      assert.deepStrictEqual(others, { [PHONE[version]!]: before[PHONE[version]!] })
      const keys = ["a", "b", "c"].filter((key) => before.metadata[key] !== { a: "3", c: version }[key])
      assert.deepStrictEqual(metadata, Object.fromEntries(keys.map((key) => [key, before.metadata[key] ?? null])))

      const shippable = version !== SECOND
      const wasNull = (await get(`products/${tea.id}`, NEWEST)).shippable
      const seen = await previous(`products/${tea.id}`, { shippable })
      const kind = version === FIRST ? { kind: "service" } : {}
      assert.deepStrictEqual(seen, { shippable: wasNull, ...kind })
    }
  })

  it("is stored without traces of another version, and is verified like any other", async () => {
    const { id } = await post("customers", { phone: "0123456" }, NEWEST)
    const journal = await server.journal(`${keys.merchantId}:test`)
    assert.include(journal, `"telephone":"0123456"`)
    assert.include(journal, `"id":"${id}"`)
  })
})
