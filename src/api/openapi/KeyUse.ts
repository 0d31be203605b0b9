/**
 * The document says about keys whether an operation takes others than secret ones, and what publishable ones are shown
 * (semantics A5, A6, §8.27). It derives from what the contract's endpoints are annotated with.
 */
import { Context } from "effect"
import { HttpApi, type HttpApiEndpoint } from "effect/http-api"
import { PUBLISHABLE_FIELDS } from "../../domain/PaymentIntent.ts"
import { PublishableKey, TestMode, WithoutClientSecret } from "../Access.ts"
import { Api } from "../Api.ts"
import type { JsonSchema, JsonSchemas } from "./Examples.ts"
import { resolve } from "./Examples.ts"
import type { Operation, Response } from "./OpenApi.ts"

const PROJECTION = "PublishablePaymentIntent"

/** Makes the schema of what publishable keys are shown of a PaymentIntent, to be among the document's schemas. */
export const projections = ({ PaymentIntent }: JsonSchemas): JsonSchemas => {
  const { properties = {}, required = [], ...rest } = PaymentIntent!
  const isShown = (name: string) => PUBLISHABLE_FIELDS.some((field) => field === name)
  const shown = Object.fromEntries(Object.entries(properties).filter(([name]) => isShown(name)))
  return { [PROJECTION]: { ...rest, properties: shown, required: required.filter(isShown) } }
}

/** Has an operation say who may call it, unless all secret keys and no others may, with the answers that each gets. */
export const withKeyUse = (operation: Operation, schemas: JsonSchemas): Operation => {
  const use = USES.get(operation.operationId)
  if (use === undefined) return operation
  const success = operation.responses["200"] as Response
  const media = success.content["application/json"]
  const isProjected = use.isPublishable && isPaymentIntent(media.schema, schemas)
  const parts = [use.description, ...(isProjected ? [SHOWN] : []), operation.description ?? ""]
  const schema = { anyOf: [media.schema, { $ref: `#/components/schemas/${PROJECTION}` }] }
  const projected = { ...success, content: { "application/json": { ...media, schema } } }
  return {
    ...operation,
    description: parts.filter((part) => part !== "").join(" "),
    ...(isProjected && { responses: { ...operation.responses, "200": projected } })
  }
}

const isPaymentIntent = (schema: JsonSchema, schemas: JsonSchemas): boolean =>
  resolve(schema, schemas).properties?.["object"]?.enum?.[0] === "payment_intent"

const SHOWN = `It is shown no more of the PaymentIntent than ${PUBLISHABLE_FIELDS.map((name) => `\`${name}\``).join(", ")}.`

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
