/**
 * `till get`, `list`, `post` and `delete`: any endpoint of the API, by its name in the client.
 *
 * Words without `=` are an ID and the name of an action or of a part; words with `=` are fields. `till post
 * payment_intents pi_… capture amount_to_capture=500` is `payment_intents.capture("pi_…", { amount_to_capture: 500 })`.
 */
import { Console, Effect } from "effect"
import { ENDPOINTS, type Endpoint } from "../client/Endpoints.ts"
import type { TillError } from "../client/index.ts"
import { connect, type ConnectionFlags } from "./Connection.ts"
import { applyOverrides, type Override, overrideOf } from "./Overrides.ts"
import { outputClosed } from "./Output.ts"
import { didYouMean } from "./Suggestion.ts"
import { WrongArguments } from "./WrongArguments.ts"

export type Verb = "get" | "list" | "post" | "delete"

/** The words of a command. */
export interface ResourceOptions extends ConnectionFlags {
  readonly resource: string
  readonly words: ReadonlyArray<string>
  readonly json: boolean
}

type Table = Readonly<Record<string, Readonly<Record<string, Endpoint>>>>
const TABLE: Table = ENDPOINTS

const METHODS: Readonly<Record<Verb, Endpoint[0]>> = { get: "GET", list: "GET", post: "POST", delete: "DELETE" }

/** A call of the client. */
interface Call {
  readonly group: string
  readonly name: string
  readonly identifiers: ReadonlyArray<string>
}

/** Returns the group of endpoints of a resource: `payment_intents`, also as `payment_intent` or `payment-intents`. */
const groupOf = (resource: string): string | undefined => {
  const name = resource.replaceAll("-", "_")
  return [name, `${name}s`].find((candidate) => Object.hasOwn(TABLE, candidate))
}

/** The name of the endpoint without an action: by the verb, and whether there is an ID. */
const nameWithout = (verb: Verb, hasId: boolean): string => {
  if (verb === "list") return "list"
  if (verb === "post") return hasId ? "update" : "create"
  return verb === "get" ? "retrieve" : "delete"
}

const identifiersIn = ([, path]: Endpoint): number => path.split(":").length - 1

/** Finds the endpoint that a verb and its words name. */
export const callOf = (verb: Verb, resource: string, words: ReadonlyArray<string>): Call | string => {
  const group = groupOf(resource)
  if (group === undefined) {
    const names = Object.keys(TABLE)
    return `there is no resource ${JSON.stringify(resource)}${didYouMean(resource, names) || `: ${names.join(", ")}`}`
  }
  const endpoints = Object.entries(TABLE[group]!).filter(([, [method]]) => method === METHODS[verb])
  const names = endpoints.map(([name]) => name)
  const action = words.find((word) => names.includes(word))
  const identifiers = words.filter((word) => word !== action)
  const name = action ?? nameWithout(verb, identifiers.length > 0)
  const endpoint = endpoints.find(([candidate]) => candidate === name)?.[1]
  const [, unknown] = identifiers
  if (endpoint !== undefined && identifiers.length === identifiersIn(endpoint)) return { group, name, identifiers }
  if (unknown !== undefined) {
    return `${group} have no ${JSON.stringify(unknown)} for till ${verb}${didYouMean(unknown, names) || `; there is ${names.join(", ")}`}`
  }
  if (endpoint !== undefined && identifiersIn(endpoint) > identifiers.length) return `till ${verb} ${group} needs an ID`
  return `till ${verb} ${group} does not exist${names.length === 0 ? "" : `; there is ${names.join(", ")}`}`
}

/** Splits words into those without `=`, and fields. */
const partsOf = (words: ReadonlyArray<string>) => {
  const plain: Array<string> = []
  const fields: Array<Override> = []
  for (const word of words) {
    const field = overrideOf(word)
    if (field === undefined) plain.push(word)
    else fields.push(field)
  }
  return { plain, fields }
}

type Method = (...args: ReadonlyArray<unknown>) => Effect.Effect<unknown, TillError>

/** Formats an answer: in lines for a person, or on one line; a page as one line per object. */
const textOf = (answer: unknown, json: boolean): string => {
  if (!json) return JSON.stringify(answer, null, 2)
  const { data, object } = answer as { readonly data?: ReadonlyArray<unknown>; readonly object?: string }
  const isPage = data !== undefined && (object === "list" || object === "search_result")
  return isPage ? data.map((item) => JSON.stringify(item)).join("\n") : JSON.stringify(answer)
}

/** Carries out a verb, and prints the answer. */
export const runVerb = Effect.fnUntraced(function* (verb: Verb, { json, resource, words, ...flags }: ResourceOptions) {
  const { fields, plain } = partsOf(words)
  const call = callOf(verb, resource, plain)
  if (typeof call === "string") return yield* new WrongArguments({ message: call })
  const { till } = yield* connect(flags, "test or live")
  const methods = till as unknown as Readonly<Record<string, Readonly<Record<string, Method>>>>
  const answer = yield* methods[call.group]![call.name]!(...call.identifiers, applyOverrides({}, fields))
  const text = textOf(answer, json)
  if (text !== "") yield* Effect.raceFirst(Console.log(text), outputClosed)
})
