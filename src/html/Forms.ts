/**
 * Reads forms as browsers send them. Each rendered form has a new token, which makes its submission happen once,
 * however often it is sent. Only Till can create a token, and a token is valid for one subject only, so no other site
 * can submit a form. The subject is the id of an object, and, if they may change, the terms that the form shows.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { Effect, Redacted } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { Unavailable } from "../engine/Accounts.ts"
import { readBodyOf } from "../http/forward/ForwardPage.ts"
import { RequestTooLarge } from "../server/HttpErrors.ts"
import { BODY_BYTES_MAX, type RequestBodies } from "../server/RequestBody.ts"
import { formKey } from "../payments/shared/IdempotencyKeys.ts"
import { inForce, type Keys } from "../payments/shared/Keyring.ts"
import type { PaymentsConfigShape } from "../payments/shared/PaymentsConfig.ts"

/** Form values by name. The first of several values with one name counts. */
export type FormValues = ReadonlyMap<string, string>

/** Maximum length of a form in bytes, unless the form is long. Longer forms are refused. */
const FORM_BYTES_MAX = 65_536
/** Maximum number of fields: parsing a megabyte of empty fields takes a second. */
const FIELDS_MAX = 1000
/** Maximum length of a value in characters. Longer values are truncated. */
const VALUE_LENGTH_MAX = 5000

/** Reads a form; undefined for another content type. A long form may be as large as an API request. */
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
    if (!values.has(name)) values.set(name, cleanValue(value))
  }
  return values
}

/** Trims a value, removes characters that cannot be stored, and restores line breaks, which browsers send as CRLF. */
export const cleanValue = (value: string): string =>
  value.slice(0, VALUE_LENGTH_MAX).replaceAll("\0", "").replaceAll("\r\n", "\n").toWellFormed().trim()

/** True if the browser reports that another site sent the request; for old browsers the token suffices. */
export const isCrossSite = ({ headers }: HttpServerRequest.HttpServerRequest): boolean => {
  const site = headers["sec-fetch-site"]
  return site === "cross-site" || site === "same-site"
}

/** True if the page's script requests data instead of a page. */
export const wantsData = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  headers["accept"] === "application/json"

type Config = Pick<PaymentsConfigShape, "keyring">

const NONCE_BYTES = 16

export const makeToken = ({ keyring }: Config, subject: string): string => {
  const nonce = randomBytes(NONCE_BYTES).toString("base64url")
  return `${nonce}.${macOf(inForce(keyring), subject, nonce)}`
}

/** Returns the idempotency key of a submission; undefined if the token is not valid for the subject. */
export const idempotencyKeyOf = ({ keyring }: Config, subject: string, token: string): string | undefined => {
  const [nonce = "", mac = ""] = token.split(".", 2)
  const sent = Buffer.from(mac)
  const isValid = keyring.all.some((keys) => {
    const expected = Buffer.from(macOf(keys, subject, nonce))
    return sent.length === expected.length && timingSafeEqual(sent, expected)
  })
  return isValid ? formKey(subject, nonce) : undefined
}

const macOf = ({ forms }: Keys, subject: string, nonce: string): string =>
  createHmac("sha256", Redacted.value(forms)).update(`${subject}|${nonce}`).digest("base64url")
