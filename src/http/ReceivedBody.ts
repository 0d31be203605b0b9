/** Limits the body of a request by its caller. */
import { Effect, Exit } from "effect"
import type { Unavailable } from "../engine/Accounts.ts"
import { RequestTooLarge } from "../server/HttpErrors.ts"
import type { BodyLimits, Incoming } from "../server/Incoming.ts"
import { BODY_BYTES_MAX, PUBLISHABLE_BODY_BYTES_MAX } from "../server/RequestBody.ts"
import type { Caller } from "./Authentication.ts"
import { isOver } from "./RequestFibers.ts"

/** Returns the largest body of a caller, and the name under which its bodies share memory. */
export const limitsOf = ({ account, keyType }: Caller): BodyLimits => ({
  holder: `${account} ${keyType}`,
  bytesMax: keyType === "publishable" ? PUBLISHABLE_BODY_BYTES_MAX : BODY_BYTES_MAX
})

/** Reads a body. If it arrived whole, or at another process, only its length is checked. */
export const readBody = (incoming: Incoming, caller: Caller): Effect.Effect<Buffer, RequestTooLarge | Unavailable> => {
  const limits = limitsOf(caller)
  const read = incoming.readBody(limits)
  if (isOver(read) && Exit.isSuccess(read) && read.value.length <= limits.bytesMax) return read
  const tooLarge = new RequestTooLarge({ isOfPublishableKey: caller.keyType === "publishable" })
  return Effect.matchEffect(read, {
    onSuccess: (body) => (body.length > limits.bytesMax ? Exit.fail(tooLarge) : Exit.succeed(body)),
    onFailure: (failure) => Exit.fail(failure instanceof RequestTooLarge ? tooLarge : failure)
  })
}
