/**
 * Makes requests of calls, by the contract.
 *
 * Parameters go out as they came in, unknown and wrong ones too: the server alone judges them. A client that dropped
 * what it does not know would turn a misspelt `capture_method` into a payment that is captured at once (semantics T7),
 * and one that checked bounds would refuse what a newer server accepts. Only what cannot be sent is refused here.
 */
import type { Redacted } from "effect"
import { HttpClientRequest } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { IDEMPOTENCY_KEY_LENGTH_MAX } from "../api/Access.ts"
import type { ApiVersion } from "../domain/ApiVersion.ts"
import { API_VERSION_NEWEST } from "../domain/ApiVersion.ts"
import { headerOfText } from "../domain/HeaderText.ts"
import { hasLengthAtMost } from "../domain/Text.ts"
import { InvalidRequestError } from "./Errors.ts"
import type { RequestOptions } from "./Methods.ts"

/** The arguments of a method, told apart. */
export interface Call {
  readonly identifiers: ReadonlyArray<string>
  readonly parameters: Readonly<Record<string, unknown>>
  readonly options: RequestOptions
}

const PATH_IDENTIFIER = /:\w+/gu

/** The number of identifiers in an endpoint's path. */
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

/** Says why a call cannot be sent; undefined if it can. */
export const refusalOf = (
  call: Pick<Call, "identifiers">,
  idempotencyKey: string | null
): InvalidRequestError | undefined => {
  if (idempotencyKey !== null && !isSendable(idempotencyKey)) {
    return refusal("Idempotency-Key", `1 to ${IDEMPOTENCY_KEY_LENGTH_MAX} characters, none of them a control character`)
  }
  return call.identifiers.every(isSegment) ? undefined : refusal("id", "an ID")
}

/** The request that a call makes. The key is null where the endpoint takes none, and the parameters are its query. */
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

/** Leaves out what is undefined; a list becomes a repeated parameter. */
const queryOf = (parameters: Call["parameters"]): ReadonlyArray<readonly [string, string]> =>
  Object.entries(parameters).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).flatMap((one: unknown) =>
      one === undefined ? [] : [[name, String(one)] as const]
    )
  )

/** A header can carry this text, and Till takes it. Blanks around it would not arrive. */
const isSendable = (key: unknown): boolean =>
  typeof key === "string" &&
  hasLengthAtMost(key, IDEMPOTENCY_KEY_LENGTH_MAX) &&
  // oxlint-disable-next-line no-control-regex
  /^[^\x00-\x1f\x7f]+$/u.test(key) &&
  key.trim() === key &&
  key.isWellFormed()

/** Nothing and dots would make another path, and half a character is no part of one. */
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
