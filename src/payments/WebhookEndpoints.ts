/**
 * The lifecycle of webhook endpoints: enabled and disabled by the merchant, then deleted (semantics W1 to W4, §2.6).
 * They emit no events. An endpoint's signing secret is given out at its creation, or when it is rolled, and kept
 * encrypted.
 */
import { Effect, Redacted } from "effect"
import type { ParameterInvalid, ResourceMissing } from "../domain/Errors.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import { mergeMetadata, updateMetadata } from "../domain/Metadata.ts"
import { secondsOf } from "../domain/Time.ts"
import type {
  CreateWebhookEndpoint,
  DeletedWebhookEndpoint,
  UpdateWebhookEndpoint,
  WebhookEndpoint
} from "../domain/WebhookEndpoint.ts"
import { requireAcceptedUrl } from "../domain/WebhookEndpoint.ts"
import type { WebhookHosts } from "../domain/WebhookHosts.ts"
import type { AccountId, Document, Millis } from "../engine/log/Document.ts"
import { Transaction } from "../engine/actor/Transaction.ts"
import { isLive, merchantIdOf } from "./AccountIds.ts"
import type { WebhookEndpointHidden } from "./Documents.ts"
import { findDocument, WEBHOOK_ENDPOINT } from "./Documents.ts"
import { PaymentsConfig } from "./PaymentsConfig.ts"
import * as Sealing from "./Sealing.ts"

const SECRET_LENGTH = 32

/** An endpoint and its signing secret, which its document holds in sealed form only. */
export interface WithSecret {
  readonly value: WebhookEndpoint
  readonly secret: Redacted.Redacted
}

/**
 * Makes an endpoint, and answers with its secret this once (semantics W2). `apiVersion` is the merchant's default (V3).
 * Fails with `ParameterInvalid` for a URL that its mode does not allow (W4).
 */
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

/**
 * Changes an endpoint. Deliveries under way go to the new URL; those of an endpoint that is disabled are canceled for
 * good (semantics W14). Fails with `ParameterInvalid` for a URL that its mode does not allow (W4) or too much metadata
 * (M2), and with `ResourceMissing` if there is no such endpoint.
 */
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
  transaction.put(WEBHOOK_ENDPOINT, after, hidden)
  if (after.status === "disabled") transaction.unsubscribe(id)
  else if (status !== undefined || enabled_events !== undefined) transaction.subscribe(id, after.enabled_events)
  return after
})

/**
 * Gives the endpoint a new secret, and answers with it this once. The old one goes on signing beside it for `expiresIn`
 * seconds, so that receivers can change over without refusing anything. There are never more than two: a secret that
 * was rolled before ends now, however much of its grace was left (semantics W2, §8.25). Fails with `ResourceMissing` if
 * there is no such endpoint.
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
  transaction.put(WEBHOOK_ENDPOINT, value, { sealedSecret, ...previous })
  return { value, secret }
})

/**
 * Deletes an endpoint. Its secret goes with it, and so does what has yet to be delivered to it (semantics W1, W14).
 * Fails with `ResourceMissing` if there is no such endpoint.
 */
export const remove = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<DeletedWebhookEndpoint, ResourceMissing, Transaction> {
  const transaction = yield* Transaction
  const { value } = yield* find(id)
  transaction.delete(WEBHOOK_ENDPOINT, id)
  transaction.unsubscribe(id)
  return { id, object: "webhook_endpoint", deleted: true, livemode: value.livemode }
})

export type WebhookEndpointDocument = Document<WebhookEndpoint, WebhookEndpointHidden>

/** Webhooks go to the URL, if it leads where `hosts` allows (semantics W4). */
export interface SignedDestination {
  readonly url: string
  /** Each of them signs. Newest first. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  readonly hosts: WebhookHosts
}

/**
 * Says where an endpoint's webhooks go, and what signs them; undefined if it is disabled. There is one secret, or
 * during the grace of a rolled one there are two. `nowMillis` is the wall clock's, never that of a test environment
 * (semantics W5, §8.25).
 */
export const destinationOf = (
  config: PaymentsConfig["Service"],
  account: AccountId,
  document: WebhookEndpointDocument,
  nowMillis: Millis
): SignedDestination | undefined => {
  const { status, url } = document.value
  if (status === "disabled") return undefined
  return { url, secrets: secretsOf(config, account, document, nowMillis), hosts: hostsOf(config, account) }
}

/** Keeps the secrets of endpoints that are in memory open, because opening them takes too long for every delivery. */
const opened = new WeakMap<WebhookEndpointDocument, OpenedSecrets>()

interface OpenedSecrets {
  readonly account: AccountId
  readonly newest: Redacted.Redacted
  readonly previous: { readonly secret: Redacted.Redacted; readonly until: Millis } | undefined
}

/** Opens the secrets that sign an endpoint's webhooks at a time of the wall clock, newest first (semantics §8.25). */
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

/** Makes a secret for an endpoint, as it is given out and as it is kept. */
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

const sealingOf = ({ sealingKey }: PaymentsConfig["Service"], account: AccountId, id: string): Sealing.Sealing => ({
  key: sealingKey,
  purpose: `webhook secret ${account}/${id}`
})

const requireUrl = Effect.fnUntraced(function* (
  url: string
): Effect.fn.Return<void, ParameterInvalid, Transaction | PaymentsConfig> {
  const { account } = yield* Transaction
  yield* requireAcceptedUrl(url, { livemode: isLive(account), hosts: hostsOf(yield* PaymentsConfig, account) })
})

const hostsOf = ({ webhookHosts }: PaymentsConfig["Service"], account: AccountId): WebhookHosts =>
  isLive(account) ? webhookHosts.live : webhookHosts.test

const find = (id: string) => findDocument(WEBHOOK_ENDPOINT, id)
