/** Asserts that an answer keeps the contract: it fits the document's schema and has no undeclared field. */
import { assert } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Exit, Schema } from "effect"
import { HttpApi } from "effect/http-api"
import { Api } from "../../src/api/Api.ts"
import type { Document } from "../../src/api/openapi/Document.ts"
import type { Target } from "./ContractFuzz.ts"

interface Answered {
  readonly status: number
  readonly body: unknown
}

/** Checks answers against the document's schemas. */
export const documentedBy = (document: Document) => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema(document, "document")
  const validators = new Map<string, ReturnType<typeof ajv.compile>>()
  return ({ method, operation, path }: Target, { body, status }: Answered): void => {
    const response = operation.responses[status]!
    const at =
      "$ref" in response
        ? response.$ref.slice("#/".length).split("/")
        : ["paths", path, method.toLowerCase(), "responses", String(status)]
    const parts = [...at, "content", "application/json", "schema"]
    const pointer = parts.map((part) => encodeURIComponent(part.replaceAll("/", "~1"))).join("/")
    const validate = validators.get(pointer) ?? ajv.compile({ $ref: `document#/${pointer}` })
    validators.set(pointer, validate)
    assert.isTrue(validate(body), ajv.errorsText(validate.errors))
  }
}

const decoders = new Map<string, ReadonlyArray<(body: unknown) => Exit.Exit<unknown, unknown>>>()
HttpApi.reflect(Api, {
  onGroup: () => {},
  onEndpoint: ({ endpoint }) => {
    const schemas = [...endpoint.success] as unknown as ReadonlyArray<Schema.Decoder<unknown>>
    decoders.set(
      `${endpoint.method} ${endpoint.path.replaceAll(/:(\w+)/g, "{$1}")}`,
      schemas.map((schema) => Schema.decodeUnknownExit(schema, { onExcessProperty: "error" }))
    )
  }
})

/** Asserts that a success keeps the contract and has no undeclared field. */
export const assertContracted = ({ method, path }: Target, body: unknown): void => {
  const exits = decoders.get(`${method} ${path}`)!.map((decode) => decode(body))
  assert.isTrue(exits.some(Exit.isSuccess), JSON.stringify(exits))
}
