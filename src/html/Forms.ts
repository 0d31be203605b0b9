/**
 * Forms of pages, as browsers send them. Each form that is shown gets a token of its own, which makes its submission
 * happen once, however often it is sent. Only Till can make a token, and it is good for one subject only, so no other
 * site's page can have a form sent to Till. The subject is the id of an object, together with what the form shows of it
 * if that may change meanwhile.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { Effect, Redacted } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { Unavailable } from "../engine/Accounts.ts"
import { readBodyOf } from "../http/forward/ForwardPage.ts"
import { RequestTooLarge } from "../server/HttpErrors.ts"
import type { RequestBodies } from "../server/RequestBody.ts"
import { BODY_BYTES_MAX } from "../server/RequestBody.ts"
import { formKey } from "../payments/IdempotencyKeys.ts"
import type { PaymentsConfigShape } from "../payments/PaymentsConfig.ts"

/** The values of a form by name. If a name is given twice, its first value counts. */
export type FormValues = ReadonlyMap<string, string>

/** No form of a page is this long, in bytes, unless it says so. Longer ones are refused. */
const FORM_BYTES_MAX = 65_536
/** No form has so many fields: a megabyte of empty ones takes a second to parse. */
const FIELDS_MAX = 1000
/** No value is this long, in characters. The rest of a longer one is cut off. */
const VALUE_LENGTH_MAX = 5000

/** Reads the form; undefined if the body is of another type. A long one may be as long as any request. */
export const readForm = (
  request: HttpServerRequest.HttpServerRequest,
  { isLong = false }: { readonly isLong?: boolean } = {}
): Effect.Effect<FormValues | undefined, RequestTooLarge | Unavailable, RequestBodies> => {
  const bytesMax = isLong ? BODY_BYTES_MAX : FORM_BYTES_MAX
  return Effect.flatMap(readBodyOf(request, bytesMax), (body) => {
    const text = body.toString("utf8")
    const isTooLarge = body.length > bytesMax || text.split("&", FIELDS_MAX + 1).length > FIELDS_MAX
    return isTooLarge ? Effect.fail(new RequestTooLarge()) : Effect.succeed(valuesIn(request, text))
  })
}

const valuesIn = ({ headers }: HttpServerRequest.HttpServerRequest, text: string): FormValues | undefined => {
  const [type] = (headers["content-type"] ?? "").split(";", 1)
  if (type?.trim().toLowerCase() !== "application/x-www-form-urlencoded") return undefined
  const values = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(text)) {
    if (!values.has(name)) values.set(name, clean(value))
  }
  return values
}

/** Takes off white space around a value, and what cannot be stored; lines end as they did before the form was sent. */
const clean = (value: string): string =>
  value.slice(0, VALUE_LENGTH_MAX).replaceAll("\0", "").replaceAll("\r\n", "\n").toWellFormed().trim()

/**
 * True if the browser says that another site's page has sent this. Old browsers say nothing; for them the form's token
 * must suffice, which such a page cannot have.
 */
export const isCrossSite = ({ headers }: HttpServerRequest.HttpServerRequest): boolean => {
  const site = headers["sec-fetch-site"]
  return site === "cross-site" || site === "same-site"
}

/** True if the page's script asks, which wants data instead of a page. */
export const wantsData = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  headers["accept"] === "application/json"

type Keys = Pick<PaymentsConfigShape, "fingerprintKey">

const NONCE_BYTES = 16

/** A new token for a form about this subject. */
export const makeToken = (keys: Keys, subject: string): string => {
  const nonce = randomBytes(NONCE_BYTES).toString("base64url")
  return `${nonce}.${macOf(keys, subject, nonce)}`
}

/** The idempotency key of a form's submission; undefined if the token was not made for this subject. */
export const idempotencyKeyOf = (keys: Keys, subject: string, token: string): string | undefined => {
  const [nonce = "", mac = ""] = token.split(".", 2)
  const expected = Buffer.from(macOf(keys, subject, nonce))
  const sent = Buffer.from(mac)
  return sent.length === expected.length && timingSafeEqual(sent, expected) ? formKey(subject, nonce) : undefined
}

/** The prefix keeps this use of the key apart from card numbers' fingerprints, which begin with an account. */
const macOf = ({ fingerprintKey }: Keys, subject: string, nonce: string): string =>
  createHmac("sha256", Redacted.value(fingerprintKey)).update(`form token|${subject}|${nonce}`).digest("base64url")
