/**
 * Makes of an exchange what the log of requests keeps of it (semantics 9.66). Of what was sent, only members that are
 * listed here are kept, and of every text, whoever wrote it, what looks like a card number, a key or a secret goes.
 */
import { hasCardNumber } from "../domain/Cards.ts"
import { clean, HIDDEN, isClean } from "../domain/Secrets.ts"
import type { LoggedError, LoggedRequest } from "../engine/RequestLog.ts"
import { parseJson } from "../json/JsonParse.ts"
import type { Caller } from "./Authentication.ts"
import type { Answer, RequestContext } from "./RequestContext.ts"

/** Larger bodies are not kept, in bytes as they were sent. */
export const LOGGED_BODY_BYTES_MAX = 4096
/** Characters of a path, a message or a name. */
const TEXT_MAX = 500
/** Answers are looked into for the ids of objects so far, in characters. */
const LOOKED_INTO_MAX = 16_384
const OBJECTS_MAX = 12

/**
 * Members of bodies and queries that are kept. Whatever else there is, now or in a version to come, is not: above all
 * `card`, and `client_secret`.
 */
const KEPT: ReadonlySet<string> = new Set(
  `active address amount api_key api_version amount_to_capture application_fee_amount billing_address_collection
  billing_details billing_scheme cancel_url cancellation_reason capture_method city client_reference_id confirm
  confirmation_method country created currency custom_unit_amount customer customer_creation customer_details
  customer_email default_price default_price_data description divide_by email enabled enabled_events ending_before
  error_code expand expires_at expires_in flat_amount flat_amount_decimal height idempotency_key images interval
  interval_count length limit line1 line2 line_items lookup_key lookup_keys marketing_features maximum metadata method
  minimum mode name nickname object off_session outcome package_dimensions page path payment_intent payment_intent_data
  payment_method payment_method_data payment_method_type phone postal_code preset price price_data product quantity
  query reason recurring return_url round seconds setup_future_usage shippable starting_after state
  statement_descriptor status success_url tax_behavior tax_code tiers tiers_mode transfer_lookup_key transform_quantity
  type ui_mode unit_amount unit_amount_decimal unit_label up_to url usage_type webhook_endpoint weight width`.split(
    /\s+/
  )
)

export const isKept = (name: string): boolean => KEPT.has(name)

/** A JSON value, as far as it is kept. `isNamedFreely` is true for what merchants give names of their own. */
const cleanValue = (value: unknown, isNamedFreely = false): unknown => {
  if (typeof value === "string") return clean(value)
  if (typeof value === "number") {
    return Math.abs(value) <= Number.MAX_SAFE_INTEGER && !hasCardNumber(String(value)) ? value : HIDDEN
  }
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map((member) => cleanValue(member))
  const members = Object.entries(value).map(([name, member]): [string, unknown] => [
    clean(name),
    isNamedFreely || KEPT.has(name) ? cleanValue(member, name === "metadata") : HIDDEN
  ])
  return Object.fromEntries(members)
}

/** Hides what has a card number in it that several members make up, as an array of its groups. */
const withoutSpreadNumbers = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null || !hasCardNumber(JSON.stringify(value))) return value
  const within = Array.isArray(value)
    ? value.map(withoutSpreadNumbers)
    : Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withoutSpreadNumbers(member)]))
  return hasCardNumber(JSON.stringify(within)) ? HIDDEN : within
}

/** JSON text of what was cleaned part by part. */
const jsonOf = (cleaned: unknown): string => {
  const text = JSON.stringify(cleaned)
  return hasCardNumber(text) ? JSON.stringify(withoutSpreadNumbers(cleaned)) : text
}

/** Says that a JSON value has only members that are kept, and numbers that all readers of JSON agree on. */
const isKeptWhole = (value: unknown, isNamedFreely = false): boolean => {
  if (typeof value === "number") return Math.abs(value) <= Number.MAX_SAFE_INTEGER
  if (typeof value !== "object" || value === null) return true
  if (Array.isArray(value)) return value.every((member) => isKeptWhole(member))
  for (const name in value) {
    if (!isNamedFreely && !KEPT.has(name)) return false
    if (!isKeptWhole((value as Readonly<Record<string, unknown>>)[name], name === "metadata")) return false
  }
  return true
}

/**
 * JSON text of a body, as far as it is kept. Nearly always that is all of it, and then it is enough to look into the
 * text once. What JSON has escaped reads otherwise, so that is looked into part by part.
 */
const textOf = (body: unknown): string => {
  const whole = JSON.stringify(body)
  return !whole.includes("\\") && isClean(whole) && isKeptWhole(body) ? whole : jsonOf(cleanValue(body))
}

/** What a filter says of its parameter, as in `created[gte]`. */
const COMPARISONS: ReadonlySet<string> = new Set(["gt", "gte", "lt", "lte"])

/** True if a body with these names within one another would be kept. `expand[]` and `line_items[0]` name no member. */
const isKeptInQuery = (name: string): boolean => {
  const [outer = "", ...inner] = name.split("[")
  if (outer === "metadata" || !KEPT.has(outer)) return outer === "metadata"
  return inner
    .map((part) => (part.endsWith("]") ? part.slice(0, -1) : part))
    .every((part) => /^\d*$/.test(part) || KEPT.has(part) || COMPARISONS.has(part))
}

const cleanQuery = (query: string): object =>
  Object.fromEntries(
    [...new URLSearchParams(query)].map(([name, value]) => [
      clean(name).slice(0, TEXT_MAX),
      isKeptInQuery(name) ? clean(value) : HIDDEN
    ])
  )

/** Ids as they stand in answers, and in paths. */
const IDS = /["/](?:cus|pi|cs|prod|price|ref|ch|pm|evt|we|whd|key)_[0-9A-Za-z]{8,64}(?=["/]|$)/g

const idsIn = (text: string): ReadonlyArray<string> => text.match(IDS)?.map((found) => found.slice(1)) ?? []

/** A list names what it has found, and not what the request was about. */
const isList = (body: string): boolean =>
  body.startsWith('{"object":"list"') || body.startsWith('{"object":"search_result"')

const objectsOf = (path: string, body: string): ReadonlyArray<string> => {
  const ids = [...idsIn(path), ...(isList(body) ? [] : idsIn(body.slice(0, LOOKED_INTO_MAX)))]
  return [...new Set(ids)].filter((id) => clean(id) === id).slice(0, OBJECTS_MAX)
}

const errorOf = ({ body, status }: Answer): LoggedError | null => {
  if (status < 400) return null
  const { code, message, param, type } = (parseJson(body) as { readonly error: LoggedError }).error
  return {
    type,
    code,
    param: typeof param === "string" ? clean(param).slice(0, TEXT_MAX) : null,
    message: clean(message).slice(0, TEXT_MAX)
  }
}

/** What is known of a request when it is answered. */
export interface Answered {
  readonly exchange: Pick<RequestContext, "id" | "method" | "path" | "query" | "idempotencyKey" | "apiVersion">
  readonly caller: Pick<Caller, "account" | "apiKey">
  readonly answer: Answer
  /** The body as JSON has it; undefined if there was none, or none that is kept. */
  readonly body: unknown
  /** When it was answered, by the wall clock, and how long that took. */
  readonly at: number
  readonly millis: number
}

const sentOf = ({ body, exchange: { query } }: Answered): string | null => {
  if (body !== undefined) return textOf(body)
  return query === "" ? null : query.length > LOGGED_BODY_BYTES_MAX ? null : jsonOf(cleanQuery(query))
}

/** Makes what is kept of a request. */
export const loggedOf = (answered: Answered): LoggedRequest => {
  const { answer, at, caller, exchange, millis } = answered
  const path = clean(exchange.path).slice(0, TEXT_MAX)
  return {
    id: exchange.id,
    account: caller.account,
    at,
    method: exchange.method,
    path,
    status: answer.status,
    millis,
    apiKey: caller.apiKey,
    apiVersion: exchange.apiVersion,
    idempotencyKey: exchange.idempotencyKey === undefined ? null : clean(exchange.idempotencyKey),
    originalRequest: answer.headers?.["original-request"] ?? null,
    error: errorOf(answer),
    objects: objectsOf(path, answer.body),
    sent: sentOf(answered)
  }
}
