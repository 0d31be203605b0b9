/**
 * Knows when the database hangs. Nobody has to find that out by a statement of their own then: what is under way is
 * given up, and nothing is sent, until the database has answered again (semantics 9.39).
 *
 * A database that answers nothing for a while may be at work on something large, so it is asked for something small,
 * over a connection of its own. Only one that is silent to that as well hangs. Any answer will do, a refusal too: what
 * a database refuses fails at once, and nobody has to be kept from it.
 */

export interface HangLimits {
  /** A database that answers nothing for so long is asked. */
  readonly silentMillis: number
  /** It hangs if it does not answer that for so long. */
  readonly probeMillis: number
  /** One that hangs is asked this often. */
  readonly pauseMillis: number
}

/** A statement under way. */
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
  /** Asks the database for something small; gives what ends the asking. */
  readonly ask: (answered: () => void) => () => void
  /** Told when it has turned out that the database hangs, and when it does no more. */
  readonly onChange: (isHanging: boolean) => void
}

/** Looks per shortest limit. */
const LOOKS = 4
/** A look that comes later than after so many times its pause comes to a process that was held up itself. */
const HELD_UP = 3

export class Breaker {
  readonly #limits: HangLimits
  readonly #surroundings: Surroundings
  readonly #lookMillis: number
  /** The oldest first. */
  readonly #underWay = new Set<Statement>()
  readonly #probes = new Set<Probe>()
  #answeredAt = -Infinity
  #askedAt = -Infinity
  #isHanging = false
  #isLooking = false
  #isClosed = false

  constructor(limits: HangLimits, surroundings: Surroundings) {
    this.#limits = limits
    this.#surroundings = surroundings
    this.#lookMillis = Math.min(...Object.values(limits)) / LOOKS
  }

  /** True while nothing is to be sent. */
  get isHanging(): boolean {
    return this.#isHanging
  }

  /** A statement is sent. `giveUp` is called at most once, and not after its end. */
  begin(giveUp: () => void): Statement {
    const statement = { since: this.#surroundings.now(), giveUp }
    this.#underWay.add(statement)
    this.#look()
    return statement
  }

  /** A statement has come to its end, by an answer or otherwise. */
  end(statement: Statement, isAnswered: boolean): void {
    if (this.#underWay.delete(statement) && isAnswered) this.#answered()
  }

  /** Asks no more. */
  close(): void {
    this.#isClosed = true
    this.#endProbes()
  }

  #answered(): void {
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

  /** Looks again and again while there is something that may hang. */
  #look(): void {
    if (this.#isLooking) return
    this.#isLooking = true
    const lookedAt = this.#surroundings.now()
    this.#surroundings.after(this.#lookMillis, () => {
      this.#isLooking = false
      if (this.#isClosed) return
      const now = this.#surroundings.now()
      // Answers may have come meanwhile that nobody has read: they get their time.
      if (now - lookedAt > HELD_UP * this.#lookMillis) this.#beginAnew(now)
      this.#judge(now)
      if (this.#isHanging || this.#underWay.size > 0) this.#look()
    })
  }

  #beginAnew(now: number): void {
    this.#answeredAt = now
    for (const probe of this.#probes) probe.since = now
  }

  #judge(now: number): void {
    const { pauseMillis, probeMillis, silentMillis } = this.#limits
    for (const probe of this.#probes) {
      if (now - probe.since < probeMillis) continue
      probe.cancel()
      this.#probes.delete(probe)
      this.#hangs()
    }
    if (this.#isHanging) {
      if (now - this.#askedAt >= pauseMillis) this.#ask(now)
      return
    }
    const [oldest] = this.#underWay
    if (oldest === undefined || this.#probes.size > 0) return
    if (now - Math.max(oldest.since, this.#answeredAt) >= silentMillis) this.#ask(now)
  }

  #ask(now: number): void {
    this.#askedAt = now
    // An answer that comes at once would find no probe to end.
    let cancel = () => {}
    const probe = { since: now, cancel: () => cancel() }
    this.#probes.add(probe)
    cancel = this.#surroundings.ask(() => {
      if (this.#probes.has(probe)) this.#answered()
    })
  }

  #hangs(): void {
    if (this.#isHanging) return
    this.#isHanging = true
    this.#surroundings.onChange(true)
    const given = [...this.#underWay]
    this.#underWay.clear()
    for (const { giveUp } of given) giveUp()
  }
}
