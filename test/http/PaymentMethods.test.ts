/**
 * Payment methods (semantics payment_methods.create, test_cards.*, payment_methods.object), also with publishable keys
 * (semantics keys.publishable), through a real socket.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { Api } from "../../src/api/Api.ts"
import { PaymentMethod } from "../../src/domain/PaymentMethod.ts"
import { assertError, assertOk } from "./Assertions.ts"
import { TEST_CARDS } from "../../src/domain/TestCards.ts"
import { type MemoryTill, type RequestOptions, start } from "../support/MemoryTill.ts"

let server: MemoryTill
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const NUMBER = "5555555555554444"
const card = { number: NUMBER, exp_month: 12, exp_year: 2040, cvc: "737" }
const create = (body: unknown, options: RequestOptions = {}) =>
  server.request("POST", "/v1/payment_methods", { body, ...options })
const get = (id: string, options: RequestOptions = {}) => server.request("GET", `/v1/payment_methods/${id}`, options)
const decode = Schema.decodeUnknownSync(PaymentMethod, { onExcessProperty: "error" })

describe("payment methods", () => {
  it("payment_methods.create, payment_methods.object, payment_methods.built_in: create and retrieve", async () => {
    const billing_details = { name: "Jo", email: "jo@example.test", address: { city: "Bern", line2: "" } }
    const created = await create({ type: "card", card, billing_details, metadata: { a: "b", c: null } })
    assertOk(created)
    const { card: shown, created: at, id, ...rest } = created.body
    decode(created.body)
    assert.match(id, /^pm_[0-9A-Za-z]{24}$/)
    assert.isTrue(Number.isInteger(at))
    const { fingerprint, ...kept } = shown
    assert.match(fingerprint, /^[\w-]{22}$/)
    assert.deepStrictEqual(kept, {
      brand: "mastercard",
      last4: "4444",
      exp_month: 12,
      exp_year: 2040,
      funding: "credit",
      country: "US",
      checks: { cvc_check: "pass" }
    })
    assert.deepStrictEqual(rest, {
      object: "payment_method",
      type: "card",
      livemode: false,
      customer: null,
      billing_details: {
        email: "jo@example.test",
        name: "Jo",
        phone: null,
        address: { city: "Bern", country: null, line1: null, line2: null, postal_code: null, state: null }
      },
      metadata: { a: "b" }
    })
    assert.strictEqual((await get(id)).text, created.text)
    for (const [builtIn, cvc_check] of [
      ["pm_card_visa", "pass"],
      ["pm_card_incorrect_cvc", "fail"]
    ] as const) {
      assert.deepStrictEqual((await get(builtIn)).body.card.checks, { cvc_check })
    }
    const paid = await server.request("POST", "/v1/payment_intents", {
      body: { amount: 1, currency: "usd", payment_method: id, confirm: true }
    })
    assert.deepInclude(paid.body, { status: "succeeded", payment_method: id })
    const withBuiltIn = { amount: 1, currency: "usd", payment_method: "pm_card_visa" }
    const { body } = await server.request("POST", "/v1/payment_intents", { body: withBuiltIn })
    assert.strictEqual(body.payment_method, "pm_card_visa")
  })

  it("payment_methods.create: parameters", async () => {
    assertError(await create({}), 400, "parameter_missing", "type")
    assertError(await create({ type: "card" }), 400, "parameter_missing", "card")
    assertError(await create({ type: "sepa_debit", card }), 400, "parameter_invalid", "type")
    for (const [field, value] of [
      ["number", "4242424242424241"],
      ["number", "4242"],
      ["number", 4242424242424242],
      ["exp_month", 13],
      ["exp_year", 40],
      ["cvc", "12"]
    ] as const) {
      const reply = await create({ type: "card", card: { ...card, [field]: value } })
      assertError(reply, 400, "parameter_invalid", `card[${field}]`)
      assert.notInclude(reply.text, String(value).slice(0, 12).padEnd(12, "x"))
    }
    assertError(await create({ type: "card", card, customer: "cus_1" }), 400, "parameter_unknown", "customer")
    const many = Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`k${i}`, "v"]))
    assertError(await create({ type: "card", card, metadata: many }), 400, "parameter_invalid", "metadata")
  })

  // Semantics payment_methods.token.
  it("a token stands for a card, and the simulator's tokens for the test cards", async () => {
    const created = await create({ type: "card", token: "tok_mastercard", card: null, metadata: { a: "b" } })
    assertOk(created)
    decode(created.body)
    const builtIn = (await get("pm_card_mastercard")).body.card
    assert.deepStrictEqual(created.body.card, { ...builtIn, checks: { cvc_check: null } })
    assert.deepStrictEqual(created.body.metadata, { a: "b" })
    for (const [token, status, code] of [
      ["tok_visa", 200, undefined],
      ["tok_insufficient_funds", 402, "insufficient_funds"]
    ] as const) {
      const body = { amount: 1, currency: "usd", confirm: true, payment_method_data: { type: "card", token } }
      const paid = await server.request("POST", "/v1/payment_intents", { body })
      assert.deepStrictEqual([paid.status, paid.body.error?.decline_code], [status, code])
    }
    for (const token of ["tok_nobody", "pm_card_visa", "tok_"]) {
      assertError(await create({ type: "card", token }), 400, "parameter_invalid", "token")
    }
    assertError(await create({ type: "card", token: "tok_visa", card }), 400, "parameters_exclusive", "token")
    assertError(await create({ type: "card", token: null }), 400, "parameter_missing", "card")
    const live = { key: server.keys.secretLive }
    assertError(await create({ type: "card", token: "tok_visa" }, live), 400, "processor_not_configured")
    const body = { amount: 1, currency: "usd", confirm: true, payment_method_data: { type: "card", token: "tok_x" } }
    const refused = await server.request("POST", "/v1/payment_intents", { body })
    assertError(refused, 400, "parameter_invalid", "payment_method_data[token]")
  })

  // Semantics payment_methods.create, test_cards.*.
  it("expired cards are accepted here, and declined later; the number decides the outcome of a charge", async () => {
    for (const [sent, code] of [
      [{ ...card, exp_year: 2020 }, "expired_card"],
      [{ ...card, number: "4000000000009995" }, "insufficient_funds"]
    ] as const) {
      const { id } = (await create({ type: "card", card: sent })).body
      const body = { amount: 1, currency: "usd", payment_method: id, confirm: true }
      const declined = await server.request("POST", "/v1/payment_intents", { body })
      assertError(declined, 402, "card_declined")
      assert.strictEqual(declined.body.error.decline_code, code)
    }
  })

  it("payment_methods.object: built-in test payment methods, by each of their ids", async () => {
    for (const { brand, funding, ids, numbers } of TEST_CARDS) {
      for (const id of ids) {
        const reply = await get(id)
        assertOk(reply)
        decode(reply.body)
        assert.deepInclude(reply.body, { id, created: 0, customer: null, livemode: false, metadata: {} })
        const { card: shown } = reply.body
        assert.deepInclude(shown, { brand, funding, last4: numbers[0].slice(-4), exp_month: 12, exp_year: 2034 })
      }
    }
    // The same number has the same fingerprint, in every request that contains it.
    const { body } = await create({ type: "card", card })
    assert.strictEqual((await get("pm_card_mastercard")).body.card.fingerprint, body.card.fingerprint)
    for (const id of ["pm_card_unknown", "pm_x", "cus_1"]) {
      assertError(await get(id), 404, "resource_missing", "id")
    }
  })

  // Semantics keys.environments, test_cards.table.
  it("live mode has neither test ids nor test objects, and accepts no cards without a processor", async () => {
    const live = { key: server.keys.secretLive }
    const { id } = (await create({ type: "card", card })).body
    assertError(await get(id, live), 404, "resource_missing", "id")
    assertError(await get("pm_card_visa", live), 404, "resource_missing", "id")
    assertError(await create({ type: "card", card }, live), 400, "processor_not_configured")
  })

  it("keys.publishable: publishable keys may create, and nothing else", async () => {
    const payer = { key: server.keys.publishableTest }
    const created = await create({ type: "card", card }, payer)
    assertOk(created)
    decode(created.body)
    assert.strictEqual((await get(created.body.id)).text, created.text)
    assertError(await get(created.body.id, payer), 403, "secret_key_required")
    assertError(
      await create({ type: "card", card, client_secret: "x" }, payer),
      400,
      "parameter_unknown",
      "client_secret"
    )
    for (const [method, path] of [
      ["GET", "/v1/charges"],
      ["GET", "/v1/refunds"],
      ["POST", "/v1/refunds"],
      ["GET", "/v1/webhook_endpoints"],
      ["POST", "/v1/webhook_endpoints"],
      ["DELETE", "/v1/webhook_endpoints/we_1"]
    ] as const) {
      assertError(await server.request(method, path, payer), 403, "secret_key_required")
    }
  })

  it("keys.live_processor: cannot be created in live mode without a processor, with any key", async () => {
    const { merchantId, publishableLive, secretLive } = server.keys
    for (const key of [secretLive, publishableLive]) {
      for (const idempotencyKey of ["live-1", "live-1", "live-2"]) {
        const refused = await create({ type: "card", card }, { key, idempotencyKey })
        assertError(refused, 400, "processor_not_configured")
        assert.strictEqual(refused.body.error.type, "invalid_request_error")
      }
      // An error in the parameters is found before the lack of a processor.
      assertError(await create({ type: "card" }, { key }), 400, "parameter_missing", "card")
      const wrong = await create({ type: "card", card: { ...card, number: "4242" } }, { key })
      assertError(wrong, 400, "parameter_invalid", "card[number]")
    }
    assert.notInclude(await server.journal(`${merchantId}:live`), "payment_method")
  })

  it("idempotency.replay: a repetition is the same payment method", async () => {
    const options = { idempotencyKey: "pm", key: server.keys.publishableTest }
    const first = await create({ type: "card", card }, options)
    const second = await create({ type: "card", card }, options)
    assert.strictEqual(second.text, first.text)
    assert.strictEqual(second.headers.get("idempotent-replayed"), "true")
    const other = { ...card, number: "4242424242424242" }
    assertError(await create({ type: "card", card: other }, options), 422, "idempotency_key_reuse")
  })

  it("parameters.people: show the billing details, also on charges", async () => {
    const nobody = { email: null, name: null, phone: null, address: null }
    const nowhere = { city: null, country: null, line1: null, line2: null, postal_code: null, state: null }
    for (const [sent, shown] of [
      [undefined, nobody],
      [null, nobody],
      [{}, nobody],
      [{ name: "", phone: null, address: null }, nobody],
      [{ address: {} }, nobody],
      [{ address: { city: "", country: null, line1: null, line2: "" } }, nobody],
      [{ address: { country: "ch" } }, { ...nobody, address: { ...nowhere, country: "CH" } }],
      [
        { address: { state: "BE" }, phone: "1" },
        { ...nobody, phone: "1", address: { ...nowhere, state: "BE" } }
      ]
    ] as const) {
      const data = { type: "card", card: { ...card, number: "4242424242424242" }, billing_details: sent }
      assert.deepStrictEqual((await create(data)).body.billing_details, shown)
      const payment = { amount: 1, currency: "usd", confirm: true, payment_method_data: data }
      const { body } = await server.request("POST", "/v1/payment_intents", { body: payment })
      assert.deepStrictEqual(body.charges.data[0].billing_details, shown)
      const charge = await server.request("GET", `/v1/charges/${body.latest_charge}`)
      assert.deepStrictEqual(charge.body.billing_details, shown)
    }
    const builtIn = { amount: 1, currency: "usd", confirm: true, payment_method: "pm_card_visa" }
    const { body } = await server.request("POST", "/v1/payment_intents", { body: builtIn })
    assert.deepStrictEqual(body.charges.data[0].billing_details, nobody)
    assert.deepStrictEqual((await get("pm_card_visa")).body.billing_details, nobody)
  })

  it("payment_methods.create: a security code is as long as the card's scheme has it", async () => {
    const payment = (data: object) => ({
      body: { amount: 1, currency: "usd", confirm: true, payment_method_data: { type: "card", card: data } }
    })
    for (const { brand, numbers } of TEST_CARDS) {
      for (const cvc of ["123", "1234", undefined, null]) {
        const data = { ...card, number: numbers[0], cvc }
        const fits = cvc == null || cvc.length === (brand === "amex" ? 4 : 3)
        const created = await create({ type: "card", card: data })
        const paid = await server.request("POST", "/v1/payment_intents", payment(data))
        if (fits) {
          assertOk(created)
          assert.notStrictEqual(paid.body.error?.code, "parameter_invalid")
        } else {
          assertError(created, 400, "parameter_invalid", "card[cvc]")
          assertError(paid, 400, "parameter_invalid", "payment_method_data[card][cvc]")
          assert.match(
            paid.body.error.message,
            brand === "amex" ? /a string of 4 digits\.$/ : /a string of 3 digits\.$/
          )
        }
      }
    }
    const wrong = { ...card, number: "378282246310005", cvc: "123" }
    const both = await create({ type: "card", card: { ...wrong, exp_month: 13 } })
    assertError(both, 400, "parameter_invalid", "card[exp_month]")
    const before = await create({ type: "card", card: wrong, billing_details: { name: 1 } })
    assertError(before, 400, "parameter_invalid", "card[cvc]")
  })

  it("payment_methods.card_data: neither number nor security code is stored anywhere", async () => {
    const { merchantId, secretTest: key } = await server.merchant()
    const cvc = "9517"
    const number = "378282246310005"
    const secret = { ...card, number, cvc }
    await create({ type: "card", card: secret }, { key })
    await create({ type: "card", card: { ...secret, number: `${number.slice(0, -1)}6` } }, { key })
    await create({ type: "card", card: { ...secret, number: NUMBER } }, { key })
    const payment = { amount: 1, currency: "usd", payment_method_data: { type: "card", card: secret }, confirm: true }
    assertOk(await server.request("POST", "/v1/payment_intents", { body: payment, key }))
    const journal = await server.journal(`${merchantId}:test`)
    assert.include(journal, '"last4":"0005"')
    assert.notInclude(journal, number.slice(0, 11))
    assert.notInclude(journal, NUMBER.slice(0, 12))
    assert.notMatch(journal, new RegExp(`(?<![0-9A-Za-z])${cvc}(?![0-9A-Za-z])`, "u"))
  })

  it("payment_methods.card_data: the contract accepts card numbers only in the two places that are tokenized", () => {
    const { components, paths } = OpenApi.fromApi(Api)
    const schemas = components.schemas as Readonly<Record<string, unknown>>
    const found = (value: unknown, path: string): ReadonlyArray<string> => {
      if (typeof value !== "object" || value === null) return []
      const { $ref, properties, ...rest } = value as Readonly<Record<string, unknown>>
      const referred = typeof $ref === "string" ? found(schemas[$ref.split("/").at(-1)!], path) : []
      const named = Object.entries((properties ?? {}) as object).flatMap(([name, member]) =>
        name === "number" ? [`${path}.number`] : found(member, path === "" ? name : `${path}.${name}`)
      )
      return [...referred, ...named, ...Object.values(rest).flatMap((member) => found(member, path))]
    }
    const bodies = Object.values(paths).flatMap((item) =>
      Object.values(item).map((operation) => (operation as { readonly requestBody?: unknown }).requestBody)
    )
    const places = new Set(bodies.flatMap((body) => found(body, "")))
    assert.sameMembers([...places], ["card.number", "payment_method_data.card.number"])
  })
})
