/** The reference as data: each resource with its object and its operations, in words, from the OpenAPI document. */
import { type Document, type Operation as Described, responseOf } from "../../api/openapi/Document.ts"
import { type JsonSchema, resolve } from "../../api/openapi/Examples.ts"
import { ALWAYS, OF_COMMANDS, OUTCOMES } from "../../api/openapi/Outcomes.ts"
import { type Tag, TAGS } from "../../api/openapi/Tags.ts"
import { type Field, fieldOf, fieldsOf } from "./Fields.ts"
import { type Sample, samplesOf } from "./Samples.ts"

/** A group of fields under a heading. */
export interface FieldGroup {
  readonly title: string
  readonly fields: ReadonlyArray<Field>
}

export interface Operation {
  readonly id: string
  /** The place of the operation in its page. */
  readonly anchor: string
  readonly summary: string
  readonly method: string
  readonly path: string
  readonly description: string
  readonly parameters: ReadonlyArray<FieldGroup>
  readonly result: Result
  readonly samples: ReadonlyArray<Sample>
  /** The response in JSON. */
  readonly example: string
  /** Error codes of the operation's own. */
  readonly errors: ReadonlyArray<string>
  /** Error codes that all operations of its kind share. */
  readonly commonErrors: ReadonlyArray<string>
  readonly events: ReadonlyArray<string>
}

/** The object of a response: a resource, or an object with fields of its own. */
export interface Result {
  readonly isList: boolean
  readonly resource?: Tag
  readonly fields: ReadonlyArray<Field>
}

/** A request that Till sends. */
export interface Incoming {
  readonly anchor: string
  readonly summary: string
  readonly description: string
  readonly headers: ReadonlyArray<Field>
  readonly answers: ReadonlyArray<{ readonly status: string; readonly description: string }>
}

export interface Resource {
  readonly tag: Tag
  /** The fields of its object; empty if it has none. */
  readonly fields: ReadonlyArray<Field>
  readonly example: string | undefined
  readonly operations: ReadonlyArray<Operation>
  readonly incoming: ReadonlyArray<Incoming>
}

/** Describes all resources. */
export const resourcesOf = (document: Document): ReadonlyArray<Resource> => {
  const samples = samplesOf(document)
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      tags: operation.tags,
      operation: operationOf({ method, path, operation, document, samples: samples(operation.operationId) })
    }))
  )
  return TAGS.map((tag) => ({
    tag,
    ...objectOf(tag, document),
    operations: operations.filter(({ tags }) => tags.includes(tag.name)).map(({ operation }) => operation),
    incoming: incomingOf(tag, document)
  }))
}

const json = (value: unknown): string => JSON.stringify(value, null, 2)

const objectOf = ({ name, schema }: Tag, document: Document): Pick<Resource, "fields" | "example"> => {
  if (schema === undefined) return { fields: [], example: undefined }
  const { schemas } = document.components
  const retrieve = Object.values(document.paths)
    .flatMap((item) => Object.values(item))
    .find(({ operationId }) => [`${name}.retrieve`, `${name}.list`].includes(operationId))!
  const { example } = responseOf(retrieve.responses["200"]!, document).content["application/json"]
  const [first] = (example as { readonly data?: ReadonlyArray<unknown> }).data ?? [example]
  return { fields: fieldsOf(schemas[schema]!, schemas), example: json(first) }
}

interface OperationInput {
  readonly method: string
  readonly path: string
  readonly operation: Described
  readonly document: Document
  readonly samples: ReadonlyArray<Sample>
}

const operationOf = ({ document, method, operation, path, samples }: OperationInput): Operation => {
  const { components } = document
  const { operationId: id, parameters, requestBody, responses } = operation
  const { example, schema } = responseOf(responses["200"]!, document).content["application/json"]
  const { errors, events } = OUTCOMES[id]!
  const group = (title: string, place: string): FieldGroup => ({
    title,
    fields: parameters
      .filter((parameter) => parameter.in === place)
      .map(({ description = "", name, required, schema: type }) => ({
        ...fieldOf({ name, isRequired: required, schema: type, schemas: components.schemas }),
        description
      }))
  })
  const body = requestBody?.content["application/json"].schema
  return {
    id,
    anchor: id.slice(id.indexOf(".") + 1),
    summary: operation.summary,
    method: method.toUpperCase(),
    path,
    description: operation.description ?? "",
    parameters: [
      group("In the path", "path"),
      group("Query", "query"),
      { title: "Body", fields: body === undefined ? [] : fieldsOf(body, components.schemas) }
    ].filter(({ fields }) => fields.length > 0),
    result: resultOf(schema, document),
    samples,
    example: json(example),
    errors,
    commonErrors: [...ALWAYS, ...(method === "post" ? OF_COMMANDS : [])].filter((code) => !errors.includes(code)),
    events
  }
}

const resultOf = (schema: JsonSchema, { components: { schemas } }: Document): Result => {
  const [first = schema] = resolve(schema, schemas).anyOf ?? [schema]
  const item = resolve(first, schemas).properties?.["data"]?.items
  const named = (item ?? first).$ref
    ?.split("/")
    .at(-1)
    ?.replace(/^Expandable/, "")
  const resource = TAGS.find((tag) => named !== undefined && tag.schema === named)
  return {
    isList: item !== undefined,
    ...(resource !== undefined && { resource }),
    fields: resource === undefined ? fieldsOf(item ?? first, schemas) : []
  }
}

const incomingOf = ({ name }: Tag, { components, webhooks }: Document): ReadonlyArray<Incoming> =>
  Object.values(webhooks)
    .map(({ post }) => post)
    .filter(({ tags }) => tags.includes(name))
    .map(({ description, operationId, parameters, responses, summary }) => ({
      anchor: operationId.slice(operationId.indexOf(".") + 1),
      summary,
      description,
      headers: parameters.map((header) => ({
        ...fieldOf({ name: header.name, isRequired: true, schema: header.schema, schemas: components.schemas }),
        description: header.description
      })),
      answers: Object.entries(responses).map(([status, answer]) => ({ status, description: answer.description }))
    }))
