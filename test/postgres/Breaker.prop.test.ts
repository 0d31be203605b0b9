/** The breaker against a database that is silent at random times, in simulated time. */
import { assert, describe, it } from "@effect/vitest"
import { Breaker, type HangLimits, type Statement } from "../../src/postgres/Breaker.ts"
import { Random, Seed } from "../support/Random.ts"

const LIMITS: HangLimits = { silentMillis: 1500, probeMillis: 2000, pauseMillis: 500 }
const LOOK_MILLIS = LIMITS.pauseMillis / 4
/** The maximum time of an answer, unless the database is silent. */
const ANSWER_MILLIS = 1000

interface Span {
  readonly from: number
  readonly to: number
}

interface Sent {
  readonly at: number
  ended?: { readonly at: number; readonly isAnswered: boolean }
}

class World {
  now = 0
  readonly changes: Array<{ readonly at: number; readonly isHanging: boolean }> = []
  readonly sent: Array<Sent> = []
  /** Statements that were not sent. */
  readonly refusedAt: Array<number> = []
  readonly breaker: Breaker
  #timers: Array<{ readonly at: number; readonly step: () => void }> = []
  readonly #silences: ReadonlyArray<Span>
  readonly #random: Random

  constructor(silences: ReadonlyArray<Span>, random: Random) {
    this.#silences = silences
    this.#random = random
    this.breaker = new Breaker(LIMITS, {
      now: () => this.now,
      after: (millis, step) => this.at(this.now + millis, step),
      probe: (answered) => {
        let isOver = false
        this.at(this.#answerAt(), () => {
          if (!isOver) answered()
        })
        return () => {
          isOver = true
        }
      },
      onChange: (isHanging) => this.changes.push({ at: this.now, isHanging })
    })
  }

  at(at: number, step: () => void): void {
    this.#timers.push({ at, step })
  }

  send(): void {
    if (this.breaker.isHanging) return void this.refusedAt.push(this.now)
    const sent: Sent = { at: this.now }
    this.sent.push(sent)
    const end = (isAnswered: boolean) => {
      assert.isUndefined(sent.ended)
      sent.ended = { at: this.now, isAnswered }
    }
    const statement: Statement = this.breaker.begin(() => end(false))
    this.at(this.#answerAt(), () => {
      if (sent.ended !== undefined) return
      this.breaker.end(statement, true)
      end(true)
    })
  }

  /** Runs until no events are left. */
  run(): void {
    while (this.#timers.length > 0) {
      const next = this.#timers.reduce((first, timer) => (timer.at < first.at ? timer : first))
      this.#timers = this.#timers.filter((timer) => timer !== next)
      this.now = Math.max(this.now, next.at)
      next.step()
    }
  }

  #answerAt(): number {
    const at = this.now + this.#random.integer(1, ANSWER_MILLIS)
    return this.#silences.find(({ from, to }) => at >= from && at < to)?.to ?? at
  }
}

describe("a database that hangs", () => {
  it.prop(
    "is detected soon, and so is its next answer; a database that answers never counts as hanging",
    { seed: Seed },
    ({ seed }) => {
      const random = new Random(seed)
      const silences: Array<Span> = []
      for (let from = 0; silences.length < 4;) {
        from += random.integer(5000, 20_000)
        silences.push({ from, to: (from += random.integer(1, 12_000)) })
      }
      const world = new World(silences, random)
      const end = silences.at(-1)!.to + 10_000
      for (let at = 0; at < end; at += random.integer(1, 200)) world.at(at, () => world.send())
      world.run()

      const found = ANSWER_MILLIS + LIMITS.silentMillis + LIMITS.probeMillis + 2 * LOOK_MILLIS
      for (const { from, to } of silences) {
        const during = world.changes.filter(({ at }) => at >= from && at <= to + ANSWER_MILLIS)
        if (to - from > found) {
          const [opened] = during
          assert.isTrue(opened?.isHanging)
          assert.isAtMost(opened!.at, from + found)
          // No statement waits for the silent database, and none is sent.
          for (const sent of world.sent.filter(({ at }) => at < to - found && at > from - ANSWER_MILLIS)) {
            assert.isAtMost(sent.ended!.at, Math.max(from + found, sent.at + ANSWER_MILLIS))
          }
          assert.lengthOf(
            world.sent.filter(({ at }) => at > opened!.at && at < to),
            0
          )
        }
        // The running statements or the next probe get an answer.
        assert.isFalse(
          world.changes.findLast(({ at }) => at <= to + LIMITS.pauseMillis + LOOK_MILLIS + ANSWER_MILLIS)?.isHanging ??
            false
        )
      }
      for (const { at, isHanging } of world.changes) {
        if (isHanging)
          assert.isTrue(silences.some(({ from, to }) => at >= from + LIMITS.probeMillis - 1000 && at <= to))
      }
      assert.isTrue(world.sent.every(({ ended }) => ended !== undefined))
      assert.isFalse(world.breaker.isHanging)
    },
    { arbitrary: { runs: 100 } }
  )

  it("gets no probe while no statement runs", () => {
    const world = new World([{ from: 0, to: 60_000 }], new Random(1))
    world.run()
    assert.strictEqual(world.now, 0)
  })

  it("is not detected where this process was blocked itself", () => {
    const timers: Array<() => void> = []
    let now = 0
    const asked: Array<number> = []
    const breaker = new Breaker(LIMITS, {
      now: () => now,
      after: (_, step) => void timers.push(step),
      probe: () => {
        asked.push(now)
        return () => {}
      },
      onChange: () => assert.fail("It does not hang")
    })
    const statement = breaker.begin(() => assert.fail("It is not given up"))
    const look = (millis: number) => {
      now += millis
      for (const step of timers.splice(0)) step()
    }
    look(60_000)
    assert.lengthOf(asked, 0)
    while (asked.length === 0) look(LOOK_MILLIS)
    // The answer has arrived, and is read after this.
    look(60_000)
    breaker.end(statement, true)
    look(LOOK_MILLIS)
    assert.isFalse(breaker.isHanging)
  })

  it("is not detected where it refuses statements, or executes a large one", () => {
    let asked = 0
    const timers: Array<() => void> = []
    let now = 0
    const breaker = new Breaker(LIMITS, {
      now: () => now,
      after: (_, step) => void timers.push(step),
      probe: (answered) => {
        asked++
        answered()
        return () => {}
      },
      onChange: () => assert.fail("It does not hang")
    })
    breaker.begin(() => assert.fail("It is not given up"))
    for (; now < 60_000; now += LOOK_MILLIS) for (const step of timers.splice(0)) step()
    assert.isAtLeast(asked, 60_000 / (LIMITS.silentMillis + LOOK_MILLIS) - 1)
    assert.isFalse(breaker.isHanging)
    breaker.close()
    for (const step of timers.splice(0)) step()
    assert.lengthOf(timers, 0)
  })
})
