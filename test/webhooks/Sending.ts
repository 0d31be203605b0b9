/** The real sender, for tests of what it puts on the wire and what it makes of the answers. */
import { Context, Effect, Layer, Redacted } from "effect"
import type { Scope } from "effect"
import type { WebhookHosts } from "../../src/domain/WebhookHosts.ts"
import { PUBLIC_ONLY } from "../../src/domain/WebhookHosts.ts"
import type { Endpoint } from "../../src/webhooks/Endpoints.ts"
import type { Message, Options, Result } from "../../src/webhooks/Sender.ts"
import { Sender } from "../../src/webhooks/Sender.ts"

export const SECRET = "whsec_ofTheSendersTests0000000000"
export const BODY = '{"id":"evt_1","type":"customer.created","data":{"object":{"name":"Zoë 日本 💳"}}}'

/** As in test mode on a machine of one's own. */
export const ANY: WebhookHosts = { httpsOnly: false, besidePublic: "any", keepsPrivateAnswers: true }
/** As in live mode. */
export const PUBLIC: WebhookHosts = { httpsOnly: true, besidePublic: PUBLIC_ONLY }

export const endpointOf = (url: string, hosts = ANY): Endpoint => ({
  url,
  secrets: [Redacted.make(SECRET)],
  hosts
})

export const messageTo = (
  url: string,
  more: Partial<Omit<Message, "body"> & Endpoint & { readonly body: string }> = {}
): Message => ({
  endpoint: { ...endpointOf(url, more.hosts), ...(more.secrets && { secrets: more.secrets }) },
  eventId: more.eventId ?? "evt_1",
  attempt: more.attempt ?? 1,
  body: Buffer.from(more.body ?? BODY)
})

export interface TestSender {
  /** Interrupting it gives the attempt up. */
  readonly send: (message: Message) => Effect.Effect<Result>
}

/** A sender that lives as long as the scope. */
export const makeSender = (options: Options = {}): Effect.Effect<TestSender, never, Scope.Scope> =>
  Effect.map(Layer.build(Sender.layer(options)), (context) => {
    const { begin } = Context.get(context, Sender)
    return {
      send: (message) =>
        Effect.callback<Result>((resume) => {
          const giveUp = begin(message, (result) => resume(Effect.succeed(result)))
          return Effect.sync(giveUp)
        })
    }
  })

/**
 * An attempt, and the end of its exchange. An attempt ends with the status line; its connection is given back a few
 * turns of the event loop later, if the body came with it.
 */
export const sendAndSettle = Effect.fnUntraced(function* (sender: TestSender, message: Message) {
  const result = yield* sender.send(message)
  for (let turn = 0; turn < 10; turn++) {
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  }
  return result
})
