/**
 * A circuit breaker for a database that hangs. While it is open, running statements are abandoned and no statement is
 * sent, until the database has answered again (semantics storage.hang). Statements that reach a time limit are
 * abandoned in any case.
 *
 * A database that answers nothing for a while may be executing a large statement, so a probe is sent: a small statement
 * over a connection of its own. The database hangs if the probe gets no answer either. Any answer counts, also that of
 * another statement. A refused statement fails immediately, which needs no breaker.
 *
 * Time in which this process was blocked itself does not count: answers that arrived in it are still unread.
 */
import { Clock, Effect, Exit, type Fiber, Latch, type Scope } from "effect"
import * as Loop from "../engine/process/Loop.ts"

export interface HangLimits {
  /** How long the database may answer nothing before a probe is sent. */
  readonly silentMillis: number
  /** How long a probe may go unanswered before the database counts as hanging. */
  readonly probeMillis: number
  readonly pauseMillis: number
}

export interface Limits extends HangLimits {
  /** How long a statement may run. */
  readonly statementMillis: number
}

export interface Surroundings<E> {
  /** Sends a probe; succeeds when it is answered. */
  readonly probe: Effect.Effect<void, unknown>
  /** Runs when the database begins to hang, and when it answers again. */
  readonly onChange: (isHanging: boolean) => Effect.Effect<void>
  /** Failure of statements that are abandoned or refused because the database hangs. */
  readonly failure: E
  /** Failure of a statement that exceeds its limit. */
  readonly late: E
}

interface Running<E> {
  /** Start of the statement. */
  readonly since: number
  /** Ends the wait for the statement, which is interrupted in the background. */
  readonly abandon: (failure: E) => void
}

/** Checks per shortest limit. */
const CHECKS = 4
/** A check that is late by this factor shows that this process was blocked itself. */
const BLOCKED_FACTOR = 3

export class Breaker<E> {
  readonly #clock: Clock.Clock
  readonly #limits: Limits
  readonly #surroundings: Surroundings<E>
  readonly #checkMillis: number
  /** Oldest first. */
  readonly #running = new Set<Running<E>>()
  readonly #isBusy = Latch.makeUnsafe(false)
  readonly #answer = Latch.makeUnsafe(false)
  #answeredAt = -Infinity
  #isHanging = false

  private constructor(limits: Limits, surroundings: Surroundings<E>, clock: Clock.Clock) {
    const { pauseMillis, probeMillis, silentMillis } = limits
    this.#clock = clock
    this.#limits = limits
    this.#surroundings = surroundings
    this.#checkMillis = Math.min(silentMillis, probeMillis, pauseMillis) / CHECKS
  }

  /** Makes a breaker that works until the scope closes. */
  static readonly make = Effect.fnUntraced(function* <E>(
    limits: Limits,
    surroundings: Surroundings<E>
  ): Effect.fn.Return<Breaker<E>, never, Scope.Scope> {
    const breaker = new Breaker(limits, surroundings, yield* Clock.Clock)
    yield* Effect.forkScoped(Loop.forever("watch over the database", Effect.andThen(breaker.#silence, breaker.#decide)))
    yield* Effect.forkScoped(Loop.forever("time limit of statements", breaker.#expire))
    return breaker
  })

  /** True while no statement may be sent. */
  get isHanging(): boolean {
    return this.#isHanging
  }

  /**
   * Runs a statement in a fiber of the scope, so that an interruption does not wait until the statement is canceled.
   * Fails immediately while the database hangs, as soon as it begins to hang, and at the time limit.
   */
  guard<A, E2>(statement: Effect.Effect<A, E2>, scope: Scope.Scope): Effect.Effect<A, E | E2> {
    return Effect.uninterruptibleMask((restore) =>
      this.#isHanging
        ? Effect.fail(this.#surroundings.failure)
        : Effect.flatMap(Effect.forkIn(restore(statement), scope, { startImmediately: true }), (fiber) =>
            restore(this.#endOf(fiber))
          )
    )
  }

  /** Waits until a statement has ended or is abandoned. */
  #endOf<A, E2>(fiber: Fiber.Fiber<A, E2>): Effect.Effect<A, E | E2> {
    return Effect.callback<A, E | E2>((resume) => {
      const abandon = (failure: E) => {
        this.#running.delete(running)
        resume(Effect.fail(failure))
        fiber.interruptUnsafe()
      }
      const running = { since: this.#now(), abandon }
      this.#running.add(running)
      this.#isBusy.openUnsafe()
      fiber.addObserver((exit) => {
        if (!this.#running.delete(running)) return
        if (Exit.isSuccess(exit)) this.#noteAnswer()
        resume(exit)
      })
      return Effect.sync(() => {
        this.#running.delete(running)
        fiber.interruptUnsafe()
      })
    })
  }

  /** Abandons the statements that reach the limit. The oldest does first: those of a later start are due later. */
  readonly #expire = Effect.gen({ self: this }, function* () {
    const { statementMillis } = this.#limits
    yield* this.#isBusy.await
    const [oldest] = this.#running
    yield* Effect.sleep(statementMillis - (oldest === undefined ? 0 : this.#now() - oldest.since))
    const now = this.#now()
    for (const { abandon, since } of this.#running) if (now - since >= statementMillis) abandon(this.#surroundings.late)
  })

  #now(): number {
    return Number(this.#clock.monotonicTimeNanosUnsafe()) / 1e6
  }

  #noteAnswer(): void {
    this.#answeredAt = this.#now()
    this.#answer.openUnsafe()
  }

  /** Sleeps until the next check; returns the time that has passed, or undefined if this process was blocked. */
  readonly #sleep = Effect.fnUntraced({ self: this }, function* (millis: number) {
    const from = this.#now()
    yield* Effect.sleep(Math.min(millis, this.#checkMillis))
    const passed = this.#now() - from
    return passed > BLOCKED_FACTOR * this.#checkMillis ? undefined : passed
  })

  /** Waits for the time limit of a probe, which starts again if this process was blocked. */
  readonly #probeTimeout = Effect.gen({ self: this }, function* () {
    const { probeMillis } = this.#limits
    for (let left = probeMillis; left > 0;) {
      const passed = yield* this.#sleep(left)
      left = passed === undefined ? probeMillis : left - passed
    }
  })

  /** Sends a probe in the background, and ends it at its time limit or when the database has answered. */
  readonly #sendProbe = Effect.suspend(() =>
    Effect.forkScoped(
      Effect.raceAllFirst([
        Effect.ignore(Effect.map(this.#surroundings.probe, () => this.#noteAnswer())),
        this.#answer.await,
        this.#probeTimeout
      ]),
      { startImmediately: true }
    )
  )

  /** Waits until a running statement has waited too long without any answer of the database. */
  readonly #silence = Effect.gen({ self: this }, function* () {
    for (;;) {
      yield* this.#isBusy.await
      if ((yield* this.#sleep(this.#checkMillis)) === undefined) this.#answeredAt = this.#now()
      const [oldest] = this.#running
      if (oldest === undefined) this.#isBusy.closeUnsafe()
      else if (this.#now() - Math.max(oldest.since, this.#answeredAt) >= this.#limits.silentMillis) return
    }
  })

  /** Sends a probe. While the database hangs, refuses statements and sends further probes until one is answered. */
  readonly #decide = Effect.gen({ self: this }, function* () {
    this.#answer.closeUnsafe()
    yield* this.#sendProbe
    yield* Effect.raceFirst(this.#answer.await, this.#probeTimeout)
    if (this.#answer.isOpen()) return
    const { failure, onChange } = this.#surroundings
    this.#isHanging = true
    for (const { abandon } of this.#running) abandon(failure)
    yield* onChange(true)
    const probing = Effect.forever(Effect.andThen(this.#sendProbe, Effect.sleep(this.#limits.pauseMillis)))
    yield* Effect.raceFirst(this.#answer.await, probing)
    this.#isHanging = false
    yield* onChange(false)
  })
}
