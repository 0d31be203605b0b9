/**
 * A circuit breaker for a database that hangs. While it is open, running statements are abandoned and no statement is
 * sent, until the database has answered again (semantics storage.hang).
 *
 * A database that answers nothing for a while may be executing a large statement, so a probe is sent: a small statement
 * over a connection of its own. The database hangs if the probe gets no answer either. Any answer counts, even a
 * refusal: a refused statement fails immediately, which needs no breaker.
 */

export interface HangLimits {
  /** How long the database may answer nothing before a probe is sent. */
  readonly silentMillis: number
  /** How long a probe may go unanswered before the database counts as hanging. */
  readonly probeMillis: number
  /** The pause between probes of a database that hangs. */
  readonly pauseMillis: number
}

/** A running statement. */
export interface Statement {
  readonly since: number
  readonly giveUp: () => void
}

interface Probe {
  since: number
  readonly cancel: () => void
}

export interface Surroundings {
  readonly now: () => number
  readonly after: (millis: number, step: () => void) => void
  /** Sends a probe; returns a function that cancels it. */
  readonly probe: (answered: () => void) => () => void
  /** Called when the database begins to hang, and when it answers again. */
  readonly onChange: (isHanging: boolean) => void
}

/** Checks per shortest limit. */
const CHECKS = 4
/** A check that is late by this factor shows that this process was blocked itself. */
const BLOCKED_FACTOR = 3

export class Breaker {
  readonly #limits: HangLimits
  readonly #surroundings: Surroundings
  readonly #checkMillis: number
  /** Oldest first. */
  readonly #running = new Set<Statement>()
  readonly #probes = new Set<Probe>()
  #answeredAt = -Infinity
  #probedAt = -Infinity
  #isHanging = false
  #isChecking = false
  #isClosed = false

  constructor(limits: HangLimits, surroundings: Surroundings) {
    this.#limits = limits
    this.#surroundings = surroundings
    this.#checkMillis = Math.min(...Object.values(limits)) / CHECKS
  }

  /** True while no statement may be sent. */
  get isHanging(): boolean {
    return this.#isHanging
  }

  /** Registers a statement that is sent now. `giveUp` is called at most once, and not after `end`. */
  begin(giveUp: () => void): Statement {
    const statement = { since: this.#surroundings.now(), giveUp }
    this.#running.add(statement)
    this.#scheduleCheck()
    return statement
  }

  /** Registers the end of a statement, by an answer or otherwise. */
  end(statement: Statement, isAnswered: boolean): void {
    if (this.#running.delete(statement) && isAnswered) this.#recordAnswer()
  }

  /** Ends all probes. */
  close(): void {
    this.#isClosed = true
    this.#endProbes()
  }

  #recordAnswer(): void {
    this.#answeredAt = this.#surroundings.now()
    this.#endProbes()
    if (!this.#isHanging) return
    this.#isHanging = false
    this.#surroundings.onChange(false)
  }

  #endProbes(): void {
    for (const { cancel } of this.#probes) cancel()
    this.#probes.clear()
  }

  /** Checks periodically while statements run or the database hangs. */
  #scheduleCheck(): void {
    if (this.#isChecking) return
    this.#isChecking = true
    const scheduledAt = this.#surroundings.now()
    this.#surroundings.after(this.#checkMillis, () => {
      this.#isChecking = false
      if (this.#isClosed) return
      const now = this.#surroundings.now()
      // Answers that arrived while this process was blocked are still unread: the limits start again.
      if (now - scheduledAt > BLOCKED_FACTOR * this.#checkMillis) this.#restartLimits(now)
      this.#check(now)
      if (this.#isHanging || this.#running.size > 0) this.#scheduleCheck()
    })
  }

  #restartLimits(now: number): void {
    this.#answeredAt = now
    for (const probe of this.#probes) probe.since = now
  }

  #check(now: number): void {
    const { pauseMillis, probeMillis, silentMillis } = this.#limits
    for (const probe of this.#probes) {
      if (now - probe.since < probeMillis) continue
      probe.cancel()
      this.#probes.delete(probe)
      this.#open()
    }
    if (this.#isHanging) {
      if (now - this.#probedAt >= pauseMillis) this.#probe(now)
      return
    }
    const [oldest] = this.#running
    if (oldest === undefined || this.#probes.size > 0) return
    if (now - Math.max(oldest.since, this.#answeredAt) >= silentMillis) this.#probe(now)
  }

  #probe(now: number): void {
    this.#probedAt = now
    // The answer may arrive before `probe` returns: the probe must be registered by then.
    let cancel = () => {}
    const probe = { since: now, cancel: () => cancel() }
    this.#probes.add(probe)
    cancel = this.#surroundings.probe(() => {
      if (this.#probes.has(probe)) this.#recordAnswer()
    })
  }

  #open(): void {
    if (this.#isHanging) return
    this.#isHanging = true
    this.#surroundings.onChange(true)
    const abandoned = [...this.#running]
    this.#running.clear()
    for (const { giveUp } of abandoned) giveUp()
  }
}
