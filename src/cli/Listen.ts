/**
 * `till listen`: forwards the webhooks of test mode to an app on this machine, and prints the app's statuses.
 *
 * It survives restarts of the app and of Till: Till repeats webhooks that the app did not accept. When it ends, it
 * removes its webhook endpoint. Till must run on this machine, or share its loopback, because the webhooks are received
 * there. If `DELETE /v1/test_helpers/data` removes the endpoint, the command creates another one, and signs as before.
 */
import { Console, Effect, Queue, Redacted } from "effect"
import { randomUUID } from "node:crypto"
import { EVENT_TYPES } from "../domain/EventTypes.ts"
import type { EffectMethods } from "../client/effect.ts"
import { connect, type ConnectionFlags, httpUrlOf } from "./Connection.ts"
import { type Forwarded, forwarder } from "./Forwarder.ts"
import { listenSecret } from "./ListenSecret.ts"
import { didYouMean } from "./Suggestion.ts"
import { temporaryEndpoint } from "./TemporaryEndpoint.ts"
import { WrongArguments } from "./WrongArguments.ts"

/**
 * Formats a webhook as `2026-11-21T09:41:00Z payment_intent.succeeded evt_… 200 12 ms`, with the attempt's number from
 * the second attempt on.
 */
const lineOf = ({ attempt, durationMillis, event, outcome }: Forwarded, now: Date): string => {
  const time = now.toISOString().replace(/\.\d+Z$/u, "Z")
  const columns = [time, event.type, event.id, String(outcome), `${durationMillis} ms`]
  return [...columns, ...(attempt > 1 ? [`attempt ${attempt}`] : [])].join("  ")
}

/** Formats a webhook as a line of JSON. */
const jsonOf = ({ attempt, durationMillis, event, outcome }: Forwarded, now: Date): string =>
  JSON.stringify({
    time: now.toISOString(),
    type: event.type,
    event: event.id,
    outcome,
    duration_ms: durationMillis,
    attempt
  })

/** Returns a type that endpoints can subscribe to. */
const eventTypeOf = (type: string): Effect.Effect<string, WrongArguments> =>
  type === "*" || (EVENT_TYPES as ReadonlyArray<string>).includes(type)
    ? Effect.succeed(type)
    : Effect.fail(
        new WrongArguments({
          message: `there is no event type ${JSON.stringify(type)}${didYouMean(type, EVENT_TYPES) || "; see till trigger --help"}`
        })
      )

/** The app and the types of events to forward to it. */
export interface ListenOptions extends ConnectionFlags {
  readonly forwardTo: string
  readonly events: string
  readonly json: boolean
}

/** Finds the merchant of the client's key. */
const merchantOf = (till: EffectMethods) =>
  Effect.map(till.api_keys.list({ limit: 1 }), ({ data: [key] }) => key!.merchant_id)

/** Forwards webhooks until it is interrupted. */
export const listen = Effect.fnUntraced(function* ({ events, forwardTo: to, json, ...connection }: ListenOptions) {
  const forwardTo = httpUrlOf(to)
  if (forwardTo === undefined) {
    return yield* new WrongArguments({ message: "--forward-to must begin with http:// or https://" })
  }
  const enabledEvents = yield* Effect.forEach(events.split(","), (type) => eventTypeOf(type.trim()))
  const { stateFolder, till } = yield* connect(connection)
  const instance = randomUUID()
  const known = Promise.withResolvers<Redacted.Redacted>()
  let secret = known.promise
  const appSecret = listenSecret(stateFolder, yield* merchantOf(till), forwardTo)
  const lines = yield* Queue.unbounded<string>()
  const address = yield* forwarder({
    forwardTo,
    instance,
    secret: () => secret,
    appSecret: Redacted.make(appSecret),
    onForwarded: (forwarded) => Queue.offerUnsafe(lines, (json ? jsonOf : lineOf)(forwarded, new Date()))
  })
  const endpoint = yield* temporaryEndpoint({
    till,
    forwardTo,
    address,
    instance,
    enabledEvents,
    onLeftBehind: (id, { message }) =>
      Console.error(`The webhook endpoint ${id} could not be removed (${message}). The next till listen takes it over.`)
  })
  const begun = `Forwarding webhooks to ${forwardTo.href}\nThey are signed with ${appSecret}`
  yield* Console.log(json ? JSON.stringify({ forward_to: forwardTo.href, secret: appSecret }) : begun)
  known.resolve(endpoint.secret)
  const replace = Effect.flatMap(endpoint.replaced, (replacement) => {
    secret = Promise.resolve(replacement)
    return Console.error(
      "The webhook endpoint was deleted, and has another one now. Events in between were not forwarded."
    )
  })
  const print = Effect.flatMap(Queue.take(lines), (line) => Console.log(line))
  // The first failure ends the command: neither loop ends otherwise.
  return yield* Effect.raceFirst(Effect.forever(print), Effect.forever(replace))
}, Effect.scoped)
