/**
 * One call of a gateway: a signed request, and the check of its answer's signature (semantics gateways.signature).
 *
 * An answer counts only if it is signed and carries the id of its own request. So neither a proxy's error page nor an
 * earlier answer can be taken for an outcome.
 */
import { Clock, Effect } from "effect"
import { randomBytes } from "node:crypto"
import { secondsOf } from "../../domain/Time.ts"
import * as StandardWebhooks from "../../domain/StandardWebhooks.ts"
import { parseJson } from "../../json/JsonParse.ts"
import type { Exchange, Reply } from "../Exchange.ts"
import { MESSAGE_BYTES_MAX, PROTOCOL, type Request } from "./Messages.ts"

export interface Gateway {
  readonly url: string
  /** Newest first: the first one signs, all of them verify. */
  readonly secrets: ReadonlyArray<StandardWebhooks.Secret>
  readonly exchange: Exchange
}

/** An answer that the gateway has signed for this request. `body` is undefined if it is not JSON. */
export interface Signed {
  readonly kind: "signed"
  readonly status: number
  readonly body: unknown
  readonly retryAfterMillis: number | null
}

export type Called =
  | Signed
  | { readonly kind: "not_sent"; readonly why: string }
  | { readonly kind: "unknown"; readonly why: string }

const ID_BYTES = 15
const RETRY_AFTER_SECONDS_MAX = 3600

export const call = Effect.fnUntraced(function* (gateway: Gateway, message: Request) {
  const body = Buffer.from(JSON.stringify(message))
  if (body.length > MESSAGE_BYTES_MAX) return { kind: "not_sent", why: "The request is longer than 64 KiB." } as const
  const id = `msg_${randomBytes(ID_BYTES).toString("hex")}`
  const signature = StandardWebhooks.sign(gateway.secrets, id, secondsOf(yield* Clock.currentTimeMillis), body)
  const headers = { ...signature, "till-protocol": String(PROTOCOL) }
  const reply = yield* gateway.exchange.post({ url: gateway.url, headers, body })
  return calledOf(gateway.secrets, id, reply, secondsOf(yield* Clock.currentTimeMillis))
})

/** Returns the answer to the request with this id, if the gateway has signed it. */
export const calledOf = (
  secrets: ReadonlyArray<StandardWebhooks.Secret>,
  id: string,
  reply: Reply,
  now: number
): Called => {
  if (reply.kind === "not_sent") return reply
  if (reply.kind === "lost") return { kind: "unknown", why: reply.why }
  const { body, headers, status } = reply
  const signedId = StandardWebhooks.verify(secrets, headers, body, now)
  if (signedId === null) return { kind: "unknown", why: `An answer with status ${status} was not signed.` }
  if (signedId !== id) return { kind: "unknown", why: "The answer was signed for another request." }
  return { kind: "signed", status, body: jsonOf(body), retryAfterMillis: retryAfterOf(headers["retry-after"]) }
}

/** Decodes UTF-8 without replacement characters, then JSON. */
export const jsonOf = (body: Uint8Array): unknown => {
  try {
    return parseJson(new TextDecoder("utf-8", { fatal: true }).decode(body))
  } catch {
    return undefined
  }
}

const retryAfterOf = (header: string | undefined): number | null =>
  header !== undefined && /^[0-9]{1,6}$/u.test(header) ? Math.min(Number(header), RETRY_AFTER_SECONDS_MAX) * 1000 : null
