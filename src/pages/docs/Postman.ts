/**
 * The contract as a Postman collection: each operation with the requests that make its objects, so that a run of the
 * whole collection passes. Operations with lasting effects on the environment are skipped unless a variable allows
 * them.
 */
import type { Document } from "../../api/openapi/Document.ts"
import { filledIn, recipeOf, type Step } from "../../api/openapi/Recipes.ts"
import { TAGS } from "../../api/openapi/Tags.ts"

/** Operations that end keys, move the clock or delete data. */
const LASTING = ["api_keys.roll", "api_keys.revoke", "test_helpers.advance_clock", "test_helpers.delete_data"]

const ALLOWED = "allow_lasting_changes"

const DESCRIPTION =
  "Set `api_key` to a secret test key. Each folder is an operation: its last request is the operation itself, the " +
  `others make what it needs. Requests that end keys, move the clock or delete data are skipped unless \`${ALLOWED}\` is ` +
  "`yes`."

interface Route {
  readonly method: string
  readonly path: string
  readonly summary: string
  readonly description: string
}

export const postmanCollection = (document: Document): object => {
  const routes = new Map(
    Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(
        ([method, { description = "", operationId, summary }]) =>
          [operationId, { method: method.toUpperCase(), path, summary, description }] as const
      )
    )
  )
  return {
    info: {
      name: `Till ${document.info.version}`,
      description: DESCRIPTION,
      schema: "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
    },
    auth: {
      type: "basic",
      basic: [
        { key: "username", value: "{{api_key}}", type: "string" },
        { key: "password", value: "", type: "string" }
      ]
    },
    variable: [
      { key: "base_url", value: document.servers[0]!.url },
      { key: "api_key", value: "" },
      { key: ALLOWED, value: "no" }
    ],
    item: TAGS.map(({ description, name, title }) => ({
      name: title,
      description,
      item: [...routes]
        .filter(([operationId]) => operationId.startsWith(`${name}.`))
        .map(([operationId, { description: text, summary }]) => ({
          name: summary,
          description: text,
          item: recipeOf(operationId).map((step) => requestOf(step, routes.get(step.operation)!, operationId))
        }))
    }))
  }
}

const variable = (step: string): string => `{{${step}}}`

const requestOf = (step: Step, { description, method, path, summary }: Route, operationId: string): object => {
  const parameters = filledIn(step.parameters ?? {}, variable) as Readonly<Record<string, unknown>>
  const route = step.on === undefined ? path : path.replace("{id}", variable(step.on.step))
  const isCommand = method === "POST"
  const query = isCommand
    ? []
    : Object.entries(parameters).flatMap(([key, value]) => [value].flat().map((one) => ({ key, value: String(one) })))
  const before = [
    ...(LASTING.includes(operationId) ? SKIP : []),
    ...(step.on === undefined ? [] : skipWithout(step.on.step))
  ]
  return {
    name: summary,
    event: [
      ...(before.length > 0 ? [script("prerequest", before)] : []),
      script("test", [`pm.test("succeeds", () => pm.response.to.have.status(200))`, remember(step)])
    ],
    request: {
      method,
      description,
      header: isCommand ? [{ key: "Idempotency-Key", value: "{{$guid}}" }] : [],
      url: {
        raw: `{{base_url}}${route}${query.length === 0 ? "" : `?${query.map(({ key, value }) => `${key}=${value}`).join("&")}`}`,
        host: ["{{base_url}}"],
        path: route.slice(1).split("/"),
        ...(query.length > 0 && { query })
      },
      ...(isCommand && {
        body: { mode: "raw", raw: JSON.stringify(parameters, null, 2), options: { raw: { language: "json" } } }
      })
    }
  }
}

const SKIP = [`if (pm.variables.get("${ALLOWED}") !== "yes") pm.execution.skipRequest()`]

/** Skips a request about an object of which a list has none: the simulator has no operations. */
const skipWithout = (name: string): ReadonlyArray<string> => [
  `if (!pm.collectionVariables.get("${name}")) pm.execution.skipRequest()`
]

const script = (listen: "prerequest" | "test", exec: ReadonlyArray<string>): object => ({
  listen,
  script: { type: "text/javascript", exec }
})

/** Keeps the value of the step for the requests after it. */
const remember = ({ name, takes }: Step): string => {
  const value = { data: "data[0]?.id", latest_charge: "latest_charge" }[takes ?? ""] ?? "id"
  return `pm.collectionVariables.set("${name}", pm.response.json().${value})`
}
