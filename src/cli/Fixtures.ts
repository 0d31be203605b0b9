/**
 * `till fixtures`: creates the objects that a file describes, in its order. A string `${name:path}` in a request stands
 * for a field of an earlier answer: `${jenny:id}`, `${session:customer_details.email}`.
 *
 * Each request has an idempotency key of the file's content and the name, so a file that has not changed gets the same
 * answers again, until the keys expire or the environment is emptied.
 */
import { Console, Effect } from "effect"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import { ENDPOINTS, type Endpoint } from "../client/Endpoints.ts"
import type { EffectMethods } from "../client/effect.ts"
import type { TillError } from "../client/index.ts"
import { parseJson } from "../json/JsonParse.ts"
import { columns } from "./Columns.ts"
import { connect, type ConnectionFlags } from "./Connection.ts"
import { WrongArguments } from "./WrongArguments.ts"

export interface FixturesOptions extends ConnectionFlags {
  readonly file: string
  readonly json: boolean
}

/** A request of the file. */
export interface Fixture {
  readonly name: string
  readonly path: string
  readonly method: Endpoint[0]
  readonly params: Readonly<Record<string, unknown>>
}

const METHODS: ReadonlyArray<string> = ["get", "post", "delete"] satisfies ReadonlyArray<Lowercase<Endpoint[0]>>

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Reads the requests of a file; a text if it is not of the form. */
export const fixturesOf = (text: string): ReadonlyArray<Fixture> | string => {
  let content: unknown
  try {
    content = parseJson(text)
  } catch {
    return "is not JSON"
  }
  const list = isRecord(content) ? content["fixtures"] : content
  if (!Array.isArray(list)) return 'has no array "fixtures"'
  const names = new Set<string>()
  const found: Array<Fixture> = []
  for (const [index, one] of list.entries()) {
    const { method = "post", name = `${index}`, params = {}, path } = isRecord(one) ? one : {}
    const isWhole =
      typeof name === "string" && typeof path === "string" && isRecord(params) && typeof method === "string"
    if (!isWhole || !METHODS.includes(method.toLowerCase())) {
      return `has an entry ${index} that is not of the form {"name", "path", "method", "params"}`
    }
    if (names.has(name)) return `has two entries with the name ${JSON.stringify(name)}`
    names.add(name)
    found.push({ name, path, method: method.toUpperCase() as Endpoint[0], params })
  }
  return found
}

const REFERENCE = /\$\{([^${:}]+):([^${}]+)\}/gu

/** Replaces references by fields of earlier answers. A string that is one reference gets the field's own type. */
export const resolved = (value: unknown, answers: ReadonlyMap<string, unknown>): unknown => {
  if (Array.isArray(value)) return value.map((item) => resolved(item, answers))
  if (isRecord(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, resolved(field, answers)]))
  }
  if (typeof value !== "string") return value
  const [whole] = value.matchAll(REFERENCE)
  if (whole !== undefined && whole[0] === value) return fieldOf(whole[1]!, whole[2]!, answers)
  return value.replaceAll(REFERENCE, (_, name: string, path: string) => String(fieldOf(name, path, answers)))
}

const fieldOf = (name: string, path: string, answers: ReadonlyMap<string, unknown>): unknown => {
  const field = path
    .split(".")
    .reduce<unknown>(
      (current, key) => (isRecord(current) || Array.isArray(current) ? (current as never)[key] : undefined),
      answers.get(name)
    )
  if (field === undefined) throw new WrongArguments({ message: `\${${name}:${path}} refers to nothing` })
  return field
}

type Method = (...args: ReadonlyArray<unknown>) => Effect.Effect<unknown, TillError>

/** Finds the client's method for a path, and the identifiers in the path. */
export const methodOf = (
  method: Endpoint[0],
  path: string
): { readonly group: string; readonly name: string; readonly identifiers: ReadonlyArray<string> } | undefined => {
  for (const [group, endpoints] of Object.entries(ENDPOINTS)) {
    for (const [name, [verb, template]] of Object.entries(endpoints) as ReadonlyArray<[string, Endpoint]>) {
      const match = new RegExp(`^${template.replaceAll(/:\w+/gu, "([^/]+)")}$`, "u").exec(path)
      // A fixed path comes before one with an ID that would match it: /v1/customers/search.
      if (verb === method && match !== null) return { group, name, identifiers: match.slice(1) }
    }
  }
  return undefined
}

/** Carries out one request. */
const create = Effect.fnUntraced(function* (
  till: EffectMethods,
  { method, name, params, path }: Fixture,
  answers: ReadonlyMap<string, unknown>,
  file: string
) {
  const given = yield* Effect.try({
    try: () => ({ path: String(resolved(path, answers)), params: resolved(params, answers) }),
    catch: (error) => error as WrongArguments
  })
  const found = methodOf(method, given.path)
  if (found === undefined) {
    return yield* new WrongArguments({ message: `the API has no ${method} ${given.path}, which ${name} asks for` })
  }
  const call = (till as unknown as Record<string, Record<string, Method>>)[found.group]![found.name]!
  return yield* call(...found.identifiers, given.params, { idempotencyKey: `fixtures/${file}/${name}` })
})

/** Creates the objects of a file, and prints their names and IDs. */
export const fixtures = Effect.fnUntraced(function* ({ file, json, ...flags }: FixturesOptions) {
  const text = yield* Effect.try({
    try: () => fs.readFileSync(file, "utf8"),
    catch: () => new WrongArguments({ message: `${file} cannot be read` })
  })
  const list = fixturesOf(text)
  if (typeof list === "string") return yield* new WrongArguments({ message: `${file} ${list}` })
  const { till } = yield* connect(flags)
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 32)
  const answers = new Map<string, unknown>()
  for (const fixture of list) answers.set(fixture.name, yield* create(till, fixture, answers, digest))
  const rows = [...answers].map(([name, answer]) => [name, isRecord(answer) ? String(answer["id"] ?? "-") : "-"])
  yield* Console.log(json ? JSON.stringify(Object.fromEntries(answers)) : columns(rows))
})
