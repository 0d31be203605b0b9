/** The document is valid OpenAPI 3.1, describes every operation completely, and has valid examples. */
import { Validator } from "@seriousme/openapi-schema-validator"
import { assert, describe, it } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Redacted } from "effect"
import { CreateCheckoutSession } from "../../../src/domain/CheckoutSession.ts"
import type { Operation } from "../../../src/api/openapi/Document.ts"
import * as Document from "../../../src/api/openapi/Document.ts"
import type { JsonSchema } from "../../../src/api/openapi/Examples.ts"
import { OUTCOMES } from "../../../src/api/openapi/Outcomes.ts"
import { EMITTED_EVENT_TYPES } from "../../../src/domain/Event.ts"
import { ruleOf } from "../../../src/domain/Rule.ts"
import { CreatePaymentIntent } from "../../../src/domain/PaymentIntent.ts"
import { PUBLISHABLE_FIELDS } from "../../../src/domain/Publishable.ts"
import { RETRY_AFTER_SECONDS } from "../../../src/webhooks/AttemptResult.ts"
import { signatureOf } from "../../../src/domain/WebhookSignature.ts"

const document = Document.make("https://pay.example.test")

const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => [`${method} ${path}`, operation] as const)
)

/** Compiles schemas within the document, because they refer to its components. */
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
ajv.addSchema(document, "document")

const assertValid = (pointer: ReadonlyArray<string>, value: unknown) => {
  const reference = pointer
    .map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1")))
    .join("/")
  const validate = ajv.compile({ $ref: `document#/${reference}` })
  assert.isTrue(validate(value), `${reference}: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(value)}`)
}

/** Returns the pointer to a response: in its operation, or among the components. */
const pointerOf = (response: object, at: ReadonlyArray<string>): ReadonlyArray<string> => {
  const found = "$ref" in response ? String(response.$ref).slice("#/".length).split("/") : at
  return [...found, "content", "application/json", "schema"]
}

const parameterOf = ({ parameters }: Operation, name: string) => parameters.find((parameter) => parameter.name === name)

describe("document", () => {
  it("is valid OpenAPI 3.1", async () => {
    const result = await new Validator().validate(structuredClone(document) as unknown as Record<string, unknown>)
    assert.isTrue(result.valid, JSON.stringify(result.errors))
    assert.strictEqual(document.openapi, "3.1.0")
    assert.deepStrictEqual(document.servers, [{ url: "https://pay.example.test", description: "This installation" }])
    assert.deepStrictEqual(document.info.license, { name: "Apache 2.0", identifier: "Apache-2.0" })
  })

  it("describes the headers, security and errors of every operation", () => {
    for (const [route, operation] of operations) {
      const isCommand = route.startsWith("post ")
      assert.deepInclude(parameterOf(operation, "X-API-Version"), { in: "header", required: false }, route)
      const key = parameterOf(operation, "Idempotency-Key")
      if (isCommand) assert.deepInclude(key, { in: "header", required: true }, route)
      else assert.isUndefined(key, route)
      assert.deepStrictEqual(operation.security, [{ apiKey: [] }], route)
      const errors = isCommand ? [409, 413, 415, 422] : []
      const missing = OUTCOMES[operation.operationId]!.errors.includes("resource_missing") ? [404] : []
      const expected = [200, 400, 401, 403, 429, 500, 503, ...errors, ...missing].map(String)
      const declines = Object.keys(operation.responses).includes("402") ? ["402"] : []
      assert.sameMembers(Object.keys(operation.responses), [...expected, ...declines], route)
      if (!isCommand) assert.doesNotHaveAnyKeys(operation.responses, ["402", "409", "413", "415", "422"], route)
      assert.match(operation.summary, /^[A-Z][A-Za-z ]+$/, route)
      assert.match(operation.description ?? "", /^[A-Z`'].*\.$/s, route)
      for (const { description, name } of operation.parameters) assert.isNotEmpty(description, `${route} ${name}`)
      for (const name of [...route.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)) {
        assert.deepInclude(parameterOf(operation, name), { in: "path", required: true }, route)
      }
    }
    const ids = operations.map(([, { operationId }]) => operationId)
    assert.strictEqual(new Set(ids).size, ids.length)
  })

  it("has an integer limit, and bodies that are optional only if none of their members is required", () => {
    for (const [route, operation] of operations) {
      const limit = parameterOf(operation, "limit")
      if (limit !== undefined) {
        assert.deepStrictEqual(limit.schema, { type: "integer", minimum: 1, maximum: 100, default: 10 }, route)
      }
    }
    const waiting = operations.flatMap(([route, operation]) => {
      const wait = parameterOf(operation, "wait")
      return wait === undefined ? [] : [[route, wait.schema]]
    })
    const schema = { type: "integer", minimum: 0, maximum: 25 }
    assert.deepStrictEqual(waiting, [
      ["get /v1/webhook_endpoints/{id}", schema],
      ["get /v1/events", schema]
    ])
    const bodyOf = (id: string) => operations.find(([, { operationId }]) => operationId === id)?.[1].requestBody
    assert.isTrue(bodyOf("payment_intents.create")?.required)
    assert.isFalse(bodyOf("payment_intents.confirm")?.required)
    assert.isFalse(bodyOf("customers.create")?.required)
  })

  it("marks required and nullable fields, and leaves responses open and requests closed", () => {
    const { Customer, CreateCustomer, CreatePaymentIntent, PaymentIntent } = document.components.schemas
    assert.includeMembers([...Customer!.required!], ["id", "email", "metadata"])
    assert.deepStrictEqual(Customer!.properties!["email"]!.anyOf, [{ type: "string" }, { type: "null" }])
    assert.notProperty(Customer, "additionalProperties")
    assert.isFalse(CreateCustomer!.additionalProperties)
    assert.deepStrictEqual(CreatePaymentIntent!.required, ["amount", "currency"])
    assert.notInclude([...PaymentIntent!.required!], "last_payment_error")
    assertValid(["components", "schemas", "Customer", "properties", "name"], null)
  })

  it("names the operations for publishable keys, with their parameter, and those of test mode", () => {
    const saying = (text: string) =>
      operations.filter(([, { description }]) => description?.includes(text)).map(([route]) => route)
    assert.sameMembers(saying("Also accepts a publishable key."), ["post /v1/payment_methods"])
    const withSecret = (where: string) =>
      saying(`Also accepts a publishable key, with the object's \`client_secret\` in the ${where}.`)
    assert.sameMembers(withSecret("query"), [
      "get /v1/payment_intents/{id}",
      "get /v1/checkout_sessions/{id}",
      "get /v1/checkout_sessions/{id}/line_items"
    ])
    const confirmations = ["post /v1/payment_intents/{id}/confirm", "post /v1/checkout_sessions/{id}/confirm"]
    assert.sameMembers(withSecret("body"), confirmations)
    const helpers = operations.map(([route]) => route).filter((route) => route.includes("/test_helpers/"))
    assert.sameMembers(saying("Test mode only"), helpers)
  })

  it("describes every field, without alternatives of one", () => {
    const problems: Array<string> = []
    const visit = (schema: JsonSchema | undefined, at: string): void => {
      if (schema === undefined) return
      if (schema.anyOf?.length === 1 || schema.allOf !== undefined) problems.push(at)
      for (const [name, member] of Object.entries(schema.properties ?? {})) {
        if (member.description === undefined) problems.push(`${at}.${name}`)
        visit(member, `${at}.${name}`)
      }
      for (const one of schema.anyOf ?? []) visit(one, at)
      visit(schema.items, `${at}[]`)
    }
    for (const [name, schema] of Object.entries(document.components.schemas)) visit(schema, name)
    for (const [route, { parameters, responses }] of operations) {
      for (const { name, schema } of parameters) visit(schema, `${route} ${name}`)
      visit(Document.responseOf(responses["200"]!, document).content["application/json"].schema, route)
    }
    assert.deepStrictEqual(problems, [])
  })

  it("has a text for every tag, and no event type that is never emitted", () => {
    assert.sameMembers(
      document.tags.map(({ name }) => name),
      [...new Set(operations.flatMap(([, { tags }]) => tags))]
    )
    for (const { description } of document.tags) assert.match(description, /\.$/)
    const { Event } = document.components.schemas
    assert.deepStrictEqual(Event!.properties!["type"]!.enum, Object.keys(EMITTED_EVENT_TYPES))
  })

  it("lists the fields that a publishable key sees, if it does not see all", () => {
    const open: Readonly<Record<string, string>> = {
      "get /v1/payment_intents/{id}": "ExpandablePaymentIntent",
      "post /v1/payment_intents/{id}/confirm": "PaymentIntent",
      "get /v1/checkout_sessions/{id}": "CheckoutSession",
      "post /v1/checkout_sessions/{id}/confirm": "CheckoutSession"
    }
    for (const [route, { description = "", responses }] of operations) {
      const { schema } = Document.responseOf(responses["200"]!, document).content["application/json"]
      const name = open[route]
      if (name === undefined) {
        assert.notInclude(JSON.stringify(schema), "/Publishable", route)
      } else {
        const of = (name: string) => ({ $ref: `#/components/schemas/${name}` })
        assert.deepStrictEqual(schema, { anyOf: [of(name), of(`Publishable${name.replace("Expandable", "")}`)] })
        assert.match(description, /It sees only these fields of the (PaymentIntent|session): `id`, `object`, .*`\./)
      }
    }
    const { PublishableCheckoutSession, PublishablePaymentIntent } = document.components.schemas
    for (const [type, shown, optional] of [
      ["payment_intent", PublishablePaymentIntent!, ["last_payment_error"]],
      ["checkout.session", PublishableCheckoutSession!, ["customer_details", "locale", "phone_number_collection"]]
    ] as const) {
      const fields = [...PUBLISHABLE_FIELDS[type]!]
      assert.sameMembers(Object.keys(shown.properties!), fields)
      assert.sameMembers([...shown.required!, ...optional], fields)
    }
    // A publishable key sees all fields of a line.
    assert.sameMembers(Object.keys(document.components.schemas["LineItem"]!.properties!), [
      ...PUBLISHABLE_FIELDS["item"]!
    ])
  })

  it("warns of parameters that can cost callers money or a 400, without changing their rules", () => {
    const of = (schema: string, name: string) =>
      document.components.schemas[schema]!.properties![name]!.description ?? ""
    const session = CreateCheckoutSession.fields
    assert.match(of("CreateCheckoutSession", "currency"), /Nothing is converted.* 1000 in `jpy`.* \$10\.00 with `usd`/)
    assert.strictEqual(ruleOf(session.currency), "a three-letter currency code")
    assert.match(of("CreateCheckoutSession", "success_url"), /Required if `ui_mode` is `hosted`/)
    assert.match(ruleOf(session.success_url), /^an absolute URL/)
    assert.match(of("CreateCheckoutSession", "expires_at"), /30 minutes to 24 hours/)
    assert.strictEqual(ruleOf(session.expires_at), "a Unix timestamp in seconds")
    assert.match(of("CreateCheckoutSession", "line_items"), /total is at most 999999999999/)
    assert.strictEqual(ruleOf(session.line_items), "an array of 1 to 100 line items")
    const intent = CreatePaymentIntent.fields
    for (const name of ["payment_method_data", "payment_method_type"] as const) {
      assert.strictEqual(of("CreatePaymentIntent", name), "Only with `confirm: true`.")
      assert.notInclude(of("ConfirmPaymentIntent", name), "confirm: true")
    }
    const back = of("ConfirmPaymentIntent", "return_url")
    assert.match(back, /with `payment_intent`, `payment_intent_client_secret` and `redirect_status`/)
    assert.strictEqual(of("CreatePaymentIntent", "return_url"), `Only with \`confirm: true\`. ${back}`)
    const filledIn = "`{CHECKOUT_SESSION_ID}` in it becomes the session's ID."
    assert.strictEqual(of("ConfirmCheckoutSession", "return_url"), `${back} ${filledIn}`)
    assert.match(of("CreateCheckoutSession", "success_url"), /`\{CHECKOUT_SESSION_ID\}` in it becomes the session's ID/)
    assert.match(ruleOf(intent.return_url), /^an absolute URL/)
    assert.strictEqual(ruleOf(intent.amount), "a positive integer")
    for (const [schema, name] of [
      ["CreatePaymentIntent", "amount"],
      ["UpdatePaymentIntent", "amount"],
      ["CreatePrice", "unit_amount"]
    ] as const) {
      assert.match(of(schema, name), / At most 999999999999\.$/)
    }
  })

  it("has every error once, and not in each operation", () => {
    const names = new Set<string>()
    for (const [route, { responses }] of operations) {
      for (const [status, response] of Object.entries(responses)) {
        const reference = "$ref" in response ? response.$ref : null
        if (status === "200") assert.isNull(reference, route)
        else assert.match(reference ?? "", new RegExp(`/(Command)?Error${status}$`), route)
        names.add(reference?.split("/").at(-1) ?? "")
      }
    }
    names.delete("")
    assert.sameMembers(Object.keys(document.components.responses), [...names])
    const ofCommands = ["Idempotency-Key", "Idempotent-Replayed", "Original-Request"]
    for (const [name, { content, headers }] of Object.entries(document.components.responses)) {
      assert.deepStrictEqual(content["application/json"].schema, { $ref: "#/components/schemas/ErrorResponse" }, name)
      if (name.startsWith("Command")) assert.includeMembers(Object.keys(headers ?? {}), ofCommands, name)
      else assert.doesNotHaveAnyKeys(headers ?? {}, ofCommands, name)
    }
  })

  it("has an example for every body and every response, each of them valid", () => {
    for (const [route, operation] of operations) {
      const [method = "", path = ""] = route.split(" ", 2)
      const at = ["paths", path, method]
      if (operation.requestBody !== undefined) {
        const media = operation.requestBody.content["application/json"]
        assertValid([...at, "requestBody", "content", "application/json", "schema"], media.example)
      }
      for (const [status, response] of Object.entries(operation.responses)) {
        const { example } = Document.responseOf(response, document).content["application/json"]
        assert.isDefined(example, `${route} ${status}`)
        assertValid(pointerOf(response, [...at, "responses", status]), example)
      }
    }
  })

  it("describes webhooks: the headers, the real signature, the body, and the schedule", () => {
    const { parameters, requestBody, responses } = document.webhooks["event"]!.post
    assert.deepStrictEqual(
      parameters.map(({ name }) => name),
      ["X-Signature", "X-Webhook-Id", "X-Webhook-Attempt"]
    )
    const pattern = new RegExp(parameters[0]!.schema.pattern!)
    const secrets = ["whsec_new", "whsec_old"].map((secret) => Redacted.make(secret))
    for (const some of [secrets, secrets.slice(1)]) assert.match(signatureOf(some, 1_709_913_600, "{}"), pattern)
    const at = ["webhooks", "event", "post", "requestBody", "content", "application/json"]
    assertValid([...at, "schema"], requestBody.content["application/json"].example)
    assert.deepStrictEqual(RETRY_AFTER_SECONDS, [60, 300, 1800, 7200, 28_800, 86_400, 259_200])
    assert.include(responses["default"]!.description, "1 and 5 minutes, half an hour, 2, 8, 24 and 72 hours")
  })
})
