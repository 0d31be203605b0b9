/** Deliveries need to know this much of the merchant's endpoints and events. Whoever knows them provides it. */
import type { Effect, Redacted } from "effect"
import { Context } from "effect"
import type { WebhookHosts } from "../domain/WebhookHosts.ts"
import type { Unavailable } from "../engine/Accounts.ts"
import type { AccountId } from "../engine/log/Document.ts"
import type { StoredEvent } from "../engine/log/Events.ts"

/** A delivery goes there, as it is at the attempt (semantics W14). */
export interface Endpoint {
  readonly url: string
  /** Those that sign now, newest first. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  /** Its URL may lead to these (semantics W4, 9.34). */
  readonly hosts: WebhookHosts
}

export interface EndpointsShape {
  /** Gives what `resolve` would answer if that is an endpoint that is in memory, as nearly every one is. */
  readonly peek: (account: AccountId, destination: string) => Endpoint | undefined
  /** Undefined if there is no such endpoint any more. */
  readonly resolve: (account: AccountId, destination: string) => Effect.Effect<Endpoint | undefined, Unavailable>
  /** Renders an event as JSON text, the same bytes for every attempt and endpoint (semantics W8). */
  readonly body: (account: AccountId, event: StoredEvent) => string
}

export class Endpoints extends Context.Service<Endpoints, EndpointsShape>()("till/webhooks/Endpoints") {}
