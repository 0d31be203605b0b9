/**
 * Makes a request's entry in the request log (semantics request_log.redaction). An entry contains only the members of
 * the request that are listed here, and no text, of any origin, keeps parts that look like a card number, a key or a
 * secret.
 */
import { hasCardNumber } from "../domain/Cards.ts"
import { textOfHeader } from "../domain/HeaderText.ts"
import { clean, HIDDEN, isClean } from "../domain/Secrets.ts"
import type { LoggedError, LoggedRequest, RequestLogShape } from "../engine/RequestLog.ts"
import { parseJson } from "../json/JsonParse.ts"
import type { Caller } from "./Authentication.ts"
import type { Answer, Received } from "./RequestContext.ts"
import { mayWait } from "./Waiting.ts"

/** The longest request body that is logged, in bytes as sent. */
export const LOGGED_BODY_BYTES_MAX = 4096
/** The most characters of a path, a message or a name. */
const TEXT_MAX = 500
/** The part of an answer that is searched for ids of objects, in characters. */
const SEARCHED_LENGTH_MAX = 16_384
const OBJECTS_MAX = 12

/**
 * Members of bodies and queries that are logged. All others, also those of future versions, are hidden: above all
 * `card` and `client_secret`.
 */
const KEPT: ReadonlySet<string> = new Set(
  `active address adjustable_quantity after_completion amount amount_to_capture api_key api_version
  application_fee_amount billing_address_collection billing_details billing_scheme cancel_url cancellation_reason
  capture_method city client_reference_id completed_sessions confirm confirmation_method country created currency
  custom_unit_amount customer customer_creation customer_details customer_email default_price default_price_data
  description divide_by email enabled enabled_events ending_before error_code expand expires_at expires_in flat_amount
  flat_amount_decimal height idempotency_key images inactive_message interval interval_count kind length limit line1
  line2 line_items locale lookup_key lookup_keys marketing_features maximum metadata method minimum mode name nickname
  object off_session outcome package_dimensions page path payment_intent payment_intent_data payment_link
  payment_method payment_method_data payment_method_type phone phone_number_collection postal_code preset price
  price_data product quantity query reason recurring redirect restrictions return_url round seconds setup_future_usage
  shippable starting_after state statement_descriptor status success_url tax_behavior tax_code tiers tiers_mode
  transfer_lookup_key transform_quantity type ui_mode unit_amount unit_amount_decimal unit_label up_to url usage_type
  wait webhook_endpoint weight width`.split(/\s+/)
)

export const isKept = (name: string): boolean => KEPT.has(name)

/** Cleans a JSON value. `isNamedFreely` is true if merchants choose the names of its members. */
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

/** Hides values in which several members together form a card number, such as an array of its groups. */
const withoutSpreadNumbers = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null || !hasCardNumber(JSON.stringify(value))) return value
  const within = Array.isArray(value)
    ? value.map(withoutSpreadNumbers)
    : Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withoutSpreadNumbers(member)]))
  return hasCardNumber(JSON.stringify(within)) ? HIDDEN : within
}

/** Encodes a value whose parts were cleaned. */
const jsonOf = (cleaned: unknown): string => {
  const text = JSON.stringify(cleaned)
  return hasCardNumber(text) ? JSON.stringify(withoutSpreadNumbers(cleaned)) : text
}

/** True if a JSON value has only logged members, and numbers that all JSON parsers read alike. */
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
 * Returns a body's JSON, cleaned. Nearly always nothing has to be hidden, and scanning the text once is enough. JSON
 * escapes could hide a match, so a text with escapes is cleaned part by part.
 */
const textOf = (body: unknown): string => {
  const whole = JSON.stringify(body)
  return !whole.includes("\\") && isClean(whole) && isKeptWhole(body) ? whole : jsonOf(cleanValue(body))
}

/** The comparisons of a filter, as in `created[gte]`. */
const COMPARISONS: ReadonlySet<string> = new Set(["gt", "gte", "lt", "lte"])

/** True if a body with these nested names would be logged. `expand[]` and `line_items[0]` name no member. */
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

/** Ids in answers and in paths. */
const IDS = /["/](?:cus|pi|cs|prod|price|ref|ch|pm|evt|we|whd|key)_[0-9A-Za-z]{8,64}(?=["/]|$)/g

const idsIn = (text: string): ReadonlyArray<string> => text.match(IDS)?.map((found) => found.slice(1)) ?? []

/** True for a list, whose ids are results and not objects of the request. */
const isList = (body: string): boolean =>
  body.startsWith('{"object":"list"') || body.startsWith('{"object":"search_result"')

const objectsOf = (path: string, body: string): ReadonlyArray<string> => {
  const ids = [...idsIn(path), ...(isList(body) ? [] : idsIn(body.slice(0, SEARCHED_LENGTH_MAX)))]
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

/** A request and its answer. */
export interface Answered {
  readonly request: Pick<Received, "id" | "method" | "path" | "query" | "idempotencyKey">
  readonly apiVersion: string
  readonly caller: Pick<Caller, "account" | "apiKey">
  readonly answer: Answer
  /** The parsed body; undefined if there was none, or it is too long to be logged. */
  readonly body: unknown
  /** Time of the answer by the wall clock, and the duration of the request, in milliseconds. */
  readonly at: number
  readonly millis: number
}

const sentOf = ({ body, request: { query } }: Answered): string | null => {
  if (body !== undefined) return textOf(body)
  return query === "" ? null : query.length > LOGGED_BODY_BYTES_MAX ? null : jsonOf(cleanQuery(query))
}

/** Makes a request's entry. */
export const loggedOf = (answered: Answered): LoggedRequest => {
  const { answer, apiVersion, at, caller, millis, request } = answered
  const path = clean(request.path).slice(0, TEXT_MAX)
  return {
    id: request.id,
    account: caller.account,
    at,
    method: request.method,
    path,
    status: answer.status,
    millis,
    apiKey: caller.apiKey,
    apiVersion,
    idempotencyKey: request.idempotencyKey === undefined ? null : clean(request.idempotencyKey),
    originalRequest: answer.headers?.["original-request"] ?? null,
    error: errorOf(answer),
    objects: objectsOf(path, answer.body),
    sent: sentOf(answered)
  }
}

/** Requests for the log are not logged: `till logs` repeats them all the time. */
const isAboutLog = (path: string): boolean => /^\/v1\/request_logs(?:\/|$)/.test(path)

/**
 * Makes the function that logs answered requests whose account is known. The process that answers a request logs it.
 */
export const makeNote =
  ({ write }: RequestLogShape) =>
  (
    { id, idempotencyKey, incoming, method, path, query }: Received,
    { apiVersion, body, caller }: Pick<Answered, "apiVersion" | "body"> & { readonly caller: Caller | undefined },
    answer: Answer
  ): void => {
    if (caller === undefined || isAboutLog(path) || (answer.status === 200 && mayWait(query))) return
    const millis = performance.now() - incoming.arrivedAt
    const at = Date.now()
    write(caller.account, () => {
      const key = idempotencyKey === undefined ? undefined : textOfHeader(idempotencyKey)
      const request = { id, method, path, query, idempotencyKey: key }
      return loggedOf({ request, apiVersion, caller, answer, body, at, millis })
    })
  }
