/** Runs the real sender, for tests of its requests and of the results that it makes of answers. */
import { Context, Effect, Layer, Redacted, type Scope } from "effect"
import { PUBLIC_ONLY, type WebhookHosts } from "../../src/domain/WebhookHosts.ts"
import { type Endpoint, type Message, type Options, Sender, type SenderShape } from "../../src/webhooks/Sender.ts"

export const SECRET = "whsec_ofTheSendersTests0000000000"
export const BODY = '{"id":"evt_1","type":"customer.created","data":{"object":{"name":"Zoë 日本 💳"}}}'

/** The hosts of test mode on a developer's machine. */
export const ANY: WebhookHosts = { httpsOnly: false, besidePublic: "any", keepsPrivateAnswers: true }
/** The hosts of live mode. */
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

/** Makes a sender that is closed with the scope. */
export const makeSender = (options: Options = {}): Effect.Effect<SenderShape, never, Scope.Scope> =>
  Effect.map(Layer.build(Sender.layer(options)), Context.get(Sender))

/**
 * Makes an attempt and waits for the end of its exchange. An attempt ends with the status line; if the body came with
 * it, its connection is free a few turns of the event loop later.
 */
export const sendAndSettle = Effect.fnUntraced(function* (sender: SenderShape, message: Message) {
  const result = yield* sender.send(message)
  for (let turn = 0; turn < 10; turn++) {
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  }
  return result
})
