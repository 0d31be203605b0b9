/**
 * Guards processors behind a network: limits the calls at once, and stops calling a processor that is out of order
 * (semantics operations.limits).
 *
 * - While a processor is out of order, no operation begins, what has begun is not sent, and a question every few
 *   seconds tries whether it is back: a look at an operation, the description of a token, or, if a request needs the
 *   processor or no other question comes, the question that failed last.
 * - The number of calls at once grows with the time that a processor needs: 500 payments that wait 15 seconds each are
 *   500 calls at once, and a lower limit would refuse payers while the processor works. A processor that has too many
 *   answers 429, which refuses the payment without a doubt and counts as a failure here. So the limit protects Till
 *   alone: a call that waits costs a connection and some ten kilobytes.
 */
import { Clock, Effect, Option, Semaphore } from "effect"
import type { AccountProcessor, ProcessorsShape } from "../payments/processing/Processor.ts"
import type {
  OperationTerms,
  Outcome,
  RemoteProcessor,
  TokenDescription
} from "../payments/processing/RemoteProcessor.ts"

/** Calls of one processor at once, in one process. */
export const CALLS_MAX = 512
/** How long an operation waits for its call, in milliseconds. */
const QUEUE_MILLIS_MAX = 5000
/** Failures in a row after which a processor counts as out of order. */
const FAILURES_MAX = 10
/** The same for the share of failures: at least half of at least so many calls within the window. */
const CALLS_JUDGED_MIN = 20
const WINDOW_MILLIS = 30_000
/** The interval of questions to a processor that is out of order, in milliseconds. */
const TRIAL_MILLIS = 5000
/** The same without any request or look that asks. */
const LONE_TRIAL_MILLIS = 15_000

/** Judges a processor by the outcomes of its calls. Times are of the monotonic clock, in milliseconds. */
export class Breaker {
  #row = 0
  #calls: Array<{ readonly at: number; readonly failed: boolean }> = []
  /** Position of the oldest call within the window. */
  #oldest = 0
  /** Failures within the window. */
  #failures = 0
  #isOpen = false
  #triedAt = -Infinity

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Notes a call. A failure says nothing about an operation: the processor was not reached, or gave no answer. */
  note(failed: boolean, now: number): void {
    if (failed) this.#row++
    else if (this.#isOpen) this.#reset()
    else this.#row = 0
    this.#calls.push({ at: now, failed })
    if (failed) this.#failures++
    while (now - this.#calls[this.#oldest]!.at >= WINDOW_MILLIS) {
      if (this.#calls[this.#oldest++]!.failed) this.#failures--
    }
    if (this.#oldest * 2 > this.#calls.length) {
      this.#calls.splice(0, this.#oldest)
      this.#oldest = 0
    }
    const count = this.#calls.length - this.#oldest
    const isHalf = count >= CALLS_JUDGED_MIN && this.#failures * 2 >= count
    if (failed && (this.#row >= FAILURES_MAX || isHalf)) {
      if (!this.#isOpen) this.#triedAt = now
      this.#isOpen = true
    }
  }

  #reset(): void {
    this.#row = 0
    this.#calls = []
    this.#oldest = 0
    this.#failures = 0
    this.#isOpen = false
  }

  /** Returns true if a question may try whether the processor is back. */
  mayTry(now: number): boolean {
    if (this.#isOpen && now - this.#triedAt < TRIAL_MILLIS) return false
    this.#triedAt = now
    return true
  }
}

const OUT_OF_ORDER = "The processor is out of order."

export interface Guarded extends ProcessorsShape {
  /** Counts the processors that are out of order. */
  readonly outOfOrder: () => number
}

/** Called after each call of a processor, with the kind of its answer. */
export type Measure = (call: "describe" | "perform" | "look" | "fence", answer: string, seconds: number) => void

export interface GuardOptions {
  /** Runs a question beside the command that has found the processor out of order. */
  readonly fork: (question: Effect.Effect<unknown>) => void
  readonly measure?: Measure
}

interface State {
  readonly breaker: Breaker
  readonly calls: Semaphore.Semaphore
  /** The question to try the processor by: about an operation, or a token. */
  question: OperationTerms | string
  /** Whether trials are scheduled. */
  isTried: boolean
}

/** Guards the processors of a registry. The state of a processor stays with its id when its configuration changes. */
export const guarded = (registry: ProcessorsShape, { fork, measure = () => {} }: GuardOptions): Guarded => {
  const states = new Map<string, State>()
  const listeners: Array<(id: string) => void> = []
  const wrapped = new WeakMap<RemoteProcessor, RemoteProcessor>()
  const stateOf = (id: string): State => {
    const known = states.get(id)
    if (known !== undefined) return known
    const state = { breaker: new Breaker(), calls: Semaphore.makeUnsafe(CALLS_MAX), question: "", isTried: false }
    states.set(id, state)
    return state
  }
  const guard = (processor: RemoteProcessor): RemoteProcessor => {
    const known = wrapped.get(processor)
    if (known !== undefined) return known
    const { id } = processor
    const made = withGuard(processor, stateOf(id), measure, (isOpen) => {
      if (isOpen) fork(trials(id))
      else for (const listener of listeners) listener(id)
    })
    wrapped.set(processor, made)
    return made
  }
  const guardAny = (processor: AccountProcessor | null) =>
    processor === null || processor.kind === "at_once" ? processor : guard(processor)
  const byId = (id: string) => {
    const processor = registry.byId(id)
    return processor === null ? null : guard(processor)
  }
  /** Asks a processor that is out of order the question that failed last. */
  const ask = (id: string): Effect.Effect<unknown> => {
    const processor = byId(id)
    const question = states.get(id)?.question
    if (processor === null || question === undefined) return Effect.void
    return typeof question === "string" ? processor.describe(question) : processor.look(question)
  }
  const trials = Effect.fnUntraced(function* (id: string) {
    const state = stateOf(id)
    if (state.isTried) return
    state.isTried = true
    while (state.breaker.isOpen) {
      yield* Effect.sleep(LONE_TRIAL_MILLIS)
      yield* ask(id)
    }
    state.isTried = false
  })
  return {
    ...registry,
    of: (account) => guardAny(registry.of(account)),
    byId,
    mayBegin: (id) => {
      if (!registry.mayBegin(id) || states.get(id)?.breaker.isOpen !== true) return registry.mayBegin(id)
      fork(ask(id))
      return false
    },
    onBack: (listener) => void listeners.push(listener),
    outOfOrder: () => [...states.values()].filter(({ breaker }) => breaker.isOpen).length
  }
}

/** Wraps a processor. Calls `turned` when it goes out of order or is back. */
const withGuard = (
  processor: RemoteProcessor,
  state: State,
  measure: Measure,
  turned: (isOpen: boolean) => void
): RemoteProcessor => {
  const { breaker, calls } = state
  const now = Effect.map(Clock.Clock, (clock) => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n))
  /** Makes a call, and judges the processor by its answer. */
  const noted = <A extends { readonly kind: string }>(
    name: Parameters<Measure>[0],
    question: State["question"],
    call: Effect.Effect<A>,
    failures: ReadonlyArray<A["kind"]>
  ): Effect.Effect<A> =>
    Effect.gen(function* () {
      const begun = yield* now
      const answer = yield* call
      const ended = yield* now
      const hasFailed = failures.includes(answer.kind)
      if (hasFailed) state.question = question
      const wasOpen = breaker.isOpen
      breaker.note(hasFailed, ended)
      if (breaker.isOpen !== wasOpen) turned(breaker.isOpen)
      measure(name, answer.kind, (ended - begun) / 1000)
      return answer
    })
  /** Makes a call in its turn. */
  const inTurn = <A, B>(call: Effect.Effect<A>, refusal: (why: string) => B): Effect.Effect<A | B> =>
    Effect.gen(function* () {
      // A call that has its place is not given up: only the wait for a place has a limit.
      const taken = yield* Effect.timeoutOption(calls.take(1), QUEUE_MILLIS_MAX)
      if (Option.isNone(taken)) return refusal("Too many calls of the processor wait.")
      return yield* Effect.ensuring(call, calls.release(1))
    })
  /** Asks a question; rarely, while the processor is out of order. */
  const asking = <A, B>(call: Effect.Effect<A>, refusal: (why: string) => B): Effect.Effect<A | B> =>
    Effect.flatMap(now, (at): Effect.Effect<A | B> =>
      breaker.mayTry(at) ? call : Effect.succeed(refusal(OUT_OF_ORDER))
    )
  const unknown = (why: string): Outcome => ({ kind: "unknown", why })
  const unavailable = (why: string): TokenDescription => ({ kind: "unavailable", why })
  const notExecuted = (why: string): Outcome => ({ kind: "not_executed", why, retryAfterMillis: null })
  return {
    ...processor,
    describe: (token) => {
      const described = noted("describe", token, processor.describe(token), ["unavailable"])
      return asking(inTurn(described, unavailable), unavailable)
    },
    perform: (request) => {
      const performed = noted("perform", request, processor.perform(request), ["unknown", "not_executed"])
      return Effect.suspend(() =>
        breaker.isOpen ? Effect.succeed(notExecuted(OUT_OF_ORDER)) : inTurn(performed, notExecuted)
      )
    },
    // A look may well find that an operation was not executed.
    look: (request) => asking(noted("look", request, processor.look(request), ["unknown"]), unknown),
    fence: (request) => asking(noted("fence", request, processor.fence(request), ["unknown"]), unknown)
  }
}
