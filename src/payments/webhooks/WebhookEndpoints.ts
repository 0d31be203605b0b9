/**
 * The lifecycle of webhook endpoints: the merchant enables, disables and deletes them (semantics webhooks.endpoints,
 * webhooks.secret, webhooks.enabled_events, webhooks.url, webhooks.disabled). They emit no events. The API shows the
 * signing secret at creation and when it is rolled; the document stores it encrypted.
 */
import { Clock, Effect, Layer, Redacted } from "effect"
import type { ParameterInvalid, ResourceMissing } from "../../domain/Errors.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { mergeMetadata, updateMetadata } from "../../domain/Metadata.ts"
import { secondsOf } from "../../domain/Time.ts"
import {
  type CreateWebhookEndpoint,
  type DeletedWebhookEndpoint,
  requireAcceptedUrl,
  type UpdateWebhookEndpoint,
  type WebhookEndpoint
} from "../../domain/WebhookEndpoint.ts"
import type { WebhookHosts } from "../../domain/WebhookHosts.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { AccountId, Document, Millis, Tombstone } from "../../engine/log/Document.ts"
import type { Endpoint } from "../../webhooks/Sender.ts"
import { Endpoints } from "../../webhooks/Dispatcher.ts"
import { isLive, merchantIdOf } from "../shared/AccountIds.ts"
import { findDocument, WEBHOOK_ENDPOINT, type WebhookEndpointHidden } from "../shared/Documents.ts"
import { render } from "../shared/Events.ts"
import { PaymentsConfig } from "../shared/PaymentsConfig.ts"
import { isDocumentOf } from "../shared/ReadDocument.ts"
import * as Sealing from "../shared/Sealing.ts"
import { withoutOutage } from "./WebhookOutages.ts"

const SECRET_LENGTH = 32

export interface WithSecret {
  readonly value: WebhookEndpoint
  readonly secret: Redacted.Redacted
}

/** Creates an endpoint, and returns its secret (semantics webhooks.secret). `apiVersion` is the merchant's default. */
export const create = Effect.fnUntraced(function* (
  parameters: CreateWebhookEndpoint,
  apiVersion: string
): Effect.fn.Return<WithSecret, ParameterInvalid, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  yield* requireUrl(parameters.url)
  const metadata = mergeMetadata({}, parameters.metadata ?? null)
  const webhookEndpoint: WebhookEndpoint = {
    id: transaction.newId(PREFIXES.webhook_endpoint),
    object: "webhook_endpoint",
    url: parameters.url,
    enabled_events: [...new Set(parameters.enabled_events)],
    status: "enabled",
    description: parameters.description || null,
    metadata,
    created: secondsOf(transaction.now),
    livemode: isLive(transaction.account),
    merchant_id: merchantIdOf(transaction.account),
    api_version: apiVersion
  }
  const { sealedSecret, secret } = yield* newSecret(webhookEndpoint.id)
  transaction.put(WEBHOOK_ENDPOINT, webhookEndpoint, { sealedSecret })
  transaction.subscribe(webhookEndpoint.id, webhookEndpoint.enabled_events)
  return { value: webhookEndpoint, secret }
})

/** Changes an endpoint. Pending deliveries follow; disabling cancels them for good (semantics webhooks.disabled). */
export const update = Effect.fnUntraced(function* (
  id: string,
  parameters: UpdateWebhookEndpoint
): Effect.fn.Return<WebhookEndpoint, ParameterInvalid | ResourceMissing, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  if (parameters.url !== undefined) yield* requireUrl(parameters.url)
  const { hidden, value: before } = yield* find(id)
  const { description, enabled_events, metadata, status, url } = parameters
  const after: WebhookEndpoint = {
    ...before,
    url: url ?? before.url,
    enabled_events: enabled_events === undefined ? before.enabled_events : [...new Set(enabled_events)],
    status: status ?? before.status,
    description: description === undefined ? before.description : description || null,
    metadata: yield* updateMetadata(before.metadata, metadata)
  }
  // An outage ends with a change of the destination.
  const isSame = after.status === "enabled" && after.url === before.url
  transaction.put(WEBHOOK_ENDPOINT, after, isSame ? hidden : withoutOutage(transaction, id, hidden))
  if (after.status === "disabled") transaction.unsubscribe(id)
  else if (status !== undefined || enabled_events !== undefined) transaction.subscribe(id, after.enabled_events)
  return after
})

/**
 * Replaces the endpoint's secret. The old secret also signs for `expiresIn` seconds, so that receivers can switch
 * without refusing a webhook. There are at most two: a secret rolled earlier ends immediately, even within its grace
 * period (semantics webhooks.secret, time.wall).
 */
export const rollSecret = Effect.fnUntraced(function* (
  id: string,
  { expiresIn }: { readonly expiresIn: number }
): Effect.fn.Return<WithSecret, ResourceMissing, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  const { hidden, value } = yield* find(id)
  const { sealedSecret, secret } = yield* newSecret(id)
  const expiresAt = transaction.startedAt + expiresIn * 1000
  const previous = expiresIn === 0 ? {} : { previous: { sealedSecret: hidden.sealedSecret, expiresAt } }
  const { failingSince } = hidden
  const outage = failingSince === undefined ? {} : { failingSince }
  transaction.put(WEBHOOK_ENDPOINT, value, { sealedSecret, ...previous, ...outage })
  return { value, secret }
})

/** Deletes an endpoint, its secret and its pending deliveries (semantics webhooks.endpoints). */
export const remove = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<DeletedWebhookEndpoint, ResourceMissing, Transaction> {
  const transaction = yield* Transaction
  const { hidden, value } = yield* find(id)
  withoutOutage(transaction, id, hidden)
  transaction.delete(WEBHOOK_ENDPOINT, id)
  transaction.unsubscribe(id)
  return { id, object: "webhook_endpoint", deleted: true, livemode: value.livemode }
})

export type WebhookEndpointDocument = Document<WebhookEndpoint, WebhookEndpointHidden>

/**
 * Returns an endpoint's destination and signing secrets; undefined if it is disabled. There is one secret, or two
 * during the grace period of a rolled one. `nowMillis` is wall-clock time, never a test clock's (semantics
 * webhooks.signature, time.wall).
 */
export const destinationOf = (
  config: PaymentsConfig["Service"],
  account: AccountId,
  document: WebhookEndpointDocument,
  nowMillis: Millis
): Endpoint | undefined => {
  const { status, url } = document.value
  if (status === "disabled") return undefined
  return { url, secrets: secretsOf(config, account, document, nowMillis), hosts: hostsOf(config, account) }
}

/** Answers the dispatcher of webhooks: destinations from the endpoints' documents, bodies from the events. */
export const layerEndpoints: Layer.Layer<Endpoints, never, Accounts | PaymentsConfig> = Layer.effect(
  Endpoints,
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const config = yield* PaymentsConfig
    const clock = yield* Clock.Clock
    const endpointOf = (account: AccountId, entry: Document | Tombstone | undefined) =>
      isDocumentOf(entry, WEBHOOK_ENDPOINT)
        ? destinationOf(config, account, entry, clock.currentTimeMillisUnsafe())
        : undefined
    return {
      peek: (account, id) => endpointOf(account, accounts.peek(account, id)),
      resolve: (account, id) => Effect.map(accounts.read(account, id), (entry) => endpointOf(account, entry)),
      // Renders the event as it was when it happened (semantics webhooks.body).
      body: (account, event) => render(event, { account, pendingWebhooks: event.deliveries })
    }
  })
)

/** Decrypted secrets of the endpoints in memory, because decrypting takes too long for every delivery. */
const opened = new WeakMap<WebhookEndpointDocument, OpenedSecrets>()

interface OpenedSecrets {
  readonly account: AccountId
  readonly newest: Redacted.Redacted
  readonly previous: { readonly secret: Redacted.Redacted; readonly until: Millis } | undefined
}

/** Decrypts the secrets that sign an endpoint's webhooks at a wall-clock time, newest first (semantics time.wall). */
export const secretsOf = (
  config: PaymentsConfig["Service"],
  account: AccountId,
  document: WebhookEndpointDocument,
  nowMillis: Millis
): ReadonlyArray<Redacted.Redacted> => {
  let known = opened.get(document)
  if (known?.account !== account) {
    const { hidden, id } = document
    const sealing = sealingOf(config, account, id)
    const open = (sealedSecret: string) => redacted(Sealing.open(sealing, sealedSecret))
    const previous = hidden.previous && { secret: open(hidden.previous.sealedSecret), until: hidden.previous.expiresAt }
    known = { account, newest: open(hidden.sealedSecret), previous }
    opened.set(document, known)
  }
  const { newest, previous } = known
  return previous === undefined || previous.until <= nowMillis ? [newest] : [newest, previous.secret]
}

const newSecret = Effect.fnUntraced(function* (
  webhookEndpointId: string
): Effect.fn.Return<
  { readonly secret: Redacted.Redacted; readonly sealedSecret: string },
  never,
  Transaction | PaymentsConfig
> {
  const transaction = yield* Transaction
  const secret = `whsec_${transaction.newSecret(SECRET_LENGTH)}`
  const sealing = sealingOf(yield* PaymentsConfig, transaction.account, webhookEndpointId)
  return { secret: redacted(secret), sealedSecret: Sealing.seal(sealing, secret) }
})

const redacted = (secret: string): Redacted.Redacted => Redacted.make(secret, { label: "webhook secret" })

type Keys = Pick<PaymentsConfig["Service"], "keyring">

const sealingOf = ({ keyring }: Keys, account: AccountId, id: string): Sealing.Sealing => ({
  keyring,
  purpose: `webhook secret ${account}/${id}`
})

/** Seals an endpoint's secrets anew that are under an older secret of the installation (semantics operation.roll). */
export const resealed = (
  config: Keys,
  account: AccountId,
  { hidden, id }: WebhookEndpointDocument
): WebhookEndpointHidden | undefined => Sealing.resealPair(sealingOf(config, account, id), hidden)

const requireUrl = Effect.fnUntraced(function* (
  url: string
): Effect.fn.Return<void, ParameterInvalid, Transaction | PaymentsConfig> {
  const { account } = yield* Transaction
  yield* requireAcceptedUrl(url, { livemode: isLive(account), hosts: hostsOf(yield* PaymentsConfig, account) })
})

const hostsOf = ({ webhookHosts }: PaymentsConfig["Service"], account: AccountId): WebhookHosts =>
  isLive(account) ? webhookHosts.live : webhookHosts.test

const find = (id: string) => findDocument(WEBHOOK_ENDPOINT, id)
