/**
 * The OpenAPI 3.1 document of the contract.
 *
 * Derived from the contract. This file adds the parts that the contract's schemas cannot express: optional bodies,
 * header names in their usual spelling, the meaning of each status, webhooks, and examples.
 */
import { OpenApi } from "effect/http-api"
import { Api } from "../Api.ts"
import { EMITTED_EVENT_TYPES } from "../../domain/Event.ts"
import { exampleOf, type JsonSchema, type JsonSchemas, resolve } from "./Examples.ts"
import { projections, withKeyUse } from "./KeyUse.ts"
import { LIMIT_DEFAULT, LIMIT_MAX, WAIT_SECONDS_MAX } from "../List.ts"
import type { Content, Document, Operation, Parameter, Response, ResponseReference } from "./OpenApi.ts"
import { OPERATION_TEXTS, PARAMETER_TEXTS } from "./OperationTexts.ts"
import { OUTCOMES } from "./Outcomes.ts"
import { filledIn, recipeOf } from "./Recipes.ts"
import { refined } from "./Schemas.ts"
import { STATUSES } from "./Statuses.ts"
import { TAGS } from "./Tags.ts"
import { webhooks } from "./Webhooks.ts"

export type { Document, Operation, Parameter, Response } from "./OpenApi.ts"

export const make = (publicUrl: string): Document => {
  const derived = OpenApi.fromApi(Api) as unknown as Document
  const requests = requestSchemas(derived)
  const open = withEmittedTypes(
    mapValues(derived.components.schemas, (schema, name) => {
      const described = refined(schema, [name])
      return requests.has(name) ? described : extensible(described)
    })
  )
  return {
    ...derived,
    info: {
      ...derived.info,
      description: DESCRIPTION,
      license: { name: "Apache 2.0", identifier: "Apache-2.0" },
      contact: { name: "Till", url: `${publicUrl}/docs` }
    },
    servers: [{ url: publicUrl, description: "This installation" }],
    tags: TAGS.map(({ description, name }) => ({ name, description })),
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

/** Leaves the types that are only reserved out of the type of an event. */
const withEmittedTypes = (schemas: JsonSchemas): JsonSchemas => {
  const { Event } = schemas
  const type = { ...Event!.properties!["type"], enum: Object.keys(EMITTED_EVENT_TYPES) }
  return { ...schemas, Event: { ...Event, properties: { ...Event!.properties, type } } }
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
  const { operationId, requestBody, responses, ...rest } = operation
  const isCommand = route.startsWith("post ")
  const description = rest.description ?? OPERATION_TEXTS[operationId]
  return {
    operationId,
    ...rest,
    summary: rest.summary ?? summaryOf(operationId),
    ...(description !== undefined && { description }),
    parameters: operation.parameters.map(refineParameter),
    ...(requestBody !== undefined && { requestBody: refineBody(operationId, requestBody.content, schemas) }),
    responses: Object.fromEntries(
      Object.entries(responses)
        .filter(([status]) => canHave(operationId, status))
        .map(([status, response]) => [
          status,
          status === SUCCESS
            ? listAt(route, refineResponse(response as Response, status, { isCommand, schemas }))
            : { $ref: `${SHARED}${sharedName(status, isCommand)}` }
        ])
    )
  }
}

/** Returns whether an operation can have a response with the status: without an object, there is none to miss. */
const canHave = (operationId: string, status: string): boolean =>
  status !== "404" || OUTCOMES[operationId]?.errors.includes("resource_missing") === true

/**
 * `payment_intents.capture` is "Capture a PaymentIntent", `customers.list` is "List customers". Others have a summary
 * in the contract.
 */
const summaryOf = (operationId: string): string => {
  const [group = "", name = ""] = operationId.split(".", 2)
  const title = TAGS.find((tag) => tag.name === group)!.title
  const plural = /^[A-Z][a-z]+(?: [a-z]+)?$/.test(title) ? title.toLowerCase() : title
  const verb = `${name.charAt(0).toUpperCase()}${name.slice(1).replaceAll("_", " ")}`
  if (name === "list" || name === "search") return `${verb} ${plural}`
  const singular = plural.replace(/s$/, "")
  return `${verb} ${/^[aeioA]/.test(singular) ? "an" : "a"} ${singular}`
}

const HEADERS: Readonly<Record<string, string>> = {
  "idempotency-key": "Idempotency-Key",
  "x-api-version": "X-API-Version"
}

/** Query parameters that are texts on the wire, documented as integers. */
const INTEGERS: Readonly<Record<string, JsonSchema>> = {
  limit: { type: "integer", minimum: 1, maximum: LIMIT_MAX, default: LIMIT_DEFAULT },
  wait: { type: "integer", minimum: 0, maximum: WAIT_SECONDS_MAX }
}

/** Moves the description from the schema to the parameter. */
const refineParameter = (parameter: Parameter): Parameter => {
  const { description: own, ...schema } = refined(parameter.schema, [])
  const integer = parameter.in === "query" ? INTEGERS[parameter.name] : undefined
  const description = own ?? (parameter.in === "path" ? "The ID of the object." : PARAMETER_TEXTS[parameter.name])
  return {
    ...parameter,
    name: parameter.in === "header" ? (HEADERS[parameter.name] ?? parameter.name) : parameter.name,
    ...(description !== undefined && { description }),
    schema: integer ?? schema
  }
}

/** Marks a body as optional if it has no required member: an empty body is an empty object. */
const refineBody = (
  operationId: string,
  { "application/json": { schema: declared } }: Content,
  schemas: JsonSchemas
) => {
  const schema = refined(declared, [])
  return {
    required: (resolve(schema, schemas).required ?? []).length > 0,
    content: { "application/json": { schema, example: filledIn(recipeOf(operationId).at(-1)!.parameters ?? {}) } }
  }
}

const refineResponse = (
  { content }: Response,
  status: string,
  { isCommand, schemas }: { readonly isCommand: boolean; readonly schemas: JsonSchemas }
): Response => {
  const { schema: declared } = content["application/json"]
  const schema = extensible(refined(declared, []))
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
