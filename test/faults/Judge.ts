/**
 * The judge. It uses only the answers that clients got, and sends requests of its own when no fault is in force and no
 * client works:
 *
 * - every key repeats its first answer, byte for byte, and no request is carried out again;
 * - every acknowledged object exists, and no object exists that no answer has shown;
 * - the sums of captured and refunded money are those of the acknowledged amounts;
 * - every change has its events exactly once, and every event was delivered to the endpoint as it is listed, and no
 *   other;
 * - the history of every shared object is linearizable.
 */
import { type Answer, type HttpExchange, inParallel } from "../support/HttpExchange.ts"
import { pause } from "../support/TillProcess.ts"
import { Findings } from "./Finding.ts"
import { refute, SearchExceeded, type Timed } from "./Linearizability.ts"
import type { Answered, Shared } from "./Models.ts"
import * as Models from "./Models.ts"
import { eventsOf, madeBy } from "./Operations.ts"
import type { Receiver } from "./Receiver.ts"
import { answerOf, type Deed, type Destination, pathOf, show, type Traffic } from "./Traffic.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- whatever the service answered
type Json = any

const CONCURRENCY = 24
/** Number of tries for an answer of a recovered service. */
const ANSWER_TRIES = 100
const TRY_PAUSE_MILLIS = 100
/** A late delivery is repeated after a minute by the schedule, so none may be late. */
const DELIVERY_MILLIS_MAX = 30_000

export interface JudgeOptions {
  readonly traffic: Traffic
  /** The service under judgement. */
  readonly exchange: Destination
  /** Receives all events. */
  readonly receiver?: Receiver
  /** True if the fault ends no process: no event may arrive twice. */
  readonly nothingCrashes?: boolean
}

export class Judge {
  readonly findings = new Findings()
  readonly #options: JudgeOptions
  readonly #eventsByKey = new Map<string, Array<Json>>()
  readonly #events = new Map<string, Json>()
  /** Objects that replays have created by mistake: the consequence of a finding is no further finding. */
  readonly #madeAnew = new Set<string>()
  #newestEvent: string | undefined
  #replayed = 0
  #reported = 0

  constructor(options: JudgeOptions) {
    this.#options = options
  }

  get eventCount(): number {
    return this.#events.size
  }

  /** Checks what is new since the last round. */
  async checkRound(): Promise<void> {
    const { deeds } = this.#options.traffic
    const fresh = deeds.slice(this.#replayed)
    this.#replayed = deeds.length
    this.#checkProblems()
    await this.#readNewEvents()
    for (const deed of fresh) this.#checkEventsOf(deed)
    await this.#checkReplays(fresh)
  }

  /** Checks everything since the beginning. */
  async checkAll(): Promise<void> {
    await this.checkRound()
    await this.#checkObjects()
    await this.#checkReplays(this.#options.traffic.deeds)
    await this.#checkHistories()
    await this.#checkDeliveries()
    // Replays must have changed nothing.
    await this.#readNewEvents()
    for (const deed of this.#options.traffic.deeds) this.#checkEventsOf(deed)
  }

  #checkProblems(): void {
    const { problems } = this.#options.traffic
    for (const { kind, text } of problems.slice(this.#reported)) this.findings.add(kind, text, text)
    this.#reported = problems.length
  }

  /** Returns a conclusive answer; throws if there is none for long. */
  async #ask(...request: Parameters<HttpExchange["request"]>): Promise<Answer> {
    let last: Answer | undefined
    for (let tries = 0; tries < ANSWER_TRIES; tries++) {
      last = await answerOf(this.#options.exchange, ...request)
      const isAnswer = last !== undefined && last.status < 500 && last.status !== 429
      if (isAnswer && last?.body === undefined)
        throw new Error(`${request[1]} is answered with no JSON: ${show(last!)}`)
      if (isAnswer) return last!
      await pause(TRY_PAUSE_MILLIS)
    }
    throw new Error(`${request[0]} ${request[1]} is not answered after the fault: ${last ? show(last) : "no answer"}`)
  }

  async #checkReplays(deeds: ReadonlyArray<Deed>): Promise<void> {
    await inParallel(deeds, CONCURRENCY, async ({ answer, body, key, operation, path }) => {
      if (answer === undefined) return this.findings.add("lost", key, `${key} ${operation.f} was never answered`)
      const replay = await this.#ask("POST", path, { body, idempotencyKey: key })
      const isReplay = replay.headers["idempotent-replayed"] === "true"
      if (isReplay && replay.status === answer.status && replay.text === answer.text) return
      // A request that is carried out again was lost before, unless its events show otherwise.
      const made = isReplay ? undefined : madeBy(operation, replay)
      if (made !== undefined) this.#madeAnew.add(made.id)
      const kind = isReplay ? "wrong" : this.#hasEvents(key, operation, answer) ? "doubled" : "lost"
      this.findings.add(
        kind,
        key,
        `${key} ${operation.f}: first ${show(answer)}, ${isReplay ? "" : "anew "}${show(replay)}`
      )
    })
  }

  #hasEvents(key: string, operation: Deed["operation"], answer: Answer): boolean {
    return eventsOf(operation, answer).length === 0 || this.#eventsByKey.has(key)
  }

  async #walk(path: string): Promise<Map<string, Json>> {
    const objects = new Map<string, Json>()
    for (let cursor: string | null = null; ;) {
      const page = await this.#ask("GET", `${path}?limit=100${cursor === null ? "" : `&starting_after=${cursor}`}`)
      if (page.status !== 200) {
        this.findings.add("wrong", path, `GET ${path} answers ${show(page)}`)
        return objects
      }
      for (const object of page.body.data) {
        if (objects.has(object.id)) this.findings.add("doubled", object.id, `${object.id} is listed twice`)
        objects.set(object.id, object)
      }
      cursor = page.body.next_cursor
      if (cursor === null) return objects
    }
  }

  /** Every acknowledged object is listed, no other one is, and the sums are those of the acknowledged amounts. */
  async #checkObjects(): Promise<void> {
    const { deeds } = this.#options.traffic
    const payments = await this.#walk("/v1/payment_intents")
    const refunds = await this.#walk("/v1/refunds")
    const unexplained = new Set([...payments.keys(), ...refunds.keys(), ...(await this.#walk("/v1/customers")).keys()])
    let [captured, refunded] = [0, 0]
    for (const { answer, key, operation } of deeds) {
      if (answer === undefined) continue
      if (answer.status === 200 && (operation.f === "pay" || operation.f === "capture")) captured += operation.amount
      if (answer.status === 200 && operation.f === "refund") refunded += operation.amount
      const made = madeBy(operation, answer)
      if (made === undefined) continue
      if (!unexplained.delete(made.id)) this.findings.add("lost", key, `${made.id} of ${key} is not listed`)
      const isFinal = operation.f === "pay" || operation.f === "decline"
      const listed = JSON.stringify(payments.get(made.id))
      if (isFinal && listed !== undefined && listed !== JSON.stringify(made)) {
        this.findings.add("wrong", key, `${made.id} of ${key} is ${listed}, and was ${JSON.stringify(made)}`)
      }
    }
    for (const id of [...unexplained].filter((id) => !this.#madeAnew.has(id))) {
      this.findings.add("doubled", id, `${id} exists, and no answer has shown it`)
    }
    this.#compareMoney(
      "captured",
      captured,
      [...payments.values()].map(({ amount_received }) => amount_received)
    )
    this.#compareMoney(
      "refunded",
      refunded,
      [...refunds.values()].map(({ amount }) => amount)
    )
  }

  #compareMoney(what: string, acknowledged: number, amounts: ReadonlyArray<number>): void {
    const sum = amounts.reduce((sum, amount) => sum + amount, 0)
    if (sum === acknowledged) return
    const kind = sum < acknowledged ? "lost" : "doubled"
    this.findings.add(kind, `money ${what}`, `${sum} were ${what}, and ${acknowledged} acknowledged`)
  }

  async #readNewEvents(): Promise<void> {
    for (let hasMore = true; hasMore;) {
      const newest = this.#newestEvent
      const before = newest === undefined ? [] : [`ending_before=${newest}`]
      // The first page holds the newest event; older pages follow up to the last known event.
      const page = newest === undefined ? await this.#firstEvents() : await this.#ask("GET", events(before))
      if (page.status !== 200) return this.findings.add("wrong", "events", `the events answer ${show(page)}`)
      for (const event of page.body.data.toReversed()) this.#remember(event)
      hasMore = newest !== undefined && page.body.has_more
    }
    const { deeds } = this.#options.traffic
    const known = new Set(deeds.map(({ key }) => key))
    for (const key of this.#eventsByKey.keys()) {
      if (key.startsWith("faults-") && !known.has(key)) {
        this.findings.add("doubled", key, `there are events of ${key}, which no request has sent`)
      }
    }
  }

  /** Returns all events as one page. */
  async #firstEvents(): Promise<Answer> {
    const all = [...(await this.#walk("/v1/events")).values()]
    return { status: 200, headers: {}, text: "", body: { data: all, has_more: false } }
  }

  #remember(event: Json): void {
    this.#newestEvent = event.id
    if (this.#events.has(event.id)) this.findings.add("doubled", event.id, `the event ${event.id} is listed twice`)
    this.#events.set(event.id, event)
    const key: string = event.request?.idempotency_key ?? "none"
    this.#eventsByKey.set(key, [...(this.#eventsByKey.get(key) ?? []), event])
  }

  #checkEventsOf({ answer, key, operation }: Deed): void {
    if (answer === undefined) return
    const actual = (this.#eventsByKey.get(key) ?? []).map(({ type }) => type)
    const wanted = eventsOf(operation, answer)
    if (actual.join() === wanted.join()) return
    const kind = actual.length < wanted.length ? "lost" : actual.length > wanted.length ? "doubled" : "wrong"
    this.findings.add(kind, key, `${key} ${operation.f} has the events ${actual.join()}, not ${wanted.join()}`)
  }

  async #checkHistories(): Promise<void> {
    const { traffic } = this.#options
    const histories = historiesOf(traffic)
    await inParallel([...histories.keys()], CONCURRENCY, async (id) => {
      const call = performance.now()
      const answer = await this.#ask("GET", pathOf(id))
      if (answer.status !== 200) return this.findings.add("lost", id, `${id} answers ${show(answer)}`)
      histories.get(id)!.push({ op: { operation: { f: "read", id }, answer }, call, return: performance.now() })
    })
    for (const [id, history] of histories) {
      try {
        const initial = traffic.customers.get(id)
        const refutation =
          initial === undefined ? refute(Models.payment, history) : refute(Models.register(initial), history)
        if (refutation === undefined) continue
        const text = `after ${textOf(refutation.longest.slice(-4))} none of ${textOf(refutation.stuck)} can be next`
        this.findings.add("wrong", `history ${id}`, `the history of ${id} is not linearizable: ${text}`)
      } catch (error) {
        if (!(error instanceof SearchExceeded)) throw error
        this.findings.add("wrong", `history ${id}`, `the history of ${id}: ${error.message}`)
      }
    }
  }

  async #checkDeliveries(): Promise<void> {
    const { receiver } = this.#options
    if (receiver === undefined) return
    const end = performance.now() + DELIVERY_MILLIS_MAX
    const missing = () => [...this.#events.keys()].filter((id) => !receiver.deliveries.has(id))
    while (missing().length > 0 && performance.now() < end) await pause(50)
    for (const id of missing()) {
      // A delivery that the service still lists as open is late, and not lost.
      const { body } = await this.#ask("GET", `/v1/events/${id}`)
      const isLate = body.pending_webhooks > 0
      const text = `the event ${id} was not delivered within ${DELIVERY_MILLIS_MAX / 1000} s`
      this.findings.add(isLate ? "wrong" : "lost", `delivery ${id}`, isLate ? `${text}, and is pending` : text)
    }
    if (this.#options.nothingCrashes === true) {
      for (const id of receiver.repeated) {
        this.findings.add("doubled", `delivery ${id}`, `the event ${id} was delivered more than once`)
      }
    }
    for (const problem of receiver.problems) this.findings.add("wrong", problem, problem)
    for (const [id, event] of receiver.deliveries) {
      const listed = this.#events.get(id)
      if (listed === undefined) {
        this.findings.add("wrong", `delivery ${id}`, `the event ${id} (${event.type}) was delivered, and there is none`)
      } else if (JSON.stringify(listed.data) !== JSON.stringify(event.data)) {
        this.findings.add(
          "wrong",
          `delivery ${id}`,
          `the event ${id} was delivered with other data than it is listed with`
        )
      }
    }
  }
}

const events = (parameters: ReadonlyArray<string>): string => `/v1/events?${["limit=100", ...parameters].join("&")}`

/** Returns the operations of each shared object. */
export const historiesOf = (traffic: Traffic): Map<string, Array<Timed<Answered>>> => {
  const histories = new Map<string, Array<Timed<Answered>>>()
  for (const id of [...traffic.customers.keys(), ...traffic.payments.keys()]) histories.set(id, [])
  for (const { answer, answeredAt, invokedAt, operation } of traffic.deeds) {
    if (!("id" in operation)) continue
    histories.get(operation.id)?.push({ op: { operation, answer }, call: invokedAt, return: answeredAt })
  }
  for (const { answer, answeredAt, id, invokedAt } of traffic.reads) {
    histories.get(id)?.push({ op: { operation: { f: "read", id }, answer }, call: invokedAt, return: answeredAt })
  }
  return histories
}

const textOf = (ops: ReadonlyArray<Answered>): string => {
  const one = ({ answer, operation }: Answered) => `${shortOf(operation)} → ${resultOf(operation, answer)}`
  return ops.slice(0, 6).map(one).join(", ")
}

const shortOf = (operation: Shared): string =>
  [operation.f, "value" in operation ? operation.value : "", "amount" in operation ? operation.amount : ""]
    .join(" ")
    .trim()

/** Returns a short form of the object in an answer. */
export const resultOf = (operation: Shared, answer: Answer | undefined): string => {
  if (answer === undefined) return "?"
  if (answer.status !== 200) return String(answer.body?.error?.code ?? answer.status)
  if (operation.f !== "read") return "ok"
  return operation.id.startsWith("cus_") ? answer.body.metadata.value : Models.payment.nameOf(Models.seenIn(answer))
}
