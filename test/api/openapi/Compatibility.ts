/**
 * Compares a released contract with today's, and lists the changes that break callers (spec: Versioning 6). Changes
 * allowed in any version (spec: Versioning 7) break none: optional parameters, response fields, endpoints, values of an
 * enum in a response, error codes.
 *
 * Only the document is compared. An endpoint's own tests detect different behaviour with the same schemas.
 */
import type { JsonSchema } from "../../../src/api/openapi/Examples.ts"
import type { Document, Operation, Parameter, Response } from "../../../src/api/openapi/OpenApi.ts"

/** A code's statuses and types, such as `400 invalid_request_error`. */
export type ErrorCodes = Readonly<Record<string, ReadonlyArray<string>>>

/** An OpenAPI document, extended by the error codes, which OpenAPI does not describe. */
export type Contract = Pick<Document, "paths" | "webhooks" | "components"> & { readonly "x-error-codes": ErrorCodes }

/** A schema with the fields that only the comparison uses. */
interface Schema extends JsonSchema {
  readonly default?: unknown
  readonly propertyNames?: JsonSchema
  readonly minItems?: number
  readonly maxItems?: number
}

/** The writer of a schema's values: the client of requests, Till of responses and events. */
type Writer = "client" | "till"

/** The bounds of a value: raising a lower bound or reducing an upper bound restricts it. */
const LOWER_BOUNDS = ["minimum", "minLength", "minItems"] as const
const UPPER_BOUNDS = ["maximum", "maxLength", "maxItems"] as const
const TEXT_RULES = ["pattern", "format"] as const

const TEXT: Schema = { type: "string" }

const json = (value: unknown): string => JSON.stringify(value) ?? "nothing"

/** The alternatives of a value, by kind. */
interface Variants {
  readonly [kind: string]: Schema
}

class Comparison {
  readonly breaks: Array<string> = []
  readonly #older: Contract
  readonly #newer: Contract
  /** Pairs of components whose comparison has begun. */
  readonly #seen = new Set<string>()

  constructor(older: Contract, newer: Contract) {
    this.#older = older
    this.#newer = newer
  }

  #break(at: string, what: string): void {
    this.breaks.push(`${at}: ${what}`)
  }

  all(): void {
    for (const [path, methods] of Object.entries(this.#older.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        const at = `${method.toUpperCase()} ${path}`
        const today = this.#newer.paths[path]?.[method]
        if (today === undefined) this.#break(at, "the endpoint is gone")
        else this.#operation(at, operation, today)
      }
    }
    for (const [name, { post }] of Object.entries(this.#older.webhooks)) {
      const today = this.#newer.webhooks[name]?.post
      if (today === undefined) this.#break(`webhook ${name}`, "is gone")
      else this.#message(`webhook ${name}`, post, today)
    }
    for (const [code, uses] of Object.entries(this.#older["x-error-codes"])) {
      const today = this.#newer["x-error-codes"][code]
      if (today === undefined) this.#break(`error ${code}`, "is gone")
      else for (const use of uses) if (!today.includes(use)) this.#break(`error ${code}`, `no longer comes as ${use}`)
    }
  }

  #operation(at: string, older: Operation, newer: Operation): void {
    const accepted = newer.security.map(json)
    if (older.security.some((way) => !accepted.includes(json(way)))) this.#break(at, "accepts other credentials")
    this.#parameters(at, older.parameters, newer.parameters)
    this.#body(at, older, newer)
    for (const [status, response] of Object.entries(older.responses)) {
      const today = newer.responses[status]
      if (today === undefined) this.#break(`${at} ${status}`, "the response is gone")
      else this.#response(`${at} ${status}`, resolved(this.#older, response), resolved(this.#newer, today))
    }
  }

  #parameters(at: string, older: ReadonlyArray<Parameter>, newer: ReadonlyArray<Parameter>): void {
    const found = (among: ReadonlyArray<Parameter>, one: Parameter) =>
      among.find(({ in: place, name }) => place === one.in && name === one.name)
    for (const parameter of older) {
      const today = found(newer, parameter)
      const where = `${at} ${parameter.in} ${parameter.name}`
      if (today === undefined) this.#break(where, "the parameter is gone")
      else this.#value(where, "client", parameter.schema, today.schema)
    }
    for (const parameter of newer) {
      if (!parameter.required || found(older, parameter)?.required === true) continue
      this.#break(`${at} ${parameter.in} ${parameter.name}`, "the parameter is required now")
    }
  }

  #body(at: string, { requestBody: older }: Operation, { requestBody: newer }: Operation): void {
    const where = `${at} body`
    if (newer?.required === true && older?.required !== true) this.#break(where, "is required now")
    if (older === undefined) return
    if (newer === undefined) return this.#break(where, "is gone")
    this.#value(where, "client", older.content["application/json"].schema, newer.content["application/json"].schema)
  }

  #response(at: string, older: Response, newer: Response): void {
    for (const name of Object.keys(older.headers ?? {})) {
      if (newer.headers?.[name] === undefined) this.#break(`${at} header ${name}`, "is gone")
    }
    this.#value(at, "till", older.content["application/json"].schema, newer.content["application/json"].schema)
  }

  /** Compares an event, whose headers and body Till writes. */
  #message(at: string, older: Document["webhooks"][string]["post"], newer: typeof older): void {
    for (const { name } of older.parameters) {
      if (!newer.parameters.some((header) => header.name === name)) this.#break(`${at} header ${name}`, "is gone")
    }
    const schemaOf = ({ requestBody }: typeof older) => requestBody.content["application/json"].schema
    this.#value(at, "till", schemaOf(older), schemaOf(newer))
  }

  #value(at: string, writer: Writer, older: Schema, newer: Schema): void {
    if (older.$ref !== undefined && newer.$ref !== undefined) {
      const pair = `${writer} ${older.$ref} ${newer.$ref}`
      if (this.#seen.has(pair)) return
      this.#seen.add(pair)
    }
    const before = variantsOf(this.#older, older)
    const today = variantsOf(this.#newer, newer)
    for (const kind of Object.keys(before)) {
      if (today[kind] !== undefined) this.#variant(nameOf(at, older), writer, before[kind]!, today[kind])
      // A reader that accepts null works without it.
      else if (writer === "client" || kind !== "null") this.#break(at, `can no longer be ${kind}`)
    }
    // A new alternative breaks clients that read it, not clients that write it.
    if (writer === "till") {
      for (const kind of Object.keys(today)) if (before[kind] === undefined) this.#break(at, `may be ${kind} now`)
    }
    if (writer === "client" && "default" in older && json(older.default) !== json(newer.default)) {
      this.#break(at, `the default was ${json(older.default)} and is ${json(newer.default)}`)
    }
  }

  #variant(at: string, writer: Writer, older: Schema, newer: Schema): void {
    this.#enum(at, writer, older, newer)
    this.#rules(at, writer, older, newer)
    this.#fields(at, writer, older, newer)
    if (older.items !== undefined) this.#value(`${at}[]`, writer, older.items, newer.items ?? {})
    const [rest, restToday] = [older.additionalProperties ?? true, newer.additionalProperties ?? true]
    if (writer === "client" && rest !== false && restToday === false)
      this.#break(at, "no longer accepts further fields")
    if (typeof rest === "object" && typeof restToday === "object") this.#value(`${at}.*`, writer, rest, restToday)
    const names = newer.propertyNames
    if (writer === "client" && names !== undefined) this.#value(`${at}.*`, writer, older.propertyNames ?? TEXT, names)
  }

  #enum(at: string, writer: Writer, older: Schema, newer: Schema): void {
    // If any text is allowed, an enum adds no value.
    if (newer.enum === undefined) return
    if (older.enum === undefined) {
      if (writer === "client") this.#break(at, `now accepts only ${json(newer.enum)}`)
      return
    }
    const gone = older.enum.filter((value) => !newer.enum!.includes(value))
    if (gone.length > 0) this.#break(at, `can no longer be ${gone.map(json).join(", ")}`)
  }

  #rules(at: string, writer: Writer, older: Schema, newer: Schema): void {
    for (const rule of TEXT_RULES) {
      const isLaxer = newer[rule] === undefined && writer === "client"
      const isNew = older[rule] === undefined && writer === "till"
      if (json(older[rule]) !== json(newer[rule]) && !isLaxer && !isNew) {
        this.#break(at, `its ${rule} was ${json(older[rule])} and is ${json(newer[rule])}`)
      }
    }
    if (writer === "till") return
    const tightened = [
      ...LOWER_BOUNDS.filter((bound) => (newer[bound] ?? -Infinity) > (older[bound] ?? -Infinity)),
      ...UPPER_BOUNDS.filter((bound) => (newer[bound] ?? Infinity) < (older[bound] ?? Infinity))
    ]
    for (const bound of tightened)
      this.#break(at, `its ${bound} was ${json(older[bound])} and is ${json(newer[bound])}`)
  }

  #fields(at: string, writer: Writer, older: Schema, newer: Schema): void {
    const [before, today] = [older.properties ?? {}, newer.properties ?? {}]
    for (const [name, field] of Object.entries(before)) {
      const found = today[name]
      if (found === undefined) this.#break(`${at}.${name}`, "the field is gone")
      else this.#value(`${at}.${name}`, writer, field, found)
    }
    const [first, second] = writer === "client" ? [newer, older] : [older, newer]
    const only = (first.required ?? []).filter((name) => !(second.required ?? []).includes(name))
    for (const name of only) {
      if (writer === "client") this.#break(`${at}.${name}`, "the field is required now")
      else if (today[name] !== undefined) this.#break(`${at}.${name}`, "the field may be missing now")
    }
  }
}

/** Returns the place of a schema, with the name of its component. */
const nameOf = (at: string, { $ref }: Schema): string =>
  $ref === undefined ? at : `${at} (${$ref.split("/").at(-1)!})`

const resolved = <A extends object>({ components }: Contract, value: A | { readonly $ref: string }): A => {
  if (!("$ref" in value)) return value
  const [, , part, name] = value.$ref.split("/") as [string, string, keyof Contract["components"], string]
  return resolved({ components } as Contract, components[part][name] as A)
}

/** Returns the alternatives of a value: one per type; objects are separate by the text in `object` and by `deleted`. */
const variantsOf = (contract: Contract, schema: Schema): Variants => {
  const { allOf = [], anyOf, ...own } = resolved(contract, schema)
  if (anyOf !== undefined) return joined(anyOf.map((one) => variantsOf(contract, one)))
  const whole: Schema = Object.assign({}, own, ...allOf.map((part) => resolved(contract, part)))
  return { [kindOf(whole)]: whole }
}

const kindOf = ({ properties = {}, type = "anything" }: Schema): string => {
  if (type !== "object") return type
  const [object] = properties["object"]?.enum ?? []
  const deleted = properties["deleted"] === undefined ? "" : "deleted "
  return typeof object === "string" ? `a ${deleted}${object}` : `${deleted}object`
}

/** Merges alternatives of one kind, which differ only in their values. */
const joined = (all: ReadonlyArray<Variants>): Variants => {
  const variants: Record<string, Schema> = {}
  for (const [kind, schema] of all.flatMap((one) => Object.entries(one))) {
    const known = variants[kind]
    variants[kind] = known === undefined ? schema : eitherOf(known, schema)
  }
  return variants
}

const eitherOf = (one: Schema, other: Schema): Schema => {
  if (one.properties !== undefined || other.properties !== undefined) {
    return { ...one, ...other, properties: { ...one.properties, ...other.properties }, required: common(one, other) }
  }
  if (one.enum !== undefined && other.enum !== undefined) return { ...one, enum: [...one.enum, ...other.enum] }
  // A single value next to a text with rules does not change the rules.
  const { enum: _, ...rules } = one.enum === undefined ? one : other
  return rules
}

const common = ({ required = [] }: Schema, other: Schema): ReadonlyArray<string> =>
  required.filter((name) => other.required?.includes(name))

/** Returns the changes that break callers of the older contract; empty if there are none. */
export const breaksOf = (older: Contract, newer: Contract): ReadonlyArray<string> => {
  const comparison = new Comparison(older, newer)
  comparison.all()
  return comparison.breaks
}

const VERSION_HEADER = "X-API-Version"

/** Returns the API versions that a contract serves. */
export const versionsOf = ({ paths }: Contract): ReadonlySet<unknown> => {
  const found = new Set<unknown>()
  const collect = ({ anyOf = [], enum: values = [] }: Schema): void => {
    for (const value of values) found.add(value)
    for (const one of anyOf) collect(one)
  }
  for (const { parameters } of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    for (const { name, schema } of parameters) if (name === VERSION_HEADER) collect(schema)
  }
  return found
}
