/**
 * Reads the API's own request headers: the idempotency key and the version (semantics idempotency.required,
 * versions.unknown, versions.supported).
 */
import { Exit } from "effect"
import { ParameterInvalid, ParameterMissing } from "../domain/Errors.ts"
import { textOfHeader } from "../domain/HeaderText.ts"
import { hasLengthAtMost, IDEMPOTENCY_KEY_LENGTH_MAX } from "../domain/Length.ts"
import { InvalidApiVersion } from "../server/HttpErrors.ts"
import type { Incoming } from "../server/Incoming.ts"

type Head = Pick<Incoming, "headers" | "isRepeated">

const KEY = "Idempotency-Key"

const keyMissing = Exit.fail(new ParameterMissing({ param: KEY }))
const keyInvalid = Exit.fail(
  new ParameterInvalid({ param: KEY, rule: `given once, with 1 to ${IDEMPOTENCY_KEY_LENGTH_MAX} characters` })
)

/** Reads the idempotency key of a POST, as a text. */
export const idempotencyKeyOf = (request: Head): Exit.Exit<string, ParameterMissing | ParameterInvalid> => {
  const key = singleIdempotencyKey(request)
  if (key !== undefined) return Exit.succeed(textOfHeader(key))
  return request.headers["idempotency-key"] === undefined ? keyMissing : keyInvalid
}

/** Returns the key if it is valid, in the bytes that were sent: the response repeats it. */
export const singleIdempotencyKey = (request: Head): string | undefined => {
  const key = request.headers["idempotency-key"]
  if (typeof key !== "string" || key === "" || !isShort(key)) return undefined
  // Repeated headers are joined with commas, and a single one may contain commas, too.
  return key.includes(",") && request.isRepeated("idempotency-key") ? undefined : key
}

/** Counts characters of the text, not bytes (semantics parameters.lengths, requests.headers). */
const isShort = (key: string): boolean =>
  key.length <= IDEMPOTENCY_KEY_LENGTH_MAX || hasLengthAtMost(textOfHeader(key), IDEMPOTENCY_KEY_LENGTH_MAX)

/** Reads the version of the answer. A repeated header arrives with a comma in it, and so is invalid. */
export const apiVersionOf = (
  { headers }: Head,
  accountDefault: string,
  known: ReadonlyArray<string>
): Exit.Exit<string, InvalidApiVersion> => {
  const sent = headers["x-api-version"]
  if (sent === undefined) return Exit.succeed(accountDefault)
  const version = textOfHeader(String(sent)).trim()
  const supported = known.find((candidate) => candidate === version)
  return supported === undefined ? Exit.fail(new InvalidApiVersion({ version })) : Exit.succeed(supported)
}
