/**
 * The OpenAPI 3.1 document of the contract.
 *
 * It derives from the contract; what is added here is what the contract's schemas cannot say: which bodies may be left
 * out, the names of headers as people write them, what each status means, what webhooks send, and examples.
 */
import { OpenApi } from "effect/http-api"
import { Api } from "../Api.ts"
import type { JsonSchema, JsonSchemas } from "./Examples.ts"
import { exampleOf, resolve } from "./Examples.ts"
import { projections, withKeyUse } from "./KeyUse.ts"
import { LIMIT_DEFAULT, LIMIT_MAX } from "../List.ts"
import type { Content, Document, Operation, Parameter, Response, ResponseReference } from "./OpenApi.ts"
import { STATUSES } from "./Statuses.ts"
import { webhooks } from "./Webhooks.ts"

export type { Document, Operation, Parameter, Response } from "./OpenApi.ts"

/** Makes the document of a service at this address. */
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
            "The API key is the username; the password is empty. `sk_test_…` and `sk_live_…` are secret; `pk_test_…` and " +
            "`pk_live_…` are publishable, for the few operations that say so."
        }
      }
    }
  }
}

/** Finds the response that an operation declares, wherever the document has it. */
export const responseOf = (response: Response | ResponseReference, { components }: Document): Response => {
  if (!("$ref" in response)) return response
  const found = components.responses[response.$ref.slice(SHARED.length)]
  if (found === undefined) throw new Error(`The document refers to ${response.$ref}, which it does not have`)
  return found
}

const SHARED = "#/components/responses/"
const SUCCESS = "200"

/** A command's answers carry its key and may be replays, and so have more headers. */
const sharedName = (status: string, isCommand: boolean): string => `${isCommand ? "CommandError" : "Error"}${status}`

/** Collects every error of every operation, once: its body is the envelope in any case. */
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
  "A payments service that you run yourself. Amounts are in the smallest unit of their currency, times in Unix seconds. " +
  "Every POST carries an `Idempotency-Key`; sending it again with the same request gets the first one's answer. " +
  "An operation takes secret keys only, unless it says that a publishable one may call it."

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

/**
 * `payment_intents.capture` is "Capture a payment intent", `customers.list` is "List customers",
 * `checkout_sessions.line_items` is "Line items of a checkout session".
 */
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

/** A description belongs to the parameter. `limit` is text on the wire, and an integer to everybody. */
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

/** An empty body is an empty object, so it may be left out where nothing in it is required. */
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

/** The example of a list says where the list is and how its next page is asked for, which its schema does not know. */
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
  "X-API-Version": header("The version that the response is written in."),
  "Cache-Control": header("`no-store`."),
  "X-Content-Type-Options": header("`nosniff`."),
  "X-RateLimit-Limit": header("How many such requests a minute may have. Absent where requests are not limited."),
  "X-RateLimit-Remaining": header("How many of them are left in this minute. Absent where requests are not limited.")
}

const COMMAND_HEADERS = {
  "Idempotency-Key": header("The request's own key. Absent where it had none that is valid."),
  "Idempotent-Replayed": header("`true` if this is the answer to an earlier request with the same key."),
  "Original-Request": header("The ID of that earlier request.")
}

/** Responses may get further fields without a new version; requests may not have any that are unknown. */
const extensible = (schema: JsonSchema): JsonSchema =>
  JSON.parse(JSON.stringify(schema), (_, value) => {
    if (typeof value !== "object" || value === null || value.additionalProperties !== false) return value
    const { additionalProperties: _closed, ...open } = value
    return open
  }) as JsonSchema

/** Collects the names of the schemas that request bodies consist of. */
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
