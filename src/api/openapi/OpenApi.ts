/** The types of the OpenAPI document, as far as Till's document uses them. */
import type { JsonSchema, JsonSchemas } from "./Examples.ts"
import type { Webhook } from "./Webhooks.ts"

export interface Parameter {
  readonly name: string
  readonly in: string
  readonly required: boolean
  readonly description?: string
  readonly schema: JsonSchema
}

export interface Media {
  readonly schema: JsonSchema
  readonly example?: unknown
}

export interface Content {
  readonly "application/json": Media
}

export interface Response {
  readonly description: string
  readonly headers?: Readonly<Record<string, unknown>>
  readonly content: Content
}

/** A reference to a response among the document's components, which hold the errors shared by many operations. */
export interface ResponseReference {
  readonly $ref: string
}

export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly tags: ReadonlyArray<string>
  readonly parameters: ReadonlyArray<Parameter>
  readonly security: ReadonlyArray<Readonly<Record<string, ReadonlyArray<string>>>>
  readonly requestBody?: { readonly required: boolean; readonly content: Content }
  readonly responses: Readonly<Record<string, Response | ResponseReference>>
}

export interface Document {
  readonly openapi: string
  readonly info: {
    readonly title: string
    readonly version: string
    readonly description: string
    readonly license: { readonly name: string; readonly identifier: string }
    readonly contact: { readonly name: string; readonly url: string }
  }
  readonly servers: ReadonlyArray<{ readonly url: string; readonly description: string }>
  readonly tags: ReadonlyArray<{ readonly name: string; readonly description: string }>
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly webhooks: Readonly<Record<string, { readonly post: Webhook }>>
  readonly components: {
    readonly schemas: JsonSchemas
    readonly responses: Readonly<Record<string, Response>>
    readonly securitySchemes: Readonly<Record<string, unknown>>
  }
}
