/**
 * Builds requests for calls, from the contract.
 *
 * Parameters are sent as given, even unknown and invalid ones: only the server validates them. A client that dropped
 * unknown parameters would turn a misspelt `capture_method` into an immediate capture (semantics requests.unknown), and
 * one that checked bounds would refuse values that a newer server accepts. This file refuses only what cannot be sent.
 */
import { Redacted } from "effect"
import { API_VERSION_NEWEST } from "../domain/ApiVersionNames.ts"
import { headerOfText } from "../domain/HeaderText.ts"
import { hasLengthAtMost, IDEMPOTENCY_KEY_LENGTH_MAX } from "../domain/Length.ts"
import type { ApiVersion } from "./Contract.ts"
import type { Endpoint } from "./Endpoints.ts"
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
export const identifierCount = ([, path]: Endpoint): number => path.match(PATH_IDENTIFIER)?.length ?? 0

export const callOf = (endpoint: Endpoint, args: ReadonlyArray<unknown>): Call => {
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

/** A request, from its path on. */
export interface PlainRequest {
  readonly method: Endpoint[0]
  /** With the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

/** Builds the request of a call. The key is null if the endpoint takes none; then the parameters form the query. */
export const requestOf = (
  [method, template]: Endpoint,
  call: Pick<Call, "identifiers" | "parameters">,
  given: {
    readonly idempotencyKey: string | null
    readonly apiVersion: ApiVersion | undefined
    readonly apiKey: Redacted.Redacted
  }
): PlainRequest => {
  let next = 0
  const path = template.replaceAll(PATH_IDENTIFIER, () => encodeURIComponent(call.identifiers[next++]!))
  const headers = {
    authorization: `Basic ${btoa(`${Redacted.value(given.apiKey)}:`)}`,
    "x-api-version": given.apiVersion ?? API_VERSION_NEWEST
  }
  const { idempotencyKey } = given
  if (idempotencyKey === null) {
    const query = queryOf(call.parameters).toString()
    return { method, path: query === "" ? path : `${path}?${query}`, headers, body: undefined }
  }
  return {
    method,
    path,
    headers: {
      ...headers,
      "content-type": "application/json",
      "idempotency-key": headerOfText(idempotencyKey)
    },
    body: JSON.stringify(call.parameters)
  }
}

/** Returns the query. Undefined parameters are left out; a list becomes a repeated parameter. */
const queryOf = (parameters: Call["parameters"]): URLSearchParams =>
  new URLSearchParams(
    Object.entries(parameters).flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value]).flatMap((one: unknown) =>
        one === undefined ? [] : [[name, String(one)]]
      )
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
