/**
 * Every breaking change is detected anywhere in the document (spec: Versioning 6), and changes allowed in any version
 * are not (spec: Versioning 7).
 */
import { assert, describe, it } from "@effect/vitest"
import * as Document from "../../../src/api/openapi/Document.ts"
import { breaksOf, type Contract, versionsOf } from "./Compatibility.ts"

const CODES = { card_declined: ["402 payment_error"], parameter_missing: ["400 invalid_request_error"] }
const contract: Contract = { ...Document.make("https://pay.example.test"), "x-error-codes": CODES }

/** JSON that a test can change. */
// oxlint-disable-next-line typescript/no-explicit-any -- a test edits any part of it
type Draft = any

/** Returns the breaks of a changed contract. */
const after = (change: (draft: Draft) => unknown): ReadonlyArray<string> => {
  const draft = structuredClone(contract) as Draft
  const before = JSON.stringify(draft)
  change(draft)
  assert.notStrictEqual(JSON.stringify(draft), before, "the change changes something")
  return breaksOf(contract, draft as Contract)
}

const bodyOf = (draft: Draft, name: string) => draft.components.schemas[name]
const operationOf = (draft: Draft, route: string) => {
  const [method, path] = route.split(" ") as [string, string]
  return draft.paths[path][method]
}
const parameterOf = (draft: Draft, route: string, name: string) =>
  operationOf(draft, route).parameters.find((parameter: Draft) => parameter.name === name)
const listOf = (draft: Draft) =>
  operationOf(draft, "get /v1/customers").responses["200"].content["application/json"].schema

const BREAKING: ReadonlyArray<readonly [what: string, change: (draft: Draft) => unknown, told: RegExp]> = [
  [
    "a response field that is removed",
    (d) => delete bodyOf(d, "Customer").properties.name,
    /\.name: the field is gone/
  ],
  [
    "a response field that is renamed",
    (d) => {
      const { properties } = bodyOf(d, "Price")
      properties.title = properties.nickname
      delete properties.nickname
    },
    /Price.*\.nickname: the field is gone/
  ],
  [
    "a response field that may be missing",
    (d) => bodyOf(d, "Refund").required.splice(bodyOf(d, "Refund").required.indexOf("status"), 1),
    /Refund.*\.status: the field may be missing now/
  ],
  [
    "another type",
    (d) => (bodyOf(d, "Price").properties.active = { type: "string" }),
    /active: (can no longer be boolean|may be string now)/
  ],
  [
    "a type that may be null",
    (d) => (bodyOf(d, "Price").properties.active = { anyOf: [{ type: "boolean" }, { type: "null" }] }),
    /active: may be null now/
  ],
  [
    "an id that may be the object",
    (d) => {
      const { properties } = bodyOf(d, "Refund")
      properties.payment_intent = { anyOf: [properties.payment_intent, { $ref: "#/components/schemas/PaymentIntent" }] }
    },
    /payment_intent: may be a payment_intent now/
  ],
  [
    "ids of another form",
    (d) => (bodyOf(d, "Price").properties.id.pattern = "^pr_"),
    /\.id: its pattern was "\^price_"/
  ],
  [
    "a status with another name",
    (d) => {
      const { enum: values } = bodyOf(d, "PaymentIntent").properties.status
      values[values.indexOf("processing")] = "pending"
    },
    /\.status: can no longer be "processing"/
  ],
  [
    "a list that loses a field",
    (d) => delete listOf(d).properties.has_more,
    /GET \/v1\/customers 200\.has_more: the field is gone/
  ],
  [
    "an object inside a list's object that changes",
    (d) => (bodyOf(d, "Tier").properties.up_to = { type: "string" }),
    /Tier.*up_to: (can no longer be integer|may be string now)/
  ],
  [
    "a response header that is removed",
    (d) => delete operationOf(d, "get /v1/customers").responses["200"].headers["X-Request-Id"],
    /GET \/v1\/customers 200 header X-Request-Id: is gone/
  ],
  [
    "another default",
    (d) => (parameterOf(d, "get /v1/prices", "limit").schema.default = 20),
    /limit: the default was 10 and is 20/
  ],
  [
    "a default that is removed",
    (d) => delete parameterOf(d, "get /v1/prices", "limit").schema.default,
    /limit: the default was 10 and is nothing/
  ],
  [
    "a new required parameter",
    (d) =>
      operationOf(d, "get /v1/prices").parameters.push({
        name: "shop",
        in: "query",
        required: true,
        schema: { type: "string" }
      }),
    /GET \/v1\/prices query shop: the parameter is required now/
  ],
  [
    "a parameter that becomes required",
    (d) => (parameterOf(d, "get /v1/prices", "product").required = true),
    /query product: the parameter is required now/
  ],
  [
    "a parameter that is removed",
    (d) =>
      operationOf(d, "get /v1/prices").parameters.splice(
        operationOf(d, "get /v1/prices").parameters.findIndex(({ name }: Draft) => name === "product"),
        1
      ),
    /query product: the parameter is gone/
  ],
  [
    "a body's field that becomes required",
    (d) => (bodyOf(d, "CreateCustomer").required = ["email"]),
    /CreateCustomer.*\.email: the field is required now/
  ],
  [
    "a body's field that is removed",
    (d) => delete bodyOf(d, "CreateCustomer").properties.phone,
    /CreateCustomer.*\.phone: the field is gone/
  ],
  [
    "a body that becomes required",
    (d) => (operationOf(d, "post /v1/customers").requestBody.required = true),
    /POST \/v1\/customers body: is required now/
  ],
  [
    "a shorter text",
    (d) => (parameterOf(d, "get /v1/customers", "email").schema.maxLength = 20),
    /email: its maxLength was 320 and is 20/
  ],
  [
    "a smaller number",
    (d) => (parameterOf(d, "get /v1/customers", "limit").schema.maximum = 50),
    /limit: its maximum was 100 and is 50/
  ],
  [
    "a new bound",
    (d) => (parameterOf(d, "get /v1/customers", "email").schema.pattern = "@"),
    /email: its pattern was nothing and is "@"/
  ],
  [
    "a value that is no longer accepted",
    (d) => bodyOf(d, "CreateRefund").properties.reason.anyOf[0].enum.pop(),
    /CreateRefund.*reason: can no longer be ".*"/
  ],
  [
    "null that is no longer accepted",
    (d) => (bodyOf(d, "CreateRefund").properties.reason = bodyOf(d, "CreateRefund").properties.reason.anyOf[0]),
    /CreateRefund.*reason: can no longer be null/
  ],
  [
    "other credentials",
    (d) => (operationOf(d, "get /v1/prices").security = [{ token: [] }]),
    /GET \/v1\/prices: accepts other credentials/
  ],
  [
    "an endpoint that is removed",
    (d) => delete d.paths["/v1/refunds"].post,
    /POST \/v1\/refunds: the endpoint is gone/
  ],
  [
    "a response that is removed",
    (d) => delete operationOf(d, "get /v1/customers/{id}").responses["404"],
    /GET \/v1\/customers\/\{id\} 404: the response is gone/
  ],
  ["an error code that is removed", (d) => delete d["x-error-codes"].card_declined, /error card_declined: is gone/],
  [
    "an error code with another status",
    (d) => (d["x-error-codes"].card_declined = ["400 payment_error"]),
    /error card_declined: no longer comes as 402 payment_error/
  ],
  [
    "an error field that is removed",
    (d) => delete bodyOf(d, "ErrorResponse").properties.error.properties.param,
    /ErrorResponse.*param: the field is gone/
  ],
  [
    "an event field that is removed",
    (d) => delete bodyOf(d, "Event").properties.livemode,
    /Event.*livemode: the field is gone/
  ],
  [
    "a webhook header that is removed",
    (d) => d.webhooks.event.post.parameters.shift(),
    /webhook event header .*: is gone/
  ]
]

const HARMLESS: ReadonlyArray<readonly [what: string, change: (draft: Draft) => unknown]> = [
  [
    "a new response field",
    (d) => {
      bodyOf(d, "Customer").properties.tax_id = { type: "string" }
      bodyOf(d, "Customer").required.push("tax_id")
    }
  ],
  [
    "a new optional parameter",
    (d) =>
      operationOf(d, "get /v1/prices").parameters.push({
        name: "shop",
        in: "query",
        required: false,
        schema: { type: "string" }
      })
  ],
  ["a new optional field of a body", (d) => (bodyOf(d, "CreateCustomer").properties.tax_id = { type: "string" })],
  ["a new endpoint", (d) => (d.paths["/v1/coupons"] = d.paths["/v1/prices"])],
  ["a new value of an enum in a response", (d) => bodyOf(d, "PaymentIntent").properties.status.enum.push("disputed")],
  ["a new error code", (d) => (d["x-error-codes"].coupon_expired = ["400 invalid_request_error"])],
  ["a code with one more status", (d) => d["x-error-codes"].card_declined.push("400 payment_error")],
  [
    "a new response",
    (d) => (operationOf(d, "get /v1/prices").responses["409"] = { $ref: "#/components/responses/Error400" })
  ],
  ["a field that becomes always present", (d) => bodyOf(d, "Price").required.push("tiers_mode")],
  ["null that is no longer returned", (d) => (bodyOf(d, "Price").properties.nickname = { type: "string" })],
  ["a longer text", (d) => (parameterOf(d, "get /v1/customers", "email").schema.maxLength = 500)],
  ["a bound that is removed", (d) => delete parameterOf(d, "get /v1/customers", "created").schema.pattern],
  ["an additional accepted value", (d) => bodyOf(d, "CreateRefund").properties.reason.anyOf[0].enum.push("other")],
  [
    "an additional accepted type",
    (d) =>
      (parameterOf(d, "get /v1/customers", "email").schema = {
        anyOf: [parameterOf(d, "get /v1/customers", "email").schema, { type: "integer" }]
      })
  ],
  ["a way more to authenticate", (d) => operationOf(d, "get /v1/prices").security.push({ token: [] })],
  ["other words", (d) => (operationOf(d, "get /v1/prices").summary = "List all prices")],
  [
    "a component with another name",
    (d) => {
      d.components.schemas.Label = bodyOf(d, "Metadata")
      bodyOf(d, "Price").properties.metadata = { $ref: "#/components/schemas/Label" }
    }
  ],
  ["a component that is written out", (d) => (bodyOf(d, "Price").properties.metadata = bodyOf(d, "Metadata"))],
  [
    "a new event type's header",
    (d) =>
      d.webhooks.event.post.parameters.push({ name: "X-New", in: "header", required: true, schema: { type: "string" } })
  ]
]

describe("what breaks callers", () => {
  for (const [what, change, told] of BREAKING) {
    it(`is ${what}`, () => {
      const breaks = after(change)
      assert.isNotEmpty(breaks)
      for (const each of breaks) assert.match(each, told)
    })
  }

  for (const [what, change] of HARMLESS) it(`is not ${what}`, () => assert.deepStrictEqual(after(change), []))

  it("is nothing in an unchanged contract", () => {
    assert.deepStrictEqual(breaksOf(contract, structuredClone(contract)), [])
  })

  it("is allowed in a new version of the API, which the document names", () => {
    const draft = structuredClone(contract) as Draft
    assert.deepStrictEqual([...versionsOf(contract)], ["2026-03-09"])
    for (const parameter of Object.values(draft.paths as Draft).flatMap((methods: Draft) => Object.values(methods))) {
      for (const each of (parameter as Draft).parameters) {
        if (each.name === "X-API-Version") each.schema.enum.push("2027-02-01")
      }
    }
    assert.deepStrictEqual([...versionsOf(draft)], ["2026-03-09", "2027-02-01"])
    assert.deepStrictEqual(breaksOf(contract, draft), [])
  })
})
