/** The plain model of deliveries: each destination's deliveries and their states after any sequence of commands. */
import type { AttemptOutcome, DeliveryRow } from "../../src/engine/Deliveries.ts"

export interface ModelDelivery {
  readonly id: string
  readonly destination: string
  readonly event: string
  readonly at: number
  state: DeliveryRow["state"]
  attempts: DeliveryRow["attempts"]
  /** Due time by the account's clock. */
  nextAttemptAt: number | null
  /** End of the lease by the wall clock. */
  leasedUntil: number
}

export class DeliveryModel {
  clockOffset = 0
  readonly subscriptions = new Map<string, ReadonlyArray<string>>()
  readonly deliveries = new Map<string, ModelDelivery>()
  /** Types of events by their ids. */
  readonly events = new Map<string, string>()

  /** Destinations that must get an event. */
  destinationsOf(type: string): ReadonlyArray<string> {
    return [...this.subscriptions].filter(([, types]) => types.includes(type) || types.includes("*")).map(([id]) => id)
  }

  made(id: string, destination: string, event: string, wallClock: number, leasedUntil: number): void {
    const at = wallClock + this.clockOffset
    this.deliveries.set(id, {
      id,
      destination,
      event,
      at,
      leasedUntil,
      state: "pending",
      attempts: [],
      nextAttemptAt: at
    })
  }

  unsubscribed(destination: string): void {
    this.subscriptions.delete(destination)
    for (const delivery of this.deliveries.values()) {
      if (delivery.destination !== destination || delivery.state !== "pending") continue
      delivery.state = "canceled"
      delivery.nextAttemptAt = null
    }
  }

  attempted({ attempt, body, durationMillis, error, id, next, startedAt, status }: AttemptOutcome): void {
    const delivery = this.deliveries.get(id)
    if (delivery === undefined || delivery.state !== "pending" || attempt !== delivery.attempts.length + 1) return
    const started = startedAt + this.clockOffset
    delivery.attempts = [
      ...delivery.attempts,
      { attempt, startedAt: started, durationMillis, status, error, ...(body !== undefined && { body }) }
    ]
    delivery.leasedUntil = 0
    if (typeof next === "string") {
      delivery.state = next
      delivery.nextAttemptAt = null
    } else {
      delivery.nextAttemptAt = started + durationMillis + next.retryAfterMillis
    }
  }

  hastened(id: string, attempt: number, wallClock: number): void {
    const delivery = this.deliveries.get(id)
    // A first attempt is due at once in any case.
    if (attempt === 1 || delivery?.state !== "pending" || attempt !== delivery.attempts.length + 1) return
    delivery.nextAttemptAt = wallClock + this.clockOffset
  }

  wiped(): void {
    this.clockOffset = 0
    this.subscriptions.clear()
    this.deliveries.clear()
    this.events.clear()
  }

  /** Pending deliveries that may be taken at a time of the wall clock, to none of the busy destinations. */
  due(wallClock: number, busy: ReadonlyArray<string>): ReadonlyArray<ModelDelivery> {
    return [...this.deliveries.values()].filter(
      ({ destination, leasedUntil, nextAttemptAt }) =>
        nextAttemptAt !== null &&
        nextAttemptAt - this.clockOffset <= wallClock &&
        leasedUntil <= wallClock &&
        !busy.includes(destination)
    )
  }

  /** States of the deliveries to a destination, oldest first. */
  of(destination: string): ReadonlyArray<ReturnType<typeof standing>> {
    return [...this.deliveries.values()]
      .filter((delivery) => delivery.destination === destination)
      .map((delivery) => standing(delivery))
  }

  pendingOf(event: string): number {
    return [...this.deliveries.values()].filter((delivery) => delivery.event === event && delivery.state === "pending")
      .length
  }
}

/** The fields of a delivery that the model and the views share. */
export const standing = (delivery: Omit<ModelDelivery, "leasedUntil">) => {
  const { at, attempts, destination, event, id, nextAttemptAt, state } = delivery
  return { id, destination, event, at, state, attempts, nextAttemptAt }
}
