/**
 * Holds the service against what it has answered: every key repeats its answer byte for byte, every object is as it was
 * told last, nothing is there twice or unasked, and every change has its events exactly once.
 *
 * Call it only while no client works and no answer is open.
 */
import type { Json } from "../models/Wire.ts"
import { inParallel, walk, type Answer } from "./HttpExchange.ts"
import { until } from "./TillProcess.ts"
import { isKept, paymentIntentIn, type Deed, type Traffic, type TrafficClient } from "./Traffic.ts"

const CONCURRENCY = 32

/** The first problems, as text; empty if all is well. */
export type Problems = Array<string>

export class TrafficAudit {
  readonly #traffic: Traffic
  #replayed = 0
  /** Newest event that was seen, and how many. */
  #newestEvent: string | undefined
  /** Events that were seen: by idempotency key, and those of timers by PaymentIntent; oldest first. */
  readonly #eventsByKey = new Map<string, Array<Json>>()
  readonly #timerEvents = new Map<string, Array<Json>>()
  readonly #eventIds = new Set<string>()
  readonly #ignoredKeys: ReadonlySet<string>

  /** `ignoredKeys` are those of requests that somebody else sent. */
  constructor(traffic: Traffic, ignoredKeys: Iterable<string> = []) {
    this.#traffic = traffic
    this.#ignoredKeys = new Set(ignoredKeys)
  }

  get eventCount(): number {
    return this.#eventIds.size
  }

  /** Checks the deeds since the last check, and the clients' current objects. */
  async checkNew(): Promise<Problems> {
    const fresh = this.#traffic.deeds.slice(this.#replayed)
    this.#replayed = this.#traffic.deeds.length
    return this.#problems([
      await this.#checkReplays(fresh),
      await this.#checkLists(),
      await this.#readNewEvents(),
      fresh.flatMap((deed) => this.#checkEventsOf(deed))
    ])
  }

  /** Everything since the beginning, once no payment is processing any more. */
  async checkAll(): Promise<Problems> {
    const states = this.#traffic.clients.flatMap((client) => [...client.states.values()])
    const processing = states.filter(({ status }) => status === "processing")
    await inParallel(processing, CONCURRENCY, ({ id }) =>
      until(`${id} is settled`, async () => {
        const { body } = await this.#traffic.http.request("GET", `/v1/payment_intents/${id}`)
        return body.status !== "processing"
      })
    )
    return this.#problems([
      await this.#checkReplays(this.#traffic.deeds),
      await this.#checkLists(),
      await this.#readNewEvents(),
      this.#traffic.deeds.flatMap((deed) => this.#checkEventsOf(deed)),
      await this.#checkObjects()
    ])
  }

  #problems(found: ReadonlyArray<Problems>): Problems {
    return [...this.#traffic.violations, ...found.flat()].slice(0, 10).map((problem) => problem.slice(0, 2000))
  }

  async #checkReplays(deeds: ReadonlyArray<Deed>): Promise<Problems> {
    const kept = deeds.filter(({ answer }) => answer === undefined || isKept(answer))
    const checked = await inParallel(kept, CONCURRENCY, async ({ answer, body, idempotencyKey, path }) => {
      if (answer === undefined) return [`${idempotencyKey} was never answered`]
      const replay = await this.#traffic.http.request("POST", path, { body, idempotencyKey })
      const isReplay = replay.headers["idempotent-replayed"] === "true"
      return isReplay && replay.status === answer.status && replay.text === answer.text
        ? []
        : [`${idempotencyKey} answers ${describe(replay)} now, and ${describe(answer)} before (replay: ${isReplay})`]
    })
    return checked.flat()
  }

  async #checkLists(): Promise<Problems> {
    await inParallel(this.#traffic.clients, CONCURRENCY, async (client) => {
      if (client.customer === undefined) return
      client.compareList(await walk(this.#traffic.http, `/v1/payment_intents?customer=${client.customer}`))
    })
    return []
  }

  /** All objects against what was told of them; an object that nobody was told of is one too many. */
  async #checkObjects(): Promise<Problems> {
    const problems: Problems = []
    const told = new Map<string, TrafficClient>()
    const processing = this.#countProcessing()
    for (const client of this.#traffic.clients) for (const id of client.states.keys()) told.set(id, client)
    const { http, shared } = this.#traffic
    const listed = [...(await walk(http, "/v1/payment_intents")), ...(await walk(http, "/v1/customers"))]
    for (const object of listed) {
      const states = shared.get(object.id)
      if (states !== undefined) {
        if (!states.has(JSON.stringify(object))) problems.push(`nobody was told ${JSON.stringify(object)}`)
        continue
      }
      const client = told.get(object.id)
      const problem = client === undefined ? `nobody was told of ${object.id}` : client.differs(object.id, object)
      if (problem !== undefined) problems.push(problem)
      problems.push(...this.#checkTimerEvents(object, processing.get(object.id) ?? 0))
      told.delete(object.id)
    }
    for (const id of told.keys()) problems.push(`${id} is missing from the list, or is there twice`)
    return problems
  }

  /** Walks from the newest event that is known to the newest that there is. */
  async #readNewEvents(): Promise<Problems> {
    const problems: Problems = []
    const { http } = this.#traffic
    const remember = (event: Json) => {
      if (this.#eventIds.has(event.id)) problems.push(`the event ${event.id} is listed twice`)
      this.#eventIds.add(event.id)
      this.#newestEvent = event.id
      const key = event.request.idempotency_key
      const owner = key ?? event.data.object.payment_intent ?? event.data.object.id
      const events = key === null ? this.#timerEvents : this.#eventsByKey
      events.set(owner, [...(events.get(owner) ?? []), event])
    }
    if (this.#newestEvent === undefined) {
      for (const event of (await walk(http, "/v1/events")).toReversed()) remember(event)
    }
    for (let hasMore = this.#newestEvent !== undefined; hasMore;) {
      const page = await http.request("GET", `/v1/events?limit=100&ending_before=${this.#newestEvent}`)
      if (page.status !== 200) return [`GET /v1/events answered ${describe(page)}`]
      for (const event of page.body.data.toReversed()) remember(event)
      hasMore = page.body.has_more
    }
    const known = new Set([...this.#ignoredKeys, ...this.#traffic.deeds.map(({ idempotencyKey }) => idempotencyKey)])
    for (const key of this.#eventsByKey.keys()) {
      if (!known.has(key)) problems.push(`an event of ${key}, which nobody has sent`)
    }
    return problems
  }

  #checkEventsOf(deed: Deed): Problems {
    const events = this.#eventsByKey.get(deed.idempotencyKey) ?? []
    const actual = events.map((event) => `${event.type} ${event.data.object.id}`)
    const wanted = expectedEvents(deed).map(([type, id]) => `${type} ${id}`)
    if (actual.join() !== wanted.join()) {
      return [`${deed.idempotencyKey} (${deed.path}) has the events ${actual.join()}, not ${wanted.join()}`]
    }
    // The last event shows the object as the answer does.
    const answered = deed.answer === undefined ? undefined : (paymentIntentIn(deed.answer) ?? deed.answer.body)
    const last = events.at(-1)
    return last === undefined || JSON.stringify(last.data.object) === JSON.stringify(answered)
      ? []
      : [`the event ${last.id} shows ${JSON.stringify(last.data.object)}, and the answer ${JSON.stringify(answered)}`]
  }

  /** A payment that settled by itself has the two events of that exactly once, and one that did not has none. */
  #checkTimerEvents({ id, status }: Json, begun: number): Problems {
    const types = (this.#timerEvents.get(id) ?? []).map(({ type }) => type)
    const settlements = status === "processing" ? begun - 1 : begun
    return types.length === 2 * settlements
      ? []
      : [`${id} settled ${settlements} times by itself, but has the events ${types.join()}`]
  }

  /** Counts how often each PaymentIntent went to `processing`. */
  #countProcessing(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { answer } of this.#traffic.deeds) {
      const payment = answer && paymentIntentIn(answer)
      // Clients leave a payment alone while it processes, so an answer that shows this is that of the attempt.
      if (payment?.status === "processing") {
        counts.set(payment.id, (counts.get(payment.id) ?? 0) + 1)
      }
    }
    return counts
  }
}

const describe = (answer: Answer) => `${answer.status} ${answer.text}`

/** The events of a request that was carried out, with the objects that they are about, in their order. */
const expectedEvents = ({ answer, events }: Deed): Array<readonly [string, string]> => {
  if (answer === undefined || events.length === 0) return []
  const payment = paymentIntentIn(answer)
  const about = (type: string) => {
    if (type === "payment_method.attached") return payment.payment_method
    return type.startsWith("charge.") ? payment.charges.data[0].id : (payment ?? answer.body).id
  }
  return events.map((type) => [type, about(type)])
}
