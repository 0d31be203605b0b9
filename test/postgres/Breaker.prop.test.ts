/** The breaker against a database that is silent at random times, by the test clock (semantics storage.hang). */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Breaker, type Limits } from "../../src/postgres/Breaker.ts"
import { Random, Seed } from "../support/Random.ts"

const LIMITS: Limits = { silentMillis: 1500, probeMillis: 2000, pauseMillis: 500, statementMillis: 1_000_000 }
const LOOK_MILLIS = LIMITS.pauseMillis / 4
/** The maximum time of an answer, unless the database is silent. */
const ANSWER_MILLIS = 1000
const HANGING = "hanging"
const LATE = "late"

interface Span {
  readonly from: number
  readonly to: number
}

interface Sent {
  readonly at: number
  ended?: { readonly at: number; readonly isAnswered: boolean }
}

class World {
  readonly changes: Array<{ readonly at: number; readonly isHanging: boolean }> = []
  readonly sent: Array<Sent> = []
  /** Statements that were not sent. */
  refused = 0
  probes = 0
  readonly #silences: ReadonlyArray<Span>
  readonly #random: Random
  #breaker!: Breaker<string>
  #scope!: Scope.Scope

  constructor(silences: ReadonlyArray<Span>, random: Random) {
    this.#silences = silences
    this.#random = random
  }

  get isHanging(): boolean {
    return this.#breaker.isHanging
  }

  readonly start: Effect.Effect<void, never, Scope.Scope> = Effect.gen({ self: this }, function* () {
    this.#scope = yield* Effect.scope
    this.#breaker = yield* Breaker.make(LIMITS, {
      probe: Effect.suspend(() => {
        this.probes++
        return this.#answer
      }),
      onChange: (isHanging) => Effect.map(Clock.currentTimeMillis, (at) => void this.changes.push({ at, isHanging })),
      failure: HANGING,
      late: LATE
    })
  })

  /** Sends a statement, and waits for its end. */
  readonly send: Effect.Effect<void> = Effect.gen({ self: this }, function* () {
    let sent: Sent | undefined
    const statement = Effect.gen({ self: this }, function* () {
      this.sent.push((sent = { at: yield* Clock.currentTimeMillis }))
      yield* this.#answer
    })
    const exit = yield* Effect.exit(this.#breaker.guard(statement, this.#scope))
    if (Exit.isFailure(exit)) assert.deepStrictEqual<Exit.Exit<void, string>>(exit, Exit.fail(HANGING))
    if (sent === undefined) this.refused++
    else sent.ended = { at: yield* Clock.currentTimeMillis, isAnswered: Exit.isSuccess(exit) }
  })

  readonly #answer = Effect.gen({ self: this }, function* () {
    const now = yield* Clock.currentTimeMillis
    const at = now + this.#random.integer(1, ANSWER_MILLIS)
    yield* Effect.sleep((this.#silences.find(({ from, to }) => at >= from && at < to)?.to ?? at) - now)
  })
}

describe("a database that hangs", () => {
  it.effect.prop(
    "is detected soon, and so is its next answer; a database that answers never counts as hanging",
    { seed: Seed },
    ({ seed }) =>
      Effect.gen(function* () {
        const random = new Random(seed)
        const silences: Array<Span> = []
        for (let from = 0; silences.length < 4;) {
          from += random.integer(5000, 20_000)
          silences.push({ from, to: (from += random.integer(1, 12_000)) })
        }
        const world = new World(silences, random)
        yield* world.start
        const end = silences.at(-1)!.to + 10_000
        for (let at = 0; at < end;) {
          yield* Effect.forkChild(world.send)
          const pause = random.integer(1, 200)
          yield* TestClock.adjust(pause)
          at += pause
        }
        yield* TestClock.adjust(ANSWER_MILLIS)

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
            assert.isAbove(world.refused, 0)
          }
          // The running statements or the next probe get an answer.
          assert.isFalse(
            world.changes.findLast(({ at }) => at <= to + LIMITS.pauseMillis + LOOK_MILLIS + ANSWER_MILLIS)
              ?.isHanging ?? false
          )
        }
        for (const { at, isHanging } of world.changes) {
          if (isHanging)
            assert.isTrue(silences.some(({ from, to }) => at >= from + LIMITS.probeMillis - 1000 && at <= to))
        }
        assert.isTrue(world.sent.every(({ ended }) => ended !== undefined))
        assert.isFalse(world.isHanging)
      }),
    { arbitrary: { runs: 100 } }
  )

  it.effect("gets no probe while no statement runs", () =>
    Effect.gen(function* () {
      const world = new World([{ from: 0, to: 60_000 }], new Random(1))
      yield* world.start
      yield* TestClock.adjust(60_000)
      assert.strictEqual(world.probes, 0)
      yield* Effect.forkChild(world.send)
      yield* TestClock.adjust(LIMITS.silentMillis + LOOK_MILLIS)
      assert.strictEqual(world.probes, 0)
    })
  )

  it.effect("is not detected where this process was blocked itself", () =>
    Effect.gen(function* () {
      let asked = 0
      let blockedMillis = 0
      const clock = yield* Clock.Clock
      const breaker = yield* Breaker.make(LIMITS, {
        probe: Effect.andThen(
          Effect.sync(() => asked++),
          Effect.never
        ),
        onChange: () => Effect.sync(() => assert.fail("It does not hang")),
        failure: HANGING,
        late: LATE
      }).pipe(
        Effect.provideService(Clock.Clock, {
          ...clock,
          monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe() + BigInt(blockedMillis) * 1_000_000n
        })
      )
      const answer = Deferred.makeUnsafe<void>()
      const statement = yield* Effect.forkChild(breaker.guard(Deferred.await(answer), yield* Effect.scope))
      yield* TestClock.adjust(1)
      const block = Effect.suspend(() => {
        blockedMillis += 60_000
        return TestClock.adjust(LOOK_MILLIS)
      })
      yield* block
      assert.strictEqual(asked, 0)
      yield* TestClock.adjust(LIMITS.silentMillis + LOOK_MILLIS)
      assert.strictEqual(asked, 1)
      // The answer has arrived, and is read after this.
      yield* block
      yield* Deferred.succeed(answer, undefined)
      yield* Fiber.join(statement)
      yield* TestClock.adjust(LIMITS.probeMillis)
      assert.isFalse(breaker.isHanging)
    })
  )

  it.effect("is not detected where it refuses statements, or executes a large one", () =>
    Effect.gen(function* () {
      let asked = 0
      const scope = yield* Scope.make()
      const breaker = yield* Breaker.make(LIMITS, {
        probe: Effect.sync(() => asked++),
        onChange: () => Effect.sync(() => assert.fail("It does not hang")),
        failure: HANGING,
        late: LATE
      }).pipe(Scope.provide(scope))
      const large = yield* Effect.forkChild(breaker.guard(Effect.never, scope))
      assert.deepStrictEqual(yield* Effect.exit(breaker.guard(Exit.fail("refused"), scope)), Exit.fail("refused"))
      yield* TestClock.adjust(60_000)
      assert.isAtLeast(asked, Math.floor(60_000 / (LIMITS.silentMillis + LOOK_MILLIS)) - 1)
      assert.isFalse(breaker.isHanging)
      assert.isUndefined(large.pollUnsafe())
      yield* Scope.close(scope, Exit.void)
      const before = asked
      yield* TestClock.adjust(60_000)
      assert.strictEqual(asked, before)
    })
  )

  it.effect.prop(
    "leaves each statement its time limit, and no more",
    { seed: Seed },
    ({ seed }) =>
      Effect.gen(function* () {
        const random = new Random(seed)
        const scope = yield* Effect.scope
        const statementMillis = 1000
        const breaker = yield* Breaker.make(
          { ...LIMITS, statementMillis },
          { probe: Effect.void, onChange: () => Effect.void, failure: HANGING, late: LATE }
        )
        let canceled = 0
        const run = Effect.gen(function* () {
          const millis = random.integer(1, 2 * statementMillis)
          const began = yield* Clock.currentTimeMillis
          const statement = Effect.onInterrupt(Effect.sleep(millis), () => Effect.sync(() => void canceled++))
          const exit = yield* Effect.exit(breaker.guard(statement, scope))
          const took = (yield* Clock.currentTimeMillis) - began
          if (millis < statementMillis) assert.deepStrictEqual(exit, Exit.void)
          if (millis > statementMillis) assert.deepStrictEqual<Exit.Exit<void, string>>(exit, Exit.fail(LATE))
          assert.strictEqual(took, Math.min(millis, statementMillis))
          return Exit.isFailure(exit)
        })
        const running: Array<Fiber.Fiber<boolean>> = []
        for (let i = 0; i < 50; i++) {
          running.push(yield* Effect.forkChild(run, { startImmediately: true }))
          yield* TestClock.adjust(random.pick([1, 100, 400, 3000]))
        }
        yield* TestClock.adjust(statementMillis)
        const late = yield* Fiber.joinAll(running)
        assert.strictEqual(canceled, late.filter(Boolean).length)
      }),
    { arbitrary: { runs: 50 } }
  )
})
