/**
 * The use of keys in the document: which operations accept other than secret keys, and the fields that publishable ones
 * see (semantics keys.publishable, keys.publishable.payment_intents, keys.publishable.sessions, test_helpers.data).
 * Derived from the annotations of the contract's endpoints.
 */
import { Context } from "effect"
import { HttpApi, type HttpApiEndpoint } from "effect/http-api"
import { PUBLISHABLE_FIELDS } from "../../domain/Publishable.ts"
import { PublishableKey, TestMode, WithoutClientSecret } from "../Access.ts"
import { Api } from "../Api.ts"
import { type JsonSchema, type JsonSchemas, resolve } from "./Examples.ts"
import type { Operation, Response } from "./OpenApi.ts"

/** Objects of which publishable keys see a part, by the names of their schemas. */
const PROJECTED = { PaymentIntent: "payment_intent", CheckoutSession: "checkout.session", LineItem: "item" } as const
type Projected = keyof typeof PROJECTED
const projected = Object.keys(PROJECTED) as ReadonlyArray<Projected>

const fieldsShownOf = (name: Projected): ReadonlyArray<string> => PUBLISHABLE_FIELDS[PROJECTED[name]]!

/** Returns whether publishable keys see fewer fields than the schema has. */
const isPart = (name: Projected, schemas: JsonSchemas): boolean =>
  Object.keys(schemas[name]!.properties ?? {}).some((field) => !fieldsShownOf(name).includes(field))

/** Makes the schemas of the parts that publishable keys see, to be added to the document's schemas. */
export const projections = (schemas: JsonSchemas): JsonSchemas =>
  Object.fromEntries(
    projected
      .filter((name) => isPart(name, schemas))
      .map((name) => {
        const { properties = {}, required = [], ...rest } = schemas[name]!
        const isShown = (field: string) => fieldsShownOf(name).includes(field)
        const shown = Object.fromEntries(Object.entries(properties).filter(([field]) => isShown(field)))
        return [`Publishable${name}`, { ...rest, properties: shown, required: required.filter(isShown) }]
      })
  )

/** Adds the use of keys to an operation's description, and the part that publishable ones see to its response. */
export const withKeyUse = (operation: Operation, schemas: JsonSchemas): Operation => {
  const use = USES.get(operation.operationId)
  if (use === undefined) return operation
  const success = operation.responses["200"] as Response
  const media = success.content["application/json"]
  const name = use.isPublishable ? projectedIn(media.schema, schemas) : undefined
  const parts = [use.description, ...(name === undefined ? [] : [describeFields(name)]), operation.description ?? ""]
  const description = parts.filter((part) => part !== "").join(" ")
  if (name === undefined) return { ...operation, description }
  const part: JsonSchema = { $ref: `#/components/schemas/Publishable${name}` }
  const { properties } = media.schema
  const items = properties?.["data"]?.items
  const seen =
    items === undefined
      ? part
      : { ...media.schema, properties: { ...properties, data: { type: "array", items: part } } }
  const schema = { anyOf: [media.schema, seen] }
  const both = { ...success, content: { "application/json": { ...media, schema } } }
  return { ...operation, description, responses: { ...operation.responses, "200": both } }
}

/** Returns the object of a response, or of its list, of which publishable keys see a part. */
const projectedIn = (schema: JsonSchema, schemas: JsonSchemas): Projected | undefined => {
  const { properties } = resolve(schema, schemas)
  const type = (resolve(properties?.["data"]?.items ?? schema, schemas).properties ?? {})["object"]?.enum?.[0]
  return projected.find((name) => PROJECTED[name] === type && isPart(name, schemas))
}

const WORDS: Readonly<Record<Projected, string>> = {
  PaymentIntent: "the PaymentIntent",
  CheckoutSession: "the session",
  LineItem: "a line"
}

const describeFields = (name: Projected): string =>
  `It sees only these fields of ${WORDS[name]}: ${fieldsShownOf(name)
    .map((field) => `\`${field}\``)
    .join(", ")}.`

interface Use {
  readonly isPublishable: boolean
  readonly description: string
}

const useOf = ({ annotations, method }: HttpApiEndpoint.Top): Use | undefined => {
  if (Context.get(annotations, TestMode)) {
    return { isPublishable: false, description: "Test mode only: a live key gets `400 test_mode_only`." }
  }
  if (Context.get(annotations, WithoutClientSecret)) {
    return { isPublishable: true, description: "Also accepts a publishable key." }
  }
  if (!Context.get(annotations, PublishableKey)) return undefined
  const where = method === "GET" ? "query" : "body"
  const description = `Also accepts a publishable key, with the object's \`client_secret\` in the ${where}.`
  return { isPublishable: true, description }
}

const USES = new Map<string, Use>()
HttpApi.reflect(Api, {
  onGroup: () => {},
  onEndpoint: ({ endpoint, group }) => {
    const use = useOf(endpoint)
    if (use !== undefined) USES.set(`${group.identifier}.${endpoint.identifier}`, use)
  }
})
