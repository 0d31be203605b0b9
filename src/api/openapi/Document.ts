/**
 * The OpenAPI 3.1 document of the contract.
 *
 * Derived from the contract. This file adds the parts that the contract's schemas cannot express: optional bodies,
 * header names in their usual spelling, the meaning of each status, webhooks, and examples.
 */
import { OpenApi } from "effect/http-api"
import { Api } from "../Api.ts"
import { exampleOf, type JsonSchema, type JsonSchemas, resolve } from "./Examples.ts"
import { projections, withKeyUse } from "./KeyUse.ts"
import { LIMIT_DEFAULT, LIMIT_MAX } from "../List.ts"
import type { Content, Document, Operation, Parameter, Response, ResponseReference } from "./OpenApi.ts"
import { STATUSES } from "./Statuses.ts"
import { webhooks } from "./Webhooks.ts"

export type { Document, Operation, Parameter, Response } from "./OpenApi.ts"

export const make = (publicUrl: string): Document => {
  const derived = OpenApi.fromApi(Api) as unknown as Document
  const { schemas } = derived.components
  const requests = requestSchemas(derived)
  const open = Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, requests.has(name) ? schema : extensible(schema)])
  )
  return {
    ...derived,
    info: { ...derived.info, description: DESCRIPTION },
    servers: [{ url: publicUrl }],
    paths: mapValues(derived.paths, (item, path) =>
      mapValues(item, (operation, method) => withKeyUse(refineOperation(operation, `${method} ${path}`, open), open))
    ),
    webhooks: webhooks(open),
    components: {
      schemas: { ...open, ...projections(open) },
      responses: sharedResponses(derived, open),
      securitySchemes: {
        apiKey: {
          type: "http",
          scheme: "basic",
          description:
            "The API key is the username; the password is empty. `sk_test_…` and `sk_live_…` are secret; `pk_test_…` " +
            "and `pk_live_…` are publishable, for the few operations whose description names them."
        }
      }
    }
  }
}

/** Returns the response that an operation declares, inline or by reference. */
export const responseOf = (response: Response | ResponseReference, { components }: Document): Response => {
  if (!("$ref" in response)) return response
  const found = components.responses[response.$ref.slice(SHARED.length)]
  if (found === undefined) throw new Error(`The document refers to ${response.$ref}, which it does not have`)
  return found
}

const SHARED = "#/components/responses/"
const SUCCESS = "200"

/** Returns the name of a shared error response. Commands' responses have more headers, for the key and for replays. */
const sharedName = (status: string, isCommand: boolean): string => `${isCommand ? "CommandError" : "Error"}${status}`

/** Collects the error responses of all operations, each once: their bodies are all the same envelope. */
const sharedResponses = ({ paths }: Document, schemas: JsonSchemas): Readonly<Record<string, Response>> => {
  const shared: Record<string, Response> = {}
  for (const item of Object.values(paths)) {
    for (const [method, { responses }] of Object.entries(item)) {
      const isCommand = method === "post"
      for (const [status, response] of Object.entries(responses)) {
        if (status === SUCCESS) continue
        shared[sharedName(status, isCommand)] ??= refineResponse(response as Response, status, { isCommand, schemas })
      }
    }
  }
  return shared
}

const DESCRIPTION =
  "A payments service that you run yourself. Amounts are in the smallest unit of their currency, times in Unix " +
  "seconds. Every POST carries an `Idempotency-Key`; a repetition with the same key and request gets the first " +
  "response. An operation accepts secret keys only, unless its description also names publishable ones."

const mapValues = <A, B>(record: Readonly<Record<string, A>>, f: (value: A, key: string) => B): Record<string, B> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, f(value, key)]))

const refineOperation = (operation: Operation, route: string, schemas: JsonSchemas): Operation => {
  const { requestBody, responses, ...rest } = operation
  const isCommand = route.startsWith("post ")
  return {
    ...rest,
    summary: rest.summary ?? summaryOf(operation.operationId),
    parameters: operation.parameters.map(refineParameter),
    ...(requestBody !== undefined && { requestBody: refineBody(requestBody.content, schemas) }),
    responses: mapValues(responses, (response, status) =>
      status === SUCCESS
        ? listAt(route, refineResponse(response as Response, status, { isCommand, schemas }))
        : { $ref: `${SHARED}${sharedName(status, isCommand)}` }
    )
  }
}

/** `payment_intents.capture` is "Capture a payment intent", `customers.list` is "List customers". */
const summaryOf = (operationId: string): string => {
  const [group = "", name = ""] = operationId.split(".", 2)
  const plural = group.replaceAll("_", " ")
  const verb = name.replaceAll("_", " ")
  const sentence = verb.charAt(0).toUpperCase() + verb.slice(1)
  if (name === "list" || name === "search") return `${sentence} ${plural}`
  const singular = plural.replace(/s$/, "")
  const object = `${/^[aeio]/.test(singular) ? "an" : "a"} ${singular}`
  return sentence.includes(" ") ? `${sentence} of ${object}` : `${sentence} ${object}`
}

const HEADERS: Readonly<Record<string, string>> = {
  "idempotency-key": "Idempotency-Key",
  "x-api-version": "X-API-Version"
}

/** Moves the description from the schema to the parameter. `limit` is text on the wire, documented as an integer. */
const refineParameter = (parameter: Parameter): Parameter => {
  const { description, ...schema } = parameter.schema
  const isLimit = parameter.in === "query" && parameter.name === "limit"
  return {
    ...parameter,
    name: parameter.in === "header" ? (HEADERS[parameter.name] ?? parameter.name) : parameter.name,
    ...(description !== undefined && { description }),
    schema: isLimit ? { type: "integer", minimum: 1, maximum: LIMIT_MAX, default: LIMIT_DEFAULT } : schema
  }
}

/** Marks a body as optional if it has no required member: an empty body is an empty object. */
const refineBody = ({ "application/json": { schema } }: Content, schemas: JsonSchemas) => ({
  required: (resolve(schema, schemas).required ?? []).length > 0,
  content: { "application/json": { schema, example: exampleOf(schema, { schemas, requiredOnly: true }) } }
})

const refineResponse = (
  { content }: Response,
  status: string,
  { isCommand, schemas }: { readonly isCommand: boolean; readonly schemas: JsonSchemas }
): Response => {
  const { schema: declared } = content["application/json"]
  const schema = extensible(declared)
  const means = STATUSES[status]
  return {
    description: means?.description ?? "Done.",
    headers: { ...RESPONSE_HEADERS, ...(isCommand && COMMAND_HEADERS), ...means?.headers },
    content: {
      "application/json": { schema, example: means?.example ?? exampleOf(schema, { schemas, requiredOnly: false }) }
    }
  }
}

/** Adds the list's own URL and the cursor of its next page to the example, which the schema does not contain. */
const listAt = (route: string, response: Response): Response => {
  const { example, schema } = response.content["application/json"]
  const { object } = (example ?? {}) as { readonly object?: unknown }
  if (object !== "list" && object !== "search_result") return response
  const { data } = example as { readonly data: ReadonlyArray<{ readonly id: string }> }
  const path = route.slice(route.indexOf("/"))
  if (object === "search_result") {
    const found = { object, data, has_more: false, url: path, next_page: null }
    return { ...response, content: { "application/json": { schema, example: found } } }
  }
  const list = { object: "list", data, has_more: true, url: path, next_cursor: data[0]?.id ?? null }
  return { ...response, content: { "application/json": { schema, example: list } } }
}

const header = (description: string) => ({ description, schema: { type: "string" } })

const RESPONSE_HEADERS = {
  "X-Request-Id": header("The request's own ID, `req_…`."),
  "X-API-Version": header("The API version of the response."),
  "Cache-Control": header("`no-store`."),
  "X-Content-Type-Options": header("`nosniff`."),
  "X-RateLimit-Limit": header("The requests of this kind allowed per minute. Absent without rate limits."),
  "X-RateLimit-Remaining": header("The requests left in this minute. Absent without rate limits.")
}

const COMMAND_HEADERS = {
  "Idempotency-Key": header("The request's own key. Absent without a valid one."),
  "Idempotent-Replayed": header("`true` if this is the response to an earlier request with the same key."),
  "Original-Request": header("The ID of that earlier request.")
}

/** Allows further fields in responses, which the API adds without a new version. Requests allow none. */
const extensible = (schema: JsonSchema): JsonSchema =>
  JSON.parse(JSON.stringify(schema), (_, value) => {
    if (typeof value !== "object" || value === null || value.additionalProperties !== false) return value
    const { additionalProperties: _closed, ...open } = value
    return open
  }) as JsonSchema

/** Collects the names of the schemas that request bodies refer to. */
const requestSchemas = ({ components, paths }: Document): ReadonlySet<string> => {
  const found = new Set<string>()
  const collect = (value: unknown): void => {
    for (const [, name] of JSON.stringify(value ?? null).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      if (name === undefined || found.has(name)) continue
      found.add(name)
      collect(components.schemas[name])
    }
  }
  for (const item of Object.values(paths)) for (const { requestBody } of Object.values(item)) collect(requestBody)
  return found
}
