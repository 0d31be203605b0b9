/**
 * `till listen`: forwards the webhooks of test mode to an app on this machine, and prints the app's statuses.
 *
 * It survives restarts of the app and of Till: Till repeats webhooks that the app did not accept. When it ends, it
 * removes its webhook endpoint. Till must run on this machine, or share its loopback, because the webhooks are received
 * there. If `DELETE /v1/test_helpers/data` removes the endpoint, the command creates another one, with another secret.
 */
import { Console, Effect, Queue, Redacted } from "effect"
import { Command, Flag } from "effect/cli"
import { randomUUID } from "node:crypto"
import { connect, connectionFlags, httpUrlOf, WrongArguments } from "./Connection.ts"
import { type Forwarded, forwarder } from "./Forwarder.ts"
import { temporaryEndpoint } from "./TemporaryEndpoint.ts"

/**
 * Formats a webhook as `2026-11-21T09:41:00Z payment_intent.succeeded evt_… 200 12 ms`, with the attempt's number from
 * the second attempt on.
 */
const lineOf = ({ attempt, durationMillis, event, outcome }: Forwarded, now: Date): string => {
  const time = now.toISOString().replace(/\.\d+Z$/u, "Z")
  const columns = [time, event.type, event.id, String(outcome), `${durationMillis} ms`]
  return [...columns, ...(attempt > 1 ? [`attempt ${attempt}`] : [])].join("  ")
}

const flags = {
  forwardTo: Flag.String("forward-to").pipe(Flag.withDescription("The app's URL: http://localhost:3000/hooks")),
  events: Flag.String("events").pipe(
    Flag.withDefault("*"),
    Flag.withDescription("Event types, separated by commas; all by default")
  ),
  ...connectionFlags
}

export const listen = Command.make("listen", flags, ({ events, forwardTo: to, ...connection }) =>
  Effect.gen(function* () {
    const forwardTo = httpUrlOf(to)
    if (forwardTo === undefined) {
      return yield* new WrongArguments({ message: "--forward-to must begin with http:// or https://" })
    }
    const { till } = yield* connect(connection)
    const instance = randomUUID()
    const known = Promise.withResolvers<Redacted.Redacted>()
    let secret = known.promise
    const lines = yield* Queue.unbounded<string>()
    const address = yield* forwarder({
      forwardTo,
      instance,
      secret: () => secret,
      onForwarded: (forwarded) => Queue.offerUnsafe(lines, lineOf(forwarded, new Date()))
    })
    const endpoint = yield* temporaryEndpoint({
      till,
      forwardTo,
      address,
      instance,
      enabledEvents: events.split(",").map((type) => type.trim()),
      onLeftBehind: (id, { message }) =>
        Console.error(
          `The webhook endpoint ${id} could not be removed (${message}). The next till listen takes it over.`
        )
    })
    yield* Console.log(
      `Forwarding webhooks to ${forwardTo.href}\nThey are signed with ${Redacted.value(endpoint.secret)}`
    )
    known.resolve(endpoint.secret)
    const replace = Effect.flatMap(endpoint.replaced, (replacement) => {
      secret = Promise.resolve(replacement)
      return Console.log(
        "The webhook endpoint was deleted, and events since then were not forwarded. " +
          `From now on webhooks are signed with ${Redacted.value(replacement)}`
      )
    })
    const print = Effect.flatMap(Queue.take(lines), (line) => Console.log(line))
    // The first failure ends the command: neither loop ends otherwise.
    return yield* Effect.raceFirst(Effect.forever(print), Effect.forever(replace))
  }).pipe(Effect.scoped)
).pipe(Command.withDescription("Forward webhooks of test mode to an app on this machine"))
