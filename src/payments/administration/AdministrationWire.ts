/**
 * Administration commands on the wire. A process sends one to a running service over the control socket
 * (`control/ControlSocket.ts`), or to another process of its installation (`http/forward/Calls.ts`). Both transports
 * carry a command and a reply as JSON and define only how a reply arrives, or does not.
 *
 * Written by hand, because both senders have to tell a command that was certainly not run from one whose reply was
 * lost, and only the transport can tell. `effect/rpc` would start as fast (its modules load in 5 ms) but reports both
 * as one client error, and would need an adapter on each side of each transport.
 */
import { Effect, Schema } from "effect"
import { Unavailable } from "../../engine/Accounts.ts"
import { Administered, AdministrationFailed, OperatorCommand } from "./Administration.ts"

/** A response as JSON. That to a command has `Administered` as its body if the status is 200, else `{ message }`. */
export interface JsonResponse {
  readonly status: number
  readonly body: unknown
}

export const decodeCommand = Schema.decodeUnknownEffect(OperatorCommand)

export const refusal = (status: number, message: string): JsonResponse => ({ status, body: { message } })

export const success = (answer: Administered): JsonResponse => ({ status: 200, body: answer })

/** Returns the reply to a command that failed, or whose program has a bug. */
export const refusalOf = (failure: unknown): JsonResponse => {
  if (failure instanceof AdministrationFailed) return refusal(400, failure.message)
  return refusal(503, failure instanceof Unavailable ? failure.reason : FAILED)
}

const FAILED = "The service failed."

const isRefusal = Schema.is(Schema.Struct({ message: Schema.String }))

export const messageOf = ({ body }: JsonResponse): string => (isRefusal(body) ? body.message : FAILED)

const decodeAnswer = Schema.decodeUnknownEffect(Administered)

/** Decodes a reply: its `Administered`, or the failure of the process that ran or refused the command. */
export const readResponse = (reply: JsonResponse): Effect.Effect<Administered, AdministrationFailed | Unavailable> => {
  if (reply.status === 200) return Effect.mapError(decodeAnswer(reply.body), () => new Unavailable({ reason: OTHER }))
  const message = messageOf(reply)
  return Effect.fail(
    reply.status === 503 ? new Unavailable({ reason: message }) : new AdministrationFailed({ message })
  )
}

const OTHER = "The service that ran the command is another version of Till: its answer cannot be read."
