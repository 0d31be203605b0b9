/**
 * The OpenAPI 3.1 document of the protocol of gateways, derived from its messages. `npm run check` compares it with the
 * file `docs/openapi/gateway-1.json`; run with `--write`, this file writes that one.
 */
import { Schema } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import * as Messages from "../../../src/processors/protocol/Messages.ts"

export const FILE = Path.join(import.meta.dirname, "../../../docs/openapi/gateway-1.json")

type Json = Readonly<Record<string, unknown>>

const OPERATION = {
  id: "op_1fK3dV9ab7Qe0TzXw5MnR2Lc",
  kind: "authorize",
  payment: "pi_1fK3dV9ab7Qe0TzXw5MnR2Lc",
  reference: null,
  amount: 2000,
  currency: "usd",
  token: "tok_approve",
  capture: "automatic",
  authenticated: false,
  off_session: false,
  return_url: "https://pay.till.example/authenticate/pi_1fK3dV9ab7Qe0TzXw5MnR2Lc/return?operation=op_…&secret=…",
  customer: null,
  description: "Order 6735",
  descriptor: null,
  billing_details: null
}
const { currency, amount, id, payment } = OPERATION
const STATE = { id, status: "approved", payment, reference: "gw_6735", amount, currency, at: 1_795_000_000 }

const REQUESTS: Readonly<Record<string, Json>> = {
  check: { type: "check" },
  "token.describe": { type: "token.describe", token: "tok_approve" },
  "operation.execute": { type: "operation.execute", operation: OPERATION },
  "operation.retrieve": { type: "operation.retrieve", id },
  "operation.abandon": { type: "operation.abandon", id },
  "operation.list": { type: "operation.list", since: 1_795_000_000, after: null, limit: 100 }
}

const ANSWERS: Readonly<Record<string, Json>> = {
  check: {
    protocol: 1,
    name: "Acme Payments",
    livemode: false,
    currencies: ["eur", "usd"],
    fields: { frame: "https://gateway.example/fields" },
    test_tokens: { approve: "tok_approve", decline: "tok_decline", challenge: "tok_challenge", pending: null }
  },
  "token.describe": { brand: "visa", last4: "4242", exp_month: 12, exp_year: 2034, funding: "credit", country: "US" },
  approved: STATE,
  declined: { ...STATE, status: "declined", decline: { code: "insufficient_funds", message: null } },
  challenge: { ...STATE, status: "challenge", challenge: { url: "https://gateway.example/challenge/6735" } },
  not_executed: { id, status: "not_executed" },
  never_seen: { id, status: "never_seen" },
  "operation.list": { data: [STATE], next: null }
}

const NOTIFICATIONS: Readonly<Record<string, Json>> = {
  "operation.updated": { type: "operation.updated", operation: { id, payment } },
  "refund.created": { type: "refund.created", payment, refund: { reference: "gwr_6735", amount: 500 } },
  "dispute.updated": { type: "dispute.updated", dispute: { reference: "gwd_6735", payment } }
}

const examplesOf = (values: Readonly<Record<string, Json>>) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { value }]))

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

const HEADERS = Object.entries({
  "webhook-id": ["msg_5f1c", "An id of the message. An answer has that of its request."],
  "webhook-timestamp": ["1795000000", "Unix time in seconds. A message counts for 300 seconds before and after it."],
  "webhook-signature": [
    "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    "`v1,` and the base64 of the HMAC-SHA256 of `id.timestamp.body`; several, separated by spaces, while secrets roll."
  ]
} as const)
const SIGNATURE = Object.fromEntries(
  HEADERS.map(([name, [example, description]]) => [
    name,
    { required: true, description, schema: { type: "string" }, example }
  ])
)
const SIGNED_PARAMETERS = HEADERS.map(([name, [example, description]]) => ({
  name,
  in: "header",
  required: true,
  description,
  schema: { type: "string" },
  example
}))

const json = (schema: Json, examples: Readonly<Record<string, Json>>) => ({
  "application/json": { schema, examples: examplesOf(examples) }
})

const errorResponse = (description: string, code: string) => ({
  description,
  headers: SIGNATURE,
  content: json(ref("Error"), { [code]: { error: { code, message: "A sentence for a developer.", param: null } } })
})

/** The schemas of all messages by name, with references among each other. */
const schemas = (): Json => {
  const of = [Messages.Request, Messages.State, Messages.Listed, Messages.Checked, Messages.TokenDescribed]
  const all = [...of, Messages.ErrorBody, Messages.Notification].map((schema) => Schema.toJsonSchemaDocument(schema))
  const text = JSON.stringify(Object.assign({}, ...all.map(({ definitions }) => definitions)))
  return JSON.parse(
    text
      .replaceAll("#/$defs/", "#/components/schemas/")
      .replaceAll(`"minimum":${Number.MIN_SAFE_INTEGER},"maximum":${Number.MAX_SAFE_INTEGER}`, '"format":"int64"')
  ) as Json
}

const oneOf = (schema: Schema.Top) =>
  JSON.parse(
    JSON.stringify(Schema.toJsonSchemaDocument(schema).schema)
      .replaceAll("#/$defs/", "#/components/schemas/")
      .replace('"anyOf"', '"oneOf"')
  ) as Json

export const make = (): Json => ({
  openapi: "3.1.0",
  info: {
    title: "Till gateway protocol",
    version: String(Messages.PROTOCOL),
    description:
      "A gateway that serves this protocol carries out the payments of a Till installation. Till sends every request to " +
      "the gateway's one URL. Requests, answers and messages are signed as in Standard Webhooks, and an answer that is " +
      "not signed is no answer: the operation's outcome is then unknown to Till, which asks again. " +
      "`till processor check URL --secret-file FILE` tries the promises of the protocol.",
    license: { name: "Apache 2.0", identifier: "Apache-2.0" },
    contact: { name: "Till", url: "https://till.example/docs/guide/gateways" }
  },
  servers: [{ url: "https://gateway.example/till", description: "The URL of the gateway" }],
  tags: [
    { name: "Gateway", description: "Requests of Till to the gateway" },
    { name: "Till", description: "Messages of the gateway to Till" }
  ],
  security: [{ signature: [] }],
  paths: {
    "/": {
      post: {
        operationId: "call",
        summary: "Check, describe, execute, retrieve, abandon or list",
        description:
          "The `type` names the request. The id of an operation is its idempotency key: the same id and body get the " +
          `same state for ${Messages.KEPT_DAYS} days, over restarts and at the same time.`,
        tags: ["Gateway"],
        parameters: [
          ...SIGNED_PARAMETERS,
          { name: "till-protocol", in: "header", required: true, schema: { type: "string", enum: ["1"] } }
        ],
        requestBody: { required: true, content: json(oneOf(Messages.Request), REQUESTS) },
        responses: {
          200: {
            description: "The state of an operation, declines included, or the answer to another request.",
            headers: SIGNATURE,
            content: json({ oneOf: ["State", "Listed", "Checked", "TokenDescribed"].map(ref) }, ANSWERS)
          },
          400: errorResponse("Refused: never carried out, and never will be.", "unknown_token"),
          401: errorResponse("The request's signature is not valid.", "unauthorized"),
          409: errorResponse("The id belongs to an operation with another body.", "mismatch"),
          429: errorResponse("Not carried out, because there were too many requests.", "unavailable"),
          503: errorResponse("Not carried out, because the gateway cannot at the moment.", "unavailable")
        }
      }
    }
  },
  webhooks: {
    notification: {
      post: {
        operationId: "notify",
        summary: "Report a change",
        description:
          "Sent to `/processors/{prc}/webhooks` of Till, until it is confirmed. It only causes Till to retrieve the " +
          "operation, so messages may be late, repeated and in any order.",
        tags: ["Till"],
        parameters: SIGNED_PARAMETERS,
        requestBody: { required: true, content: json(oneOf(Messages.Notification), NOTIFICATIONS) },
        responses: {
          200: { description: "The message has been applied, or there is nothing to apply." },
          400: { description: "The message is not one of the protocol." },
          401: { description: "The message is not signed by the gateway." },
          404: { description: "There is no such processor." },
          413: { description: "The message is longer than 256 KiB." },
          429: { description: "Too many messages without a valid signature came from the address." },
          503: { description: "Send the message again later." }
        }
      }
    }
  },
  components: {
    schemas: schemas(),
    securitySchemes: {
      signature: {
        type: "apiKey",
        in: "header",
        name: "webhook-signature",
        description: "A signature with a secret that Till and the gateway share: `whsec_` and base64 of 24 to 64 bytes."
      }
    }
  }
})

/** Returns a finding if the file is not the document of today's messages. */
export const differences = (): ReadonlyArray<string> => {
  const written = fs.existsSync(FILE) ? fs.readFileSync(FILE, "utf8") : ""
  return written === textOf(make())
    ? []
    : ["docs/openapi/gateway-1.json differs from the messages: run node test/api/openapi/GatewayDocument.ts --write"]
}

const textOf = (document: Json): string => `${JSON.stringify(document, null, 2)}\n`

if (import.meta.main && process.argv.includes("--write")) fs.writeFileSync(FILE, textOf(make()))
