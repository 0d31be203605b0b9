/**
 * Decides which requests a key may send, and which fields of an answer it may see. A secret key may do everything in
 * its environment. A publishable key, which every visitor of the merchant's page has, requires the object's client
 * secret (semantics keys.publishable, keys.client_secret) and sees a part of the object (semantics
 * keys.publishable.payment_intents, keys.publishable.sessions).
 */
import { Exit } from "effect"
import { SecretKeyRequired, TestModeOnly } from "../domain/Errors.ts"
import type { OlderVersion } from "../domain/ApiVersions.ts"
import { publishable, PUBLISHABLE_FIELDS } from "../domain/Publishable.ts"
import { parseJson } from "../json/JsonParse.ts"
import type { Caller } from "./Authentication.ts"
import type { CommandEndpoint, Endpoint } from "./Endpoints.ts"
import type { Answer } from "./RequestContext.ts"

const secretKeyRequired = Exit.fail(new SecretKeyRequired())
const testModeOnly = Exit.fail(new TestModeOnly())

const needsClientSecret = ({ keyType }: Caller, { withoutClientSecret }: Endpoint): boolean =>
  keyType === "publishable" && !withoutClientSecret

/** Decides before the body is read. A client secret in the body is checked later, by `permitBody`. */
export const permit = (
  caller: Caller,
  endpoint: Endpoint,
  queryText: string
): Exit.Exit<void, SecretKeyRequired | TestModeOnly> => {
  if (needsClientSecret(caller, endpoint)) {
    const isOpen = () => endpoint.kind === "command" || new URLSearchParams(queryText).has("client_secret")
    if (!(endpoint.publishableKey && isOpen())) return secretKeyRequired
  }
  return endpoint.testMode && caller.livemode ? testModeOnly : Exit.void
}

/** Decides by the body, which is not validated yet, whether it contains the client secret that the key requires. */
export const permitBody = (
  caller: Caller,
  endpoint: CommandEndpoint,
  body: unknown
): Exit.Exit<void, SecretKeyRequired> =>
  needsClientSecret(caller, endpoint) && !hasClientSecret(body) ? secretKeyRequired : Exit.void

/** True if the parameters contain a client secret, valid or not. */
const hasClientSecret = (parameters: unknown): boolean =>
  typeof parameters === "object" &&
  parameters !== null &&
  typeof Object.getOwnPropertyDescriptor(parameters, "client_secret")?.value === "string"

/**
 * Returns the part of an answer that a key may see, by the fields of the answer's version. This applies to replays,
 * too, because the journal keeps answers in full.
 */
export const shownTo = ({ keyType }: Caller, answer: Answer, older: OlderVersion | undefined): Answer =>
  keyType === "secret" ? answer : { ...answer, body: projectBody(answer.body, older?.publishableFields) }

interface ErrorBody {
  readonly error?: { readonly payment_intent?: object }
}

/** Projects a response's JSON. */
const projectBody = (body: string, fieldsOf = PUBLISHABLE_FIELDS): string => {
  const value = parseJson(body) as ErrorBody
  if (value.error === undefined) return JSON.stringify(publishable(value, fieldsOf))
  if (value.error.payment_intent === undefined) return body
  const payment_intent = publishable(value.error.payment_intent, fieldsOf)
  return JSON.stringify({ error: { ...value.error, payment_intent } })
}
