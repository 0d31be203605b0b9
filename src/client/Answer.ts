/**
 * Reads responses.
 *
 * A successful body is returned as it is. The contract can gain response fields and enum values without a new version
 * (spec: Versioning 7), so a client that refused unknown ones would break with the next server. The types describe the
 * contract; the server's tests check that it keeps it.
 */
import { Result } from "effect"
import { parseJson } from "../json/JsonParse.ts"
import type { PaymentIntent } from "./Contract.ts"
import {
  ApiError,
  AuthenticationError,
  InvalidRequestError,
  PaymentError,
  RateLimitError,
  type TillError,
  UnexpectedResponseError
} from "./Errors.ts"

/** A complete response. */
export interface Answer {
  readonly status: number
  /** Header names are in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly text: string
}

interface Envelope {
  readonly type: string
  readonly code: string
  readonly message: string
  readonly param?: string | null
  readonly doc_url?: string
  readonly decline_code?: string
  readonly charge?: string
  readonly payment_intent?: PaymentIntent
}

/** Returns the result of a response to a call with this key. `nowMillis` is for a `Retry-After` that is a date. */
export const meaningOf = (
  answer: Answer,
  idempotencyKey: string | null,
  nowMillis: number
): Result.Result<object, TillError> => {
  const body = jsonObjectOf(answer.text)
  if (answer.status === 200 && body !== undefined) return Result.succeed(body)
  const call = {
    status: answer.status,
    request_id: answer.headers["x-request-id"] ?? null,
    idempotency_key: idempotencyKey,
    retry_after: retryAfterSeconds(answer.headers["retry-after"], nowMillis)
  }
  const envelope = body === undefined || answer.status < 400 ? undefined : envelopeOf(body)
  const error = envelope === undefined ? undefined : errorOf(envelope, call)
  if (error !== undefined) return Result.fail(error)
  const message = `The answer, with status ${answer.status}, is not one of Till's.`
  return Result.fail(new UnexpectedResponseError({ ...call, message }))
}

type Call = Pick<TillError, "status" | "request_id" | "idempotency_key" | "retry_after">

const errorOf = (envelope: Envelope, call: Call): TillError | undefined => {
  const { code, message, param = null, doc_url = null } = envelope
  const fields = { ...call, code, message, param, doc_url }
  switch (envelope.type) {
    case "invalid_request_error":
      return new InvalidRequestError(fields)
    case "authentication_error":
      return new AuthenticationError(fields)
    case "payment_error": {
      const { charge, decline_code, payment_intent } = envelope
      return new PaymentError({ ...fields, decline_code, charge, payment_intent })
    }
    case "rate_limit_error":
      return new RateLimitError(fields)
    case "api_error":
      return new ApiError(fields)
    default:
      return undefined
  }
}

const jsonObjectOf = (text: string): object | undefined => {
  try {
    const value: unknown = parseJson(text)
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

const envelopeOf = (body: { readonly error?: unknown }): Envelope | undefined => {
  const error = body.error as Partial<Envelope> | null | undefined
  if (typeof error?.type !== "string" || typeof error.code !== "string" || typeof error.message !== "string") return
  return error as Envelope
}

/** Parses `Retry-After`, seconds or a date (RFC 9110, 10.2.3), into seconds; null if absent or neither. */
export const retryAfterSeconds = (header: string | undefined, nowMillis: number): number | null => {
  if (header === undefined) return null
  if (/^\d+$/u.test(header)) return Number(header)
  const date = Date.parse(header)
  return Number.isNaN(date) ? null : Math.max(0, Math.ceil((date - nowMillis) / 1000))
}
