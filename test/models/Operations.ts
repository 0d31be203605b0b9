/**
 * A gateway with a ledger: the truth about money, with which Till has to agree. It speaks Till's protocol (semantics
 * gateways.*), so Till's own adapter signs its requests and reads its answers.
 *
 * Its effects keep a gateway's promises (semantics gateways.promises): one state per operation, one approval per
 * payment, never more captured than held, nor refunded than captured. Its network, its answers and its messages have
 * the faults of its surroundings.
 */
import { Effect, Redacted } from "effect"
import * as StandardWebhooks from "../../src/domain/StandardWebhooks.ts"
import { parseJson } from "../../src/json/JsonParse.ts"
import type { OperationRequest, RemoteProcessor } from "../../src/payments/processing/RemoteProcessor.ts"
import type { ProcessorsShape } from "../../src/payments/processing/Processor.ts"
import { simulator } from "../../src/payments/processing/Simulator.ts"
import type { Exchange, PostRequest, Reply } from "../../src/processors/Exchange.ts"
import * as HttpProcessor from "../../src/processors/protocol/HttpProcessor.ts"
import type { Operation, Request, State } from "../../src/processors/protocol/Messages.ts"

export const PROCESSOR = "prc_000000000000000000000001"
export const SECRET = Redacted.make(`whsec_${Buffer.alloc(32, 7).toString("base64")}`)

/** The course of a card's attempts, by token. */
export const TOKENS = ["tok_approve", "tok_decline", "tok_challenge", "tok_authenticate", "tok_pending"] as const
export type Token = (typeof TOKENS)[number]

/** A payment as the gateway has it. */
export interface Entry {
  status: "none" | "challenged" | "pending" | "held" | "captured" | "canceled"
  amount: number
  captured: number
  refunded: number
  /** The operation that was approved, challenged or is pending. */
  by: string | null
  /** The time at which the gateway itself releases a hold, in milliseconds. */
  heldUntil: number
}

/** An operation's effect on money. */
export interface LedgerLine {
  readonly id: string
  readonly kind: Operation["kind"]
  readonly payment: string
  readonly amount: number
}

export type Call = "perform" | "look" | "fence"

/** The faults of one call. */
export const FAULTS = [
  "not sent",
  "request lost",
  "answer lost",
  /** The request arrives long after its answer was given up. */
  "late",
  "500 before the effect",
  "500 after the effect",
  /** An error that is the answer to the same operation from then on, without an effect. */
  "500 stored before the effect",
  "500 stored after the effect",
  "401",
  "409",
  "429",
  "503",
  "in progress",
  /** A proxy's page, without a signature. */
  "page",
  "no JSON",
  "no state",
  "answer to another request",
  "state of another operation"
] as const
/** Answers about which a person has to decide. */
export const WRONG = ["wrong amount", "wrong currency", "wrong payment", "409 mismatch"] as const
export type Fault = "none" | (typeof FAULTS)[number] | (typeof WRONG)[number]

/** A signed message to Till. */
export interface Message {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

export interface Surroundings {
  readonly fault: (call: Call) => Fault
  /** Duration of a request, or of its answer, in milliseconds. */
  readonly delay: () => number
  /** The time after which a late request arrives, in milliseconds. */
  readonly lateness: () => number
  /** Runs an action after a time, beside the process that has called. */
  readonly later: (millis: number, action: () => void) => void
  /** The gateway's clock, in milliseconds; null for a gateway that accepts signatures of any time. */
  readonly now: (() => number) | null
  /** Has a new state of an operation. `isAnswering` is true if the call that has caused it waits for its answer. */
  readonly onChange: (operation: string, isAnswering: boolean) => void
  /** How long after an approval the gateway releases a hold by itself, in milliseconds. */
  readonly holdMillis: () => number
}

const CALM: Surroundings = {
  fault: () => "none",
  delay: () => 0,
  lateness: () => 0,
  later: (_, action) => action(),
  now: null,
  onChange: () => {},
  holdMillis: () => Infinity
}

/** The process that calls. */
export interface Caller {
  /** Runs before and after each call: the process may die there. */
  readonly visit: (point: "call.before" | "call.after") => Effect.Effect<void>
}

const DEADLINE_MILLIS = 40_000
const TOLERANCE_MILLIS = 300_000

/** The body and status of an answer, before faults. */
interface Answer {
  readonly status: number
  readonly body: unknown
  readonly retryAfter?: number
}

const errorOf = (status: number, code: string, more: Partial<Answer> = {}): Answer => ({
  status,
  body: { error: { code, message: code, param: null } },
  ...more
})

/** An operation as the gateway keeps it. */
interface Known {
  /** Null for one that was abandoned before it arrived. */
  readonly operation: Operation | null
  answer: Answer
}

const CARD = { brand: "visa", last4: "4242", exp_month: 12, exp_year: 2034, funding: "credit", country: "US" }

const CALLS: Readonly<Record<string, Call>> = {
  "operation.execute": "perform",
  "operation.retrieve": "look",
  "operation.abandon": "fence"
}

export class VirtualProcessor {
  readonly entries = new Map<string, Entry>()
  /** Effects on money, in their order. */
  readonly ledger: Array<LedgerLine> = []
  /** Ids that were sent with two bodies. */
  readonly conflicts: Array<string> = []
  readonly #known = new Map<string, Known>()
  /** Operations whose answer is an error, until the gateway is mended. */
  readonly #broken = new Set<string>()
  readonly #surroundings: Surroundings

  constructor(surroundings: Partial<Surroundings> = {}) {
    this.#surroundings = { ...CALM, ...surroundings }
  }

  /** The processors of an installation whose test accounts have this one. */
  get processors(): ProcessorsShape {
    return this.processorsOf(this.remote)
  }

  processorsOf(remote: RemoteProcessor): ProcessorsShape {
    const byId = (id: string) => (id === PROCESSOR ? remote : null)
    return { of: () => remote, atOnce: () => simulator, byId, mayBegin: () => true }
  }

  readonly remote: RemoteProcessor = this.remoteOf({ visit: () => Effect.void })

  /** The gateway as a process reaches it. */
  remoteOf({ visit }: Caller): RemoteProcessor {
    const post = (request: PostRequest) =>
      visit("call.before").pipe(
        Effect.andThen(this.exchange.post(request)),
        Effect.tap(() => visit("call.after"))
      )
    return HttpProcessor.make({
      id: PROCESSOR,
      url: "https://gateway.example",
      secrets: [SECRET],
      exchange: { post }
    })
  }

  /** The network that leads to the gateway. */
  get exchange(): Exchange {
    return { post: (request) => this.#carry(request) }
  }

  /** The operations that have arrived, in their order. */
  get operations(): ReadonlyArray<Operation> {
    return [...this.#known.values()].flatMap(({ operation }) => operation ?? [])
  }

  entry(payment: string): Entry {
    const known = this.entries.get(payment)
    if (known !== undefined) {
      if (known.status === "held" && this.#now() >= known.heldUntil) known.status = "canceled"
      return known
    }
    const made: Entry = { status: "none", amount: 0, captured: 0, refunded: 0, by: null, heldUntil: Infinity }
    this.entries.set(payment, made)
    return made
  }

  /** True for an operation that had its effect. */
  hasEffect(id: string): boolean {
    return this.ledger.some((line) => line.id === id)
  }

  /** Ends the errors that are stored. */
  mend(): void {
    this.#broken.clear()
  }

  /** The payer answers the challenge, or the gateway's bank concludes what was pending. Returns the operation. */
  answer(payment: string, isApproved: boolean): string | undefined {
    const entry = this.entry(payment)
    if (entry.status !== "challenged" && entry.status !== "pending") return undefined
    const id = entry.by!
    const known = this.#known.get(id)!
    const operation = known.operation!
    const isAuthenticated = isApproved && operation.token === "tok_authenticate"
    if (isApproved && !isAuthenticated) known.answer = this.#charge(operation, entry)
    else {
      Object.assign(entry, { status: "none", by: null })
      known.answer = isAuthenticated ? stateOf(operation, { status: "authenticated" }) : declinedOf(operation)
    }
    this.#surroundings.onChange(id, false)
    return id
  }

  /** The message that an operation has a new state. */
  messageOf(id: string): Message {
    const { payment } = this.#known.get(id)!.operation!
    const body = Buffer.from(JSON.stringify({ type: "operation.updated", operation: { id, payment } }))
    return { headers: StandardWebhooks.sign([SECRET], `msg_${id}`, Math.floor(this.#now() / 1000), body), body }
  }

  #now(): number {
    return this.#surroundings.now?.() ?? 0
  }

  /** Carries a request to the gateway and its answer back. */
  #carry(request: PostRequest): Effect.Effect<Reply> {
    const { delay, fault: faultOf, lateness, later } = this.#surroundings
    return Effect.callback<Reply>((resume) => {
      let isOver = false
      const end = (reply: Reply) => {
        if (!isOver) resume(Effect.succeed(reply))
        isOver = true
      }
      const message = parseJson(request.body.toString()) as Request
      const call = CALLS[message.type]
      const fault = call === undefined ? "none" : faultOf(call)
      const [out, back] = [delay(), delay()]
      if (fault === "not sent") return later(out, () => end({ kind: "not_sent", why: "The gateway was not reached." }))
      const isLost = fault === "request lost" || fault === "answer lost" || fault === "late"
      if (isLost || out + back >= DEADLINE_MILLIS) {
        later(isLost ? out : DEADLINE_MILLIS, () => end({ kind: "lost", why: "The connection was lost." }))
      }
      if (fault === "request lost") return
      later(fault === "late" ? out + lateness() : out, () => {
        const reply = this.#arrive(request, message, fault, back > 0 && !isLost)
        if (!isLost) later(back, () => end(reply))
      })
      return Effect.sync(() => {
        isOver = true
      })
    })
  }

  /** Receives a request, and returns its answer with the fault. */
  #arrive({ headers }: PostRequest, message: Request, fault: Fault, isAnswering: boolean): Reply {
    const { now } = this.#surroundings
    const { "webhook-id": id = "", "webhook-timestamp": sentAt = "0" } = headers
    const time = now === null ? Number(sentAt) : Math.floor(now() / 1000)
    const isStale = Math.abs(time - Number(sentAt)) * 1000 > TOLERANCE_MILLIS
    const answer = isStale ? errorOf(401, "unauthorized") : this.#answerWith(message, fault, isAnswering)
    const text = fault === "no JSON" ? "Thank you." : JSON.stringify(answer.body)
    const body = Buffer.from(fault === "page" ? "<h1>Bad gateway</h1>" : text)
    const answeredId = fault === "answer to another request" ? "msg_of_another" : id
    const signature = fault === "page" ? {} : StandardWebhooks.sign([SECRET], answeredId, time, body)
    const retry = answer.retryAfter === undefined ? {} : { "retry-after": String(answer.retryAfter) }
    return { kind: "answered", status: answer.status, headers: { ...signature, ...retry }, body }
  }

  #answerWith(message: Request, fault: Fault, isAnswering: boolean): Answer {
    switch (fault) {
      case "401":
        return errorOf(401, "unauthorized")
      case "409":
        return errorOf(409, "unavailable")
      case "429":
      case "503":
        return errorOf(Number(fault), "unavailable", { retryAfter: 1 })
      case "500 before the effect":
        return errorOf(500, "unavailable")
      case "page":
        return { status: 200, body: null }
      case "in progress":
        return { status: 200, body: { id: idOf(message), status: "in_progress" } }
      case "500 stored before the effect":
        this.#broken.add(idOf(message))
    }
    if (message.type === "operation.execute" && this.#broken.has(message.operation.id)) {
      return errorOf(500, "unavailable")
    }
    const answer = this.#handle(message, isAnswering)
    switch (fault) {
      case "500 stored after the effect":
        this.#broken.add(idOf(message))
        return errorOf(500, "unavailable")
      case "500 after the effect":
        return errorOf(500, "unavailable")
      case "409 mismatch":
        return errorOf(409, "mismatch")
      case "no state":
        return { status: 200, body: {} }
      case "state of another operation":
        return changed(answer, { id: "op_of_another" })
      case "wrong amount":
        return changed(answer, { amount: 1 })
      case "wrong currency":
        return changed(answer, { currency: "xts" })
      case "wrong payment":
        return changed(answer, { payment: "pi_of_another" })
      default:
        return answer
    }
  }

  #handle(message: Request, isAnswering: boolean): Answer {
    switch (message.type) {
      case "token.describe":
        return TOKENS.includes(message.token as Token) ? { status: 200, body: CARD } : errorOf(400, "unknown_token")
      case "operation.execute":
        return this.#execute(message.operation, isAnswering)
      case "operation.retrieve": {
        const { id } = message
        const known = this.#known.get(id)
        if (known === undefined) return { status: 200, body: { id, status: "never_seen" } }
        return known.answer.status === 200 ? known.answer : notExecuted(id)
      }
      case "operation.abandon": {
        const { id } = message
        const known = this.#known.get(id)
        if (known === undefined) this.#known.set(id, { operation: null, answer: notExecuted(id) })
        const operation = known?.operation
        if (operation && this.entry(operation.payment).status === "challenged") this.#end(operation)
        return this.#handle({ type: "operation.retrieve", id }, false)
      }
      default:
        return errorOf(400, "unsupported")
    }
  }

  #execute(operation: Operation, isAnswering: boolean): Answer {
    const { id } = operation
    const known = this.#known.get(id)
    if (known !== undefined) {
      const isSame = known.operation === null || JSON.stringify(known.operation) === JSON.stringify(operation)
      if (!isSame) this.conflicts.push(id)
      return isSame ? known.answer : errorOf(409, "mismatch")
    }
    const answer = this.#carryOut(operation, this.entry(operation.payment))
    this.#known.set(id, { operation, answer })
    if (answer.status === 200) this.#surroundings.onChange(id, isAnswering)
    return answer
  }

  #carryOut(operation: Operation, entry: Entry): Answer {
    const { amount, kind } = operation
    const { captured, refunded, status } = entry
    const tooLate =
      status === "captured" || status === "canceled"
        ? stateOf(operation, { status: "too_late", payment_status: status === "captured" ? "succeeded" : "canceled" })
        : undefined
    switch (kind) {
      case "authorize":
        return this.#authorize(operation, entry)
      case "capture":
        if (tooLate !== undefined) return tooLate
        if (status !== "held") return errorOf(400, "not_capturable")
        if (amount > entry.amount) return errorOf(400, "amount_too_large")
        Object.assign(entry, { status: "captured", captured: amount })
        return this.#approved(operation)
      case "void":
        if (tooLate !== undefined) return tooLate
        if (status === "pending") return errorOf(400, "not_capturable")
        this.#endChallenge(entry)
        entry.status = "canceled"
        return this.#approved(operation)
      case "refund":
        if (status !== "captured" || amount > captured - refunded) return errorOf(400, "amount_too_large")
        entry.refunded += amount
        return this.#approved(operation)
    }
  }

  #authorize(operation: Operation, entry: Entry): Answer {
    const { authenticated, id, token } = operation
    if (entry.status !== "none" && entry.status !== "challenged") return errorOf(400, "already_authorized")
    this.#endChallenge(entry)
    switch (token as Token) {
      case "tok_decline":
        return declinedOf(operation)
      case "tok_challenge":
      case "tok_authenticate":
        if (authenticated) return this.#charge(operation, entry)
        Object.assign(entry, { status: "challenged", by: id })
        return stateOf(operation, { status: "challenge", challenge: { url: "https://bank.example/3ds" } })
      case "tok_pending":
        Object.assign(entry, { status: "pending", by: id })
        return stateOf(operation, { status: "pending" })
      case "tok_approve":
        return this.#charge(operation, entry)
    }
  }

  #charge(operation: Operation, entry: Entry): Answer {
    const { amount, capture, id } = operation
    const isCaptured = capture === "automatic"
    const heldUntil = this.#now() + this.#surroundings.holdMillis()
    Object.assign(entry, {
      status: isCaptured ? "captured" : "held",
      by: id,
      amount,
      captured: isCaptured ? amount : 0,
      heldUntil
    })
    const isEnding = !isCaptured && heldUntil < Infinity
    return this.#approved(operation, isEnding ? { capture_before: Math.floor(heldUntil / 1000) } : {})
  }

  #approved(operation: Operation, more: Partial<State> = {}): Answer {
    const { amount, id, kind, payment } = operation
    this.ledger.push({ id, kind, payment, amount })
    return stateOf(operation, { status: "approved", ...more })
  }

  #endChallenge({ by, status }: Entry): void {
    if (status === "challenged") this.#end(this.#known.get(by!)!.operation!)
  }

  /** Ends a challenge that another operation has replaced, or that was abandoned. */
  #end({ id, payment }: Operation): void {
    const entry = this.entry(payment)
    if (entry.by !== id) return
    this.#known.get(id)!.answer = notExecuted(id)
    Object.assign(entry, { status: "none", by: null })
    this.#surroundings.onChange(id, false)
  }
}

const stateOf = ({ amount, currency, id, payment }: Operation, part: Partial<State>): Answer => ({
  status: 200,
  body: { id, payment, reference: `gw_${payment}`, amount, currency, at: 0, ...part }
})

const declinedOf = (operation: Operation): Answer =>
  stateOf(operation, {
    status: "declined",
    decline: { code: "insufficient_funds", message: "Your card has insufficient funds." }
  })

const notExecuted = (id: string): Answer => ({ status: 200, body: { id, status: "not_executed" } })

/** Returns the answer with another field, if it is a state with that field. */
const changed = (answer: Answer, part: Partial<State>): Answer => {
  const body = answer.body as Partial<State>
  const has = Object.keys(part).every((name) => body[name as keyof State] != null)
  return has ? { ...answer, body: { ...body, ...part } } : answer
}

const idOf = (message: Request): string =>
  message.type === "operation.execute" ? message.operation.id : "id" in message ? message.id : ""

/** Breaks a rule of the calls on purpose, to test that the checks detect it. */
export type Mistake = "sends each call with a new key" | "takes an error for a refusal"

export const withMistake = (remote: RemoteProcessor, mistake: Mistake): RemoteProcessor => {
  let calls = 0
  switch (mistake) {
    case "sends each call with a new key":
      return {
        ...remote,
        perform: (request) => remote.perform({ ...request, id: `${request.id}_${++calls}` } as OperationRequest)
      }
    case "takes an error for a refusal":
      return {
        ...remote,
        perform: (request) =>
          Effect.map(remote.perform(request), (outcome) =>
            outcome.kind === "unknown" ? { kind: "refused", param: null, code: "error", message: outcome.why } : outcome
          )
      }
  }
}
