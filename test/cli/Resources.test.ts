/** The words of `till get`, `list`, `post` and `delete`, and the files of `till fixtures`. */
import { assert, describe, it } from "@effect/vitest"
import { HttpApi } from "effect/http-api"
import { Api } from "../../src/api/Api.ts"
import { fixturesOf, methodOf, resolved } from "../../src/cli/Fixtures.ts"
import { callOf, type Verb } from "../../src/cli/Resources.ts"
import { ENDPOINTS } from "../../src/client/Endpoints.ts"

describe("the client's table of endpoints", () => {
  it("is the contract's", () => {
    const expected: Record<string, Record<string, ReadonlyArray<string>>> = {}
    HttpApi.reflect(Api, {
      onGroup: ({ group }) => void (expected[group.identifier] = {}),
      onEndpoint: ({ endpoint, group }) => {
        expected[group.identifier]![endpoint.identifier] = [endpoint.method, endpoint.path]
      }
    })
    assert.deepStrictEqual<unknown>(ENDPOINTS, expected)
  })
})

describe("the words of a command", () => {
  it.each<[Verb, string, ReadonlyArray<string>, string, ReadonlyArray<string>]>([
    ["get", "customers", ["cus_1"], "customers.retrieve", ["cus_1"]],
    ["get", "customer", ["cus_1"], "customers.retrieve", ["cus_1"]],
    ["get", "payment-intents", ["pi_1"], "payment_intents.retrieve", ["pi_1"]],
    ["get", "customers", ["cus_1", "payment_methods"], "customers.payment_methods", ["cus_1"]],
    ["get", "customers", ["search"], "customers.search", []],
    ["list", "charges", [], "charges.list", []],
    ["post", "refunds", [], "refunds.create", []],
    ["post", "refunds", ["ref_1"], "refunds.update", ["ref_1"]],
    ["post", "payment_intents", ["pi_1", "capture"], "payment_intents.capture", ["pi_1"]],
    ["post", "test_helpers", ["advance_clock"], "test_helpers.advance_clock", []],
    ["post", "test_helpers", ["authenticate", "pi_1"], "test_helpers.authenticate", ["pi_1"]],
    ["delete", "products", ["prod_1"], "products.delete", ["prod_1"]],
    ["delete", "test_helpers", ["delete_data"], "test_helpers.delete_data", []],
    ["delete", "api_keys", ["key_1", "revoke"], "api_keys.revoke", ["key_1"]]
  ])("till %s %s %j", (verb, resource, words, name, identifiers) => {
    const call = callOf(verb, resource, words)
    assert.deepStrictEqual(typeof call === "string" ? call : [`${call.group}.${call.name}`, call.identifiers], [
      name,
      identifiers
    ])
  })

  it.each<[Verb, string, ReadonlyArray<string>, string]>([
    ["get", "custmers", ["cus_1"], 'there is no resource "custmers"; did you mean customers?'],
    ["get", "customers", [], "till get customers needs an ID"],
    ["delete", "customers", [], "till delete customers needs an ID"],
    ["delete", "charges", ["ch_1"], "till delete charges does not exist"],
    [
      "post",
      "payment_intents",
      ["pi_1", "cancl"],
      'payment_intents have no "cancl" for till post; did you mean cancel?'
    ]
  ])("refuses till %s %s %j", (verb, resource, words, message) => {
    assert.strictEqual(callOf(verb, resource, words), message)
  })
})

describe("fixtures", () => {
  it("are read from a file, or refused with the reason", () => {
    const one = { path: "/v1/customers", params: { email: "a@example.com" } }
    const read = { name: "0", path: "/v1/customers", method: "POST", params: { email: "a@example.com" } }
    assert.deepStrictEqual<unknown>(fixturesOf(JSON.stringify({ fixtures: [one] })), [read])
    assert.deepStrictEqual<unknown>(fixturesOf(JSON.stringify([{ ...one, name: "a", method: "get" }])), [
      { ...read, name: "a", method: "GET" }
    ])
    assert.strictEqual(fixturesOf("{"), "is not JSON")
    assert.strictEqual(fixturesOf("{}"), 'has no array "fixtures"')
    assert.match(
      fixturesOf('[{"path": "/v1/customers", "method": "put"}]') as string,
      /^has an entry 0 that is not of/u
    )
    assert.strictEqual(fixturesOf(JSON.stringify([one, { ...one, name: "0" }])), 'has two entries with the name "0"')
  })

  it("refer to earlier answers, with the field's own type", () => {
    const answers = new Map([["pay", { id: "pi_1", amount: 7, card: { brand: "visa" }, lines: [{ id: "li_1" }] }]])
    const fields = {
      a: "${pay:id}",
      b: "for ${pay:id} and ${pay:card.brand}",
      c: ["${pay:amount}"],
      d: { e: "${pay:lines.0.id}" },
      f: 5
    }
    assert.deepStrictEqual(resolved(fields, answers), {
      a: "pi_1",
      b: "for pi_1 and visa",
      c: [7],
      d: { e: "li_1" },
      f: 5
    })
    assert.throws(() => resolved("${pay:nothing}", answers), "${pay:nothing} refers to nothing")
    assert.throws(() => resolved("${other:id}", answers), "${other:id} refers to nothing")
  })

  it("name endpoints by their path, fixed paths before those with an ID", () => {
    assert.deepStrictEqual<unknown>(methodOf("POST", "/v1/payment_intents/pi_1/confirm"), {
      group: "payment_intents",
      name: "confirm",
      identifiers: ["pi_1"]
    })
    assert.deepStrictEqual<unknown>(methodOf("GET", "/v1/customers/search")?.name, "search")
    assert.isUndefined(methodOf("POST", "/v1/elephants"))
  })
})
