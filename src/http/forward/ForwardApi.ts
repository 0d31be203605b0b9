/** Forwards a request of the API to the process that serves its account, and returns that process's answer. */
import { Cause, Effect, Exit } from "effect"
import type { AccountId } from "../../engine/log/Document.ts"
import { Unavailable } from "../../engine/Accounts.ts"
import type { Answer, Received } from "../RequestContext.ts"
import { withTraceparent } from "../../engine/process/Traces.ts"
import { RequestTooLarge } from "../../server/HttpErrors.ts"
import type { BodyLimits } from "../../server/Incoming.ts"
import type { Kind } from "./SignedRequest.ts"
import { type ForwarderShape, headersFor, HERE } from "./Forwarder.ts"

/** Returns the account that another process serves if the failure is about that: then nothing was done here. */
export const elsewhereOf = (cause: Cause.Cause<unknown>): AccountId | undefined => {
  const failure = cause.reasons.find((reason) => reason._tag === "Fail")?.error
  return failure instanceof Unavailable && failure.isElsewhere ? failure.account : undefined
}

const nothing = Buffer.alloc(0)

interface Body {
  readonly kind: Kind
  readonly bytes: Buffer
}

const whole = (bytes: Buffer): Body => ({ kind: "request", bytes })
const unread = Exit.succeed<Body>({ kind: "unread", bytes: nothing })
const withoutBody = Exit.succeed<Body>(whole(nothing))
const ofHead = Exit.succeed<Body>({ kind: "head", bytes: nothing })

/** Decisions about a request's body, made by the process that received the request. */
export interface BodyPolicy {
  /** True if the request is refused without its body. */
  readonly isRefused: () => boolean
  readonly limits: () => BodyLimits | undefined
}

/** Reads the body, unless the request is refused anyway. An unreadable body becomes a refusal, too. */
const bodyOf = ({ incoming, method, wait }: Received, { isRefused, limits }: BodyPolicy): Effect.Effect<Body> => {
  if (method === "HEAD") return ofHead
  if (method !== "POST") return withoutBody
  if (!incoming.isWhole && isRefused()) return unread
  const arriving = incoming.readBody(limits())
  if (Exit.isExit(arriving) && Exit.isSuccess(arriving)) return Exit.succeed(whole(arriving.value as Buffer))
  wait.pause()
  const body = Effect.match(arriving, {
    onSuccess: whole,
    onFailure: (failure): Body => ({
      kind: failure instanceof RequestTooLarge ? "too_large" : "too_many",
      bytes: nothing
    })
  })
  return Effect.tap(body, () => Effect.sync(() => wait.resume()))
}

/** Returns the answer of the account's process, or `HERE` if the account is served here. */
export const forwardApi = (
  forwarder: ForwarderShape,
  request: Received,
  account: AccountId,
  policy: BodyPolicy
): Effect.Effect<Answer | typeof HERE, Unavailable> => {
  const { course, incoming } = request
  const { remoteAddress, url } = incoming
  const rawHeaders = withTraceparent(incoming.rawHeaders, request.trace)
  const forward = ({ bytes, kind }: Body) => {
    const method = kind === "head" ? "GET" : request.method
    const sent = { account, kind, method, url, rawHeaders, remoteAddress, body: bytes, course }
    // A repeated POST has no further effect, because of its idempotency key.
    const mayRepeat = method !== "DELETE"
    return Effect.map(forwarder.forward({ ...sent, mayRepeat }), (reply): Answer | typeof HERE =>
      reply === HERE
        ? HERE
        : {
            status: reply.status,
            headers: withoutLength(headersFor(reply) as Record<string, string>),
            body: reply.body.toString("utf8"),
            isComplete: true
          }
    )
  }
  const body = bodyOf(request, policy)
  return Exit.isExit(body) && Exit.isSuccess(body) ? forward(body.value as Body) : Effect.flatMap(body, forward)
}

/** Removes the length, which is added again when the answer is written. */
const withoutLength = (headers: Record<string, string>): Record<string, string> => {
  delete headers["content-length"]
  return headers
}
