/**
 * Events as the lifecycles emit them and as the API shows them (semantics events.types, events.object). An event's
 * object is text, frozen when the event happened. Webhooks carry that text in every Till version, because a body must
 * be the same at every attempt and endpoint (semantics webhooks.body, versions.events). API responses add the fields
 * that the contract has gained since (semantics versions.documents).
 */
import type { ApiVersionsShape, JsonObject } from "../../domain/ApiVersions.ts"
import type { EmittedEventType } from "../../domain/Event.ts"
import { type Metadata, previousMetadata } from "../../domain/Metadata.ts"
import { secondsOf } from "../../domain/Time.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import type { EventVersionsShape, StoredEvent } from "../../engine/log/Events.ts"
import type { Transaction } from "../../engine/actor/Transaction.ts"
import { parseJson } from "../../json/JsonParse.ts"
import { isLive, merchantIdOf } from "./AccountIds.ts"
import { sentKey } from "./IdempotencyKeys.ts"

/**
 * Events that carry the previous values of changed fields. `payment_method.detached` does because nothing else records
 * the previous customer (semantics events.previous_attributes).
 */
type Update = Extract<EmittedEventType, `${string}.updated` | "payment_method.detached">

/** Emits an event about an object that the command has read or written. */
export const emit = <Type extends EmittedEventType>(
  transaction: Transaction,
  type: Type,
  id: string,
  ...previous: Type extends Update ? [previous: Readonly<Record<string, unknown>>] : []
): void => transaction.emit(type, id, ...previous)

interface Updatable {
  readonly metadata: Metadata
}

/**
 * Returns the old values of the top-level fields that an update changed: null for a field that was absent, and only the
 * changed keys of `metadata`. The result is empty if and only if nothing changed, so compare before `updated` is set;
 * that field is left out (semantics events.previous_attributes).
 */
export const previousAttributes = <A extends Updatable>(before: A, after: A): Readonly<Record<string, unknown>> => {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]) as ReadonlySet<keyof A & string>
  const changed = [...fields].filter((field) => !isSame(before[field], after[field]))
  return Object.fromEntries(
    changed.map((field) => [
      field,
      field === "metadata" ? previousMetadata(before.metadata, after.metadata) : (before[field] ?? null)
    ])
  )
}

/** Compares two fields. They hold JSON with keys in one order, and unchanged metadata is the same object. */
const isSame = (one: unknown, other: unknown): boolean => one === other || JSON.stringify(one) === JSON.stringify(other)

export interface EventContext {
  readonly account: AccountId
  /** Deliveries of the event that are still pending. */
  readonly pendingWebhooks: number
}

/** Shows an event in an older version; the same event if nothing in it has changed since. */
export const shownIn =
  ({ older }: ApiVersionsShape): EventVersionsShape["shownIn"] =>
  (version, event) => {
    const served = older(version)
    if (served === undefined || !served.concerns(event.object)) return event
    const newest = parseJson(event.object) as JsonObject
    const object = served.object(newest)
    if (event.previous === null) return { object: JSON.stringify(object), previous: null }
    const before = served.object(beforeUpdate(newest, event.previous))
    return { object: JSON.stringify(object), previous: previousAttributes(before as AnyObject, object as AnyObject) }
  }

type AnyObject = JsonObject & Updatable

/** Reconstructs an object as it was before an update; a field that was absent is null. */
const beforeUpdate = (object: JsonObject, previous: JsonObject): JsonObject => {
  const { metadata } = previous
  const keys = metadata === undefined ? {} : { ...(object["metadata"] as Metadata), ...(metadata as object) }
  const kept = Object.fromEntries(Object.entries(keys).filter(([, value]) => value !== null))
  return { ...object, ...previous, ...(metadata !== undefined && { metadata: kept }) }
}

/**
 * Renders an event as JSON text, in the version that was its account's default when it happened (semantics
 * versions.events, webhooks.body). Neither a later default nor the version of a request changes the text; only
 * `pendingWebhooks` does.
 */
export const render = (event: StoredEvent, { account, pendingWebhooks }: EventContext): string => {
  const head = JSON.stringify({
    id: event.id,
    object: "event",
    type: event.type,
    created: secondsOf(event.at),
    livemode: isLive(account),
    api_version: event.apiVersion,
    merchant_id: merchantIdOf(account)
  })
  const previous = event.previous === null ? "" : `,"previous_attributes":${JSON.stringify(event.previous)}`
  const tail = JSON.stringify({
    pending_webhooks: pendingWebhooks,
    request: { id: event.request?.id ?? null, idempotency_key: sentKey(event.request?.idempotencyKey ?? null) }
  })
  return `${head.slice(0, -1)},"data":{"object":${event.object}${previous}},${tail.slice(1)}`
}
