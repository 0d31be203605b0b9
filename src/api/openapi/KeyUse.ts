/**
 * The document says about keys whether an operation takes others than secret ones, and what publishable ones are shown
 * (semantics A5, A6, 9.13, §8.27). It derives from what the contract's endpoints are annotated with.
 */
import { Context } from "effect"
import { HttpApi, type HttpApiEndpoint } from "effect/http-api"
import { PUBLISHABLE_FIELDS } from "../../domain/Publishable.ts"
import { PublishableKey, TestMode, WithoutClientSecret } from "../Access.ts"
import { Api } from "../Api.ts"
import type { JsonSchema, JsonSchemas } from "./Examples.ts"
import { resolve } from "./Examples.ts"
import type { Operation, Response } from "./OpenApi.ts"

/** Objects of which publishable keys are shown a part, by the names of their schemas. */
const PROJECTED = { PaymentIntent: "payment_intent", CheckoutSession: "checkout.session", LineItem: "item" } as const
type Projected = keyof typeof PROJECTED
const projected = Object.keys(PROJECTED) as ReadonlyArray<Projected>

const fieldsShownOf = (name: Projected): ReadonlyArray<string> => PUBLISHABLE_FIELDS[PROJECTED[name]]!

/** Tells whether publishable keys are shown less than there is. */
const isPart = (name: Projected, schemas: JsonSchemas): boolean =>
  Object.keys(schemas[name]!.properties ?? {}).some((field) => !fieldsShownOf(name).includes(field))

/** Makes the schemas of what publishable keys are shown, where it is less, to be among the document's schemas. */
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

/** Has an operation say who may call it, unless all secret keys and no others may, with the answers that each gets. */
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

/** Finds the object in an answer, or in a list of it, of which publishable keys are shown a part. */
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
  `It is shown no more of ${WORDS[name]} than ${fieldsShownOf(name)
    .map((field) => `\`${field}\``)
    .join(", ")}.`

interface Use {
  readonly isPublishable: boolean
  readonly description: string
}

const useOf = ({ annotations, method }: HttpApiEndpoint.Top): Use | undefined => {
  if (Context.get(annotations, TestMode)) {
    return { isPublishable: false, description: "Only in test mode: a live key gets `400 test_mode_only`." }
  }
  if (Context.get(annotations, WithoutClientSecret)) {
    return { isPublishable: true, description: "A publishable key may call this, too." }
  }
  if (!Context.get(annotations, PublishableKey)) return undefined
  const where = method === "GET" ? "query" : "body"
  const description = `A publishable key may call this, too, with the object's \`client_secret\` in the ${where}.`
  return { isPublishable: true, description }
}

/** By operation ID. */
const USES = new Map<string, Use>()
HttpApi.reflect(Api, {
  onGroup: () => {},
  onEndpoint: ({ endpoint, group }) => {
    const use = useOf(endpoint)
    if (use !== undefined) USES.set(`${group.identifier}.${endpoint.identifier}`, use)
  }
})
