/**
 * The state table of semantics webhooks.states as a plain model. It predicts the states of one environment's
 * deliveries.
 */
import type { WebhookDelivery } from "../../src/domain/WebhookDelivery.ts"
import type { AttemptOutcome } from "../../src/engine/Deliveries.ts"

interface Delivery {
  /** Learned from the first list that shows it. */
  id: string | undefined
  readonly event: string
  status: WebhookDelivery["status"]
  readonly attempts: Array<WebhookDelivery["attempts"][number]>
  /** Milliseconds by the environment's clock; undefined if only the service has it, before the first attempt. */
  nextAttemptAt: number | null | undefined
}

interface Endpoint {
  status: "enabled" | "disabled"
  types: ReadonlyArray<string>
  /** Oldest first. */
  readonly deliveries: Array<Delivery>
}

export class WebhookDeliveryModel {
  readonly endpoints = new Map<string, Endpoint>()
  /** Types by id, oldest first. */
  readonly events = new Map<string, string>()
  /** Milliseconds by which the environment's clock is ahead. */
  clockOffset = 0

  happened(events: ReadonlyArray<{ readonly id: string; readonly type: string }>): void {
    for (const { id, type } of events) {
      this.events.set(id, type)
      this.deliver(id, this.subscribed(type))
    }
  }

  /** Returns the endpoints that are subscribed to a type. */
  subscribed(type: string): ReadonlyArray<string> {
    return [...this.endpoints]
      .filter(([, { status, types }]) => status === "enabled" && (types.includes("*") || types.includes(type)))
      .map(([id]) => id)
  }

  deliver(event: string, endpoints: ReadonlyArray<string>): void {
    for (const id of endpoints) {
      const delivery: Delivery = { id: undefined, event, status: "pending", attempts: [], nextAttemptAt: undefined }
      this.endpoints.get(id)!.deliveries.push(delivery)
    }
  }

  disable(id: string): void {
    const endpoint = this.endpoints.get(id)!
    endpoint.status = "disabled"
    for (const delivery of endpoint.deliveries) {
      if (delivery.status !== "pending") continue
      delivery.status = "canceled"
      delivery.nextAttemptAt = null
    }
  }

  /** Each reported attempt counts once, and only for a pending delivery. */
  attempted({ attempt, body, destination, durationMillis, error, id, next, startedAt, status }: AttemptOutcome): void {
    const delivery = this.endpoints.get(destination)?.deliveries.find((candidate) => candidate.id === id)
    if (delivery === undefined || delivery.status !== "pending" || attempt !== delivery.attempts.length + 1) return
    const started = startedAt + this.clockOffset
    delivery.attempts.push({
      attempt,
      started_at: Math.floor(started / 1000),
      duration_ms: durationMillis,
      response_status: status,
      error,
      response_body: body ?? null
    })
    delivery.status = typeof next === "string" ? next : "pending"
    delivery.nextAttemptAt = typeof next === "string" ? null : started + durationMillis + next.retryAfterMillis
  }

  pending(event: string): number {
    const all = [...this.endpoints.values()].flatMap(({ deliveries }) => deliveries)
    return all.filter((delivery) => delivery.event === event && delivery.status === "pending").length
  }

  wiped(): void {
    this.endpoints.clear()
    this.events.clear()
    this.clockOffset = 0
  }
}
