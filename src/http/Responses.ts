/** Responses and the headers that every one of them has (semantics T19). */
import { HttpServerResponse } from "effect/http"

export interface Answer {
  readonly status: number
  /** JSON text. */
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Of the request, what its response shows. */
export interface Answered {
  readonly id: string
  readonly apiVersion: string
  readonly idempotencyKey: string | undefined
}

export const respond = (
  { apiVersion, id, idempotencyKey }: Answered,
  { body, headers, status }: Answer
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(body, {
    status,
    contentType: "application/json",
    headers: {
      "cache-control": "no-store",
      "x-api-version": apiVersion,
      "x-request-id": id,
      ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
      ...headers
    }
  })
