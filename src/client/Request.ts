/**
 * Builds requests for calls, from the contract.
 *
 * Parameters are sent as given, even unknown and invalid ones: only the server validates them. A client that dropped
 * unknown parameters would turn a misspelt `capture_method` into an immediate capture (semantics requests.unknown), and
 * one that checked bounds would refuse values that a newer server accepts. This file refuses only what cannot be sent.
 */
import type { Redacted } from "effect"
import { HttpClientRequest } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { IDEMPOTENCY_KEY_LENGTH_MAX } from "../api/Access.ts"
import { API_VERSION_NEWEST, type ApiVersion } from "../domain/ApiVersion.ts"
import { headerOfText } from "../domain/HeaderText.ts"
import { hasLengthAtMost } from "../domain/Text.ts"
import { InvalidRequestError } from "./Errors.ts"
import type { RequestOptions } from "./Methods.ts"

/** The arguments of a method, by kind. */
export interface Call {
  readonly identifiers: ReadonlyArray<string>
  readonly parameters: Readonly<Record<string, unknown>>
  readonly options: RequestOptions
}

const PATH_IDENTIFIER = /:\w+/gu

/** Returns the number of identifiers in an endpoint's path. */
export const identifierCount = (endpoint: HttpApiEndpoint.Top): number =>
  endpoint.path.match(PATH_IDENTIFIER)?.length ?? 0

export const callOf = (endpoint: HttpApiEndpoint.Top, args: ReadonlyArray<unknown>): Call => {
  const count = identifierCount(endpoint)
  return {
    identifiers: args.slice(0, count) as ReadonlyArray<string>,
    parameters: (args[count] ?? {}) as Call["parameters"],
    options: (args[count + 1] ?? {}) as RequestOptions
  }
}

/** Returns the reason why a call cannot be sent; undefined if it can. */
export const refusalOf = (
  call: Pick<Call, "identifiers">,
  idempotencyKey: string | null
): InvalidRequestError | undefined => {
  if (idempotencyKey !== null && !isSendable(idempotencyKey)) {
    return refusal("Idempotency-Key", `1 to ${IDEMPOTENCY_KEY_LENGTH_MAX} characters, none of them a control character`)
  }
  return call.identifiers.every(isSegment) ? undefined : refusal("id", "an ID")
}

/** Builds the request of a call. The key is null if the endpoint takes none; then the parameters form the query. */
export const requestOf = (
  endpoint: HttpApiEndpoint.Top,
  call: Pick<Call, "identifiers" | "parameters">,
  headers: {
    readonly idempotencyKey: string | null
    readonly apiVersion: ApiVersion | undefined
    readonly apiKey: Redacted.Redacted
  }
): HttpClientRequest.HttpClientRequest => {
  let next = 0
  const path = endpoint.path.replaceAll(PATH_IDENTIFIER, () => encodeURIComponent(call.identifiers[next++]!))
  const request = HttpClientRequest.make(endpoint.method)(path).pipe(
    HttpClientRequest.basicAuth(headers.apiKey, ""),
    HttpClientRequest.setHeader("x-api-version", headers.apiVersion ?? API_VERSION_NEWEST)
  )
  const { idempotencyKey } = headers
  if (idempotencyKey === null) return HttpClientRequest.appendUrlParams(request, queryOf(call.parameters))
  return request.pipe(
    HttpClientRequest.setHeader("idempotency-key", headerOfText(idempotencyKey)),
    HttpClientRequest.bodyText(JSON.stringify(call.parameters), "application/json")
  )
}

/** Returns the query. Undefined parameters are left out; a list becomes a repeated parameter. */
const queryOf = (parameters: Call["parameters"]): ReadonlyArray<readonly [string, string]> =>
  Object.entries(parameters).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).flatMap((one: unknown) =>
      one === undefined ? [] : [[name, String(one)] as const]
    )
  )

/** Returns whether a header can carry this key and Till accepts it. Blanks around a key would be lost. */
const isSendable = (key: unknown): boolean =>
  typeof key === "string" &&
  hasLengthAtMost(key, IDEMPOTENCY_KEY_LENGTH_MAX) &&
  // oxlint-disable-next-line no-control-regex
  /^[^\x00-\x1f\x7f]+$/u.test(key) &&
  key.trim() === key &&
  key.isWellFormed()

/** Returns whether this can be a path segment: an empty one or dots would change the path. */
const isSegment = (identifier: unknown): boolean =>
  typeof identifier === "string" && !/^\.{0,2}$/u.test(identifier) && identifier.isWellFormed()

const refusal = (param: string, rule: string): InvalidRequestError =>
  new InvalidRequestError({
    code: "parameter_invalid",
    message: `The \`${param}\` field must be ${rule}.`,
    param,
    doc_url: null,
    status: null,
    request_id: null,
    idempotency_key: null,
    retry_after: null
  })
