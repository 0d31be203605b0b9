/**
 * Clients of one Till: each sends one request at a time, records every answer, and repeats a request with an unknown
 * outcome under the same key before the next one. Most of their objects are shared, unlike those of
 * test/support/fixtures/Traffic.ts, so the judge checks histories and not final states.
 */
import { type Answer, type HttpExchange, Lost } from "../support/HttpExchange.ts"
import { type Random, Random as SeededRandom } from "../support/SeededRandom.ts"
import { pause } from "../support/TillProcess.ts"
import type { Finding, Kind } from "./Finding.ts"
import { madeBy, type Operation, requestOf, wrongness } from "./Operations.ts"

/** A POST that is repeated until it has an answer. Times are of the monotonic clock, in milliseconds. */
export interface Deed {
  readonly key: string
  readonly process: number
  readonly operation: Operation
  readonly path: string
  readonly body: object
  readonly invokedAt: number
  attempts: number
  answeredAt: number
  answer: Answer | undefined
}

export interface Read {
  readonly process: number
  readonly id: string
  readonly invokedAt: number
  readonly answeredAt: number
  readonly answer: Answer
}

/** Where requests are sent. */
export type Destination = Pick<HttpExchange, "request">

export interface TrafficOptions {
  readonly seed: number
  /** Destinations, which clients use in turn: several processes may serve one database. */
  readonly exchanges: ReadonlyArray<Destination>
  readonly clients?: number
  /** Longest pause of a client after an answer, in milliseconds. */
  readonly thinkMillisMax?: number
  /** Distinguishes the keys of several traffics on one installation. */
  readonly name?: string
}

const CLIENTS = 16
/**
 * Number of shared customers and payments at a time, and greatest number of operations on each, which keeps histories
 * small.
 */
const SHARED = 5
const SHARED_OPERATIONS_MAX = 40
/** Longest pause after an answer, which bounds the volume of a run. */
const THINK_MILLIS_MAX = 6
const RETRY_MILLIS = 50
/** Time after which a client gives up a request. Till refuses with 503 long before. */
const ANSWER_MILLIS_MAX = 40_000

export class Traffic {
  readonly deeds: Array<Deed> = []
  readonly reads: Array<Read> = []
  /** Faults of single answers. */
  readonly problems: Array<Finding> = []
  /** Initial values and amounts of the shared objects. */
  readonly customers = new Map<string, number>()
  readonly payments = new Map<string, number>()
  /** Refusals such as 503, errors such as 500, and lost answers. */
  unavailable = 0
  failed = 0
  lost = 0
  readonly thinkMillisMax: number
  readonly #clients: ReadonlyArray<Client>
  readonly #uses = new Map<string, number>()
  readonly #name: string
  #watchers: Array<{ readonly since: number; readonly settle: (at: number) => void }> = []
  #numbers = 0
  #working: Promise<unknown> | undefined
  #isOver = true

  constructor(options: TrafficOptions) {
    const { clients = CLIENTS, exchanges, name = "", seed, thinkMillisMax = THINK_MILLIS_MAX } = options
    this.#name = `faults-${seed}${name}`
    this.thinkMillisMax = thinkMillisMax
    this.#clients = Array.from({ length: clients }, (_, i) => {
      return new Client(this, i, new SeededRandom(seed * 1009 + i), exchanges[i % exchanges.length]!)
    })
  }

  get answered(): number {
    return this.deeds.filter(({ answer }) => answer !== undefined).length
  }

  start(): void {
    this.#isOver = false
    this.#working = Promise.all(this.#clients.map((client) => client.work(() => this.#isOver)))
  }

  /** Ends the work. Requests under way end first; `settle` repeats open ones. */
  async stop(): Promise<void> {
    this.#isOver = true
    await this.#working
  }

  /** Repeats every open request until it has an answer or the time is over. */
  async settle(millisMax = 90_000): Promise<void> {
    const end = performance.now() + millisMax
    await Promise.all(this.#clients.map((client) => client.settle(end)))
  }

  /** Lets the clients send a number of further requests, for half a minute at most. */
  async work(requests: number): Promise<void> {
    const enough = this.answered + requests
    const end = performance.now() + 30_000
    while (this.answered < enough && performance.now() < end) await pause(10)
  }

  /** Returns when the first POST sent after a moment was acknowledged; undefined after `millisMax`. */
  acknowledgedAfter(since: number, millisMax: number): Promise<number | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(undefined), millisMax)
      this.#watchers.push({
        since,
        settle: (at) => {
          clearTimeout(timer)
          resolve(at)
        }
      })
    })
  }

  newNumber(): number {
    return ++this.#numbers
  }

  newDeed(process: number, operation: Operation): Deed {
    const key = `${this.#name}-${this.deeds.length + 1}`
    const open = { invokedAt: performance.now(), attempts: 0, answeredAt: Infinity, answer: undefined }
    const deed: Deed = { key, process, operation, ...requestOf(operation), ...open }
    this.deeds.push(deed)
    return deed
  }

  acknowledged(deed: Deed, sentAt: number, answer: Answer): void {
    const now = performance.now()
    this.#watchers = this.#watchers.filter(({ settle, since }) => {
      if (sentAt < since) return true
      settle(now)
      return false
    })
    if (deed.answer !== undefined) return
    deed.answer = answer
    deed.answeredAt = now
    const wrong = wrongness(deed.operation, answer)
    if (wrong !== undefined)
      this.problem("wrong", `${deed.key} ${JSON.stringify(deed.operation)}: ${show(answer)} ${wrong}`)
    const made = madeBy(deed.operation, answer)
    if (made === undefined) return
    if (deed.operation.f === "enroll") this.customers.set(made.id, deed.operation.value)
    if (deed.operation.f === "hold") this.payments.set(made.id, deed.operation.amount)
  }

  problem(kind: Kind, text: string): void {
    this.problems.push({ kind, text })
  }

  /** Reads all current shared objects at once and records the reads. */
  async lookAtShared(exchange: Destination): Promise<void> {
    const ids = [...[...this.customers.keys()].slice(-SHARED), ...[...this.payments.keys()].slice(-SHARED)]
    const looking = new Client(this, -1, new SeededRandom(0), exchange)
    await Promise.all(ids.map((id) => looking.read(id)))
  }

  /** Returns one of the newest shared objects; undefined if a new one should be created. */
  share(of: ReadonlyMap<string, number>, random: Random): string | undefined {
    const newest = [...of.keys()].slice(-SHARED).filter((id) => (this.#uses.get(id) ?? 0) < SHARED_OPERATIONS_MAX)
    if (newest.length === 0 || (newest.length < SHARED && random.chance(0.2))) return undefined
    const id = random.pick(newest)
    this.#uses.set(id, (this.#uses.get(id) ?? 0) + 1)
    return id
  }
}

export const show = ({ status, text }: Answer): string => `${status} ${text.slice(0, 600)}`

/** Returns true for answers that leave the outcome open: the request may be repeated. */
const isOpen = ({ body, status }: Answer): boolean =>
  status >= 500 || status === 429 || (status === 409 && body?.error?.code === "idempotency_key_in_use")

class Client {
  #pending: Deed | undefined
  readonly #traffic: Traffic
  readonly #process: number
  readonly #random: Random
  readonly #exchange: Destination

  constructor(traffic: Traffic, process: number, random: Random, exchange: Destination) {
    this.#traffic = traffic
    this.#process = process
    this.#random = random
    this.#exchange = exchange
  }

  async work(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const isAnswered = this.#pending === undefined ? await this.#next() : await this.#attempt(this.#pending)
      await pause(isAnswered ? this.#random.integer(0, this.#traffic.thinkMillisMax) : RETRY_MILLIS)
    }
  }

  async settle(end: number): Promise<void> {
    while (this.#pending !== undefined && performance.now() < end) {
      if (!(await this.#attempt(this.#pending))) await pause(RETRY_MILLIS)
    }
  }

  async #next(): Promise<boolean> {
    const chosen = this.#choose()
    if (typeof chosen === "string") return this.read(chosen)
    const deed = (this.#pending = this.#traffic.newDeed(this.#process, chosen))
    if (!this.#random.chance(0.04)) return this.#attempt(deed)
    // Sends the same request twice at once: one is carried out, the other gets the same answer.
    const [one, other] = await Promise.all([this.#attempt(deed), this.#attempt(deed)])
    return one || other
  }

  /** Returns the next operation; a text is an id to read. */
  #choose(): Operation | string {
    const [random, traffic] = [this.#random, this.#traffic]
    const kind = random.next()
    if (kind < 0.24) return { f: "pay", amount: random.integer(100, 9999) }
    if (kind < 0.27) return { f: "decline", amount: random.integer(100, 9999) }
    if (kind < 0.65) {
      const id = traffic.share(traffic.customers, random)
      if (id === undefined) return { f: "enroll", value: traffic.newNumber() }
      return kind < 0.48 ? { f: "write", id, value: traffic.newNumber() } : id
    }
    const id = traffic.share(traffic.payments, random)
    if (id === undefined) return { f: "hold", amount: random.integer(1000, 9999) }
    if (kind < 0.73) return { f: "capture", id, amount: random.integer(1, traffic.payments.get(id)!) }
    if (kind < 0.75) return { f: "cancel", id }
    return kind < 0.88 ? { f: "refund", id, amount: random.integer(1, 700) } : id
  }

  /** Repeats an open request; false if its outcome is still unknown. */
  async #attempt(deed: Deed): Promise<boolean> {
    const sentAt = performance.now()
    deed.attempts++
    const answer = await this.#ask("POST", deed.path, { body: deed.body, idempotencyKey: deed.key })
    if (answer === undefined) return false
    this.#pending = undefined
    const first = deed.answer
    this.#traffic.acknowledged(deed, sentAt, answer)
    if (first !== undefined && (first.text !== answer.text || first.status !== answer.status)) {
      this.#traffic.problem("doubled", `two answers to ${deed.key}: ${show(first)} / ${show(answer)}`)
    }
    return true
  }

  async read(id: string): Promise<boolean> {
    const invokedAt = performance.now()
    const answer = await this.#ask("GET", pathOf(id))
    if (answer === undefined) return false
    if (answer.status === 200) {
      this.#traffic.reads.push({ process: this.#process, id, invokedAt, answeredAt: performance.now(), answer })
    } else {
      const kind = answer.status === 404 ? "lost" : "wrong"
      this.#traffic.problem(kind, `GET ${pathOf(id)}, which was acknowledged, answers ${show(answer)}`)
    }
    return true
  }

  /** Returns a conclusive answer, or undefined. */
  async #ask(...request: Parameters<HttpExchange["request"]>): Promise<Answer | undefined> {
    const answer = await answerOf(this.#exchange, ...request)
    if (answer === undefined) this.#traffic.lost++
    else if (answer.body === undefined) this.#traffic.problem("wrong", `no JSON: ${show(answer)}`)
    else if (!isOpen(answer)) return answer
    else if (answer.status === 503 || answer.status < 500) this.#traffic.unavailable++
    else this.#traffic.failed++
    return undefined
  }
}

export const pathOf = (id: string): string =>
  id.startsWith("cus_")
    ? `/v1/customers/${id}`
    : id.startsWith("ref_")
      ? `/v1/refunds/${id}`
      : `/v1/payment_intents/${id}`

/** Returns any answer; undefined if it is lost or late. */
export const answerOf = async (
  exchange: Destination,
  ...request: Parameters<HttpExchange["request"]>
): Promise<Answer | undefined> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(() => resolve(undefined), ANSWER_MILLIS_MAX)))
  const lost = (error: unknown) => {
    if (error instanceof Lost) return undefined
    throw error
  }
  try {
    return await Promise.race([exchange.request(...request).catch(lost), late])
  } finally {
    clearTimeout(timer)
  }
}
