/**
 * Sign-in attempts of one address among honest people at other addresses, in any order (semantics dashboard.guessing):
 * they never change the outcome for honest people, and memory is bounded.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import {
  ADDRESS_FAILURES_MAX,
  HELD_BACK,
  PERSON_ATTEMPTS_MAX,
  PERSON_ATTEMPTS_MAX_ANYWHERE,
  SignInLimits
} from "../../../src/dashboard/frame/SignInLimits.ts"

const PEOPLE = ["ana@example.com", "bo@example.com", "cy@example.com"]
/** Each person's address; two people share an office. */
const HOMES = ["192.0.2.1", "192.0.2.1", "2001:db8:1::1"]
/** The attacker's /64, all of whose addresses it controls. */
const ATTACKER = ["2001:db8:2::1", "2001:db8:2:0:ffff::2", "2001:DB8:2::3"]

const index = Schema.Literals([0, 1, 2])
const Step = Schema.Union([
  Schema.TaggedStruct("Honest", { who: index, isRight: Schema.Boolean }),
  Schema.TaggedStruct("Attack", {
    who: index,
    from: index,
    isRight: Schema.Boolean,
    isShouted: Schema.Boolean,
    times: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 60 }))
  }),
  Schema.TaggedStruct("Wait", { minutes: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 20 })) })
])
type Step = typeof Step.Type

type Told = "right" | "wrong" | "held back"

/** An attempt, including its delay. */
const attempt = (who: string, address: string, isRight: boolean) =>
  Effect.gen(function* () {
    const limits = yield* SignInLimits
    const fiber = yield* Effect.forkChild(limits.attempt({ who, address }, Effect.succeed(isRight ? true : undefined)))
    yield* TestClock.adjust(1000)
    const found = yield* Fiber.join(fiber)
    return (found === HELD_BACK ? "held back" : found === true ? "right" : "wrong") satisfies Told as Told
  })

/** Outcomes for honest people; the attacker's attempts run or are skipped, and take their time either way. */
const toldTo = (steps: ReadonlyArray<Step>, isAttacked: boolean) =>
  Effect.gen(function* () {
    const told: Array<Told> = []
    for (const step of steps) {
      if (step._tag === "Wait") yield* TestClock.adjust(step.minutes * 60_000)
      else if (step._tag === "Honest") {
        told.push(yield* attempt(PEOPLE[step.who]!, HOMES[step.who]!, step.isRight))
      } else {
        for (let i = 0; i < step.times; i++) {
          const who = step.isShouted ? PEOPLE[step.who]!.toUpperCase() : PEOPLE[step.who]!
          if (isAttacked) yield* attempt(who, ATTACKER[step.from]!, step.isRight)
          else yield* TestClock.adjust(1000)
        }
      }
    }
    return told
  }).pipe(Effect.provide(SignInLimits.layer))

/** A model without windows: every attempt with its time. */
const modelOf = (steps: ReadonlyArray<Step>, start: number): ReadonlyArray<Told> => {
  const QUARTER = 15 * 60_000
  let now = start
  let quarter = Number.NaN
  let attempts: Array<{ readonly who: string; readonly address: string; isFailure: boolean }> = []
  const told: Array<Told> = []
  for (const step of steps) {
    if (step._tag === "Wait") now += step.minutes * 60_000
    else if (step._tag === "Attack") now += step.times * 1000
    else {
      if (Math.floor(now / QUARTER) !== quarter) attempts = []
      quarter = Math.floor(now / QUARTER)
      const [who, address] = [PEOPLE[step.who]!, HOMES[step.who]!]
      const failures = attempts.filter((other) => other.address === address && other.isFailure)
      const own = attempts.filter((other) => other.who === who)
      const isHeldBack = failures.length >= ADDRESS_FAILURES_MAX || own.length >= PERSON_ATTEMPTS_MAX
      told.push(isHeldBack ? "held back" : step.isRight ? "right" : "wrong")
      if (!isHeldBack) attempts.push({ who, address, isFailure: !step.isRight })
      now += 1000
    }
  }
  return told
}

describe("attempts to sign in", () => {
  it.effect.prop(
    "of one address never change the outcome for other addresses",
    { steps: Schema.Array(Step).check(Schema.isMaxLength(60)) },
    ({ steps }) =>
      Effect.gen(function* () {
        const start = Date.UTC(2026, 10, 26)
        yield* TestClock.setTime(start)
        const alone = yield* toldTo(steps, false)
        yield* TestClock.setTime(start + 24 * 3_600_000)
        assert.deepStrictEqual(yield* toldTo(steps, true), alone)
        assert.deepStrictEqual(alone, modelOf(steps, start))
      }),
    { arbitrary: { runs: 60 } }
  )

  it.effect("count for a person from all addresses together", () =>
    Effect.gen(function* () {
      const told: Array<Told> = []
      for (let i = 0; i < PERSON_ATTEMPTS_MAX_ANYWHERE + 5; i++) {
        told.push(yield* attempt("ana@example.com", `192.0.2.${i % 20}`, false))
      }
      const wrong = Array<Told>(PERSON_ATTEMPTS_MAX_ANYWHERE).fill("wrong")
      assert.deepStrictEqual(told, [...wrong, ...Array<Told>(5).fill("held back")])
      assert.strictEqual(yield* attempt("bo@example.com", "192.0.2.1", true), "right")
      yield* TestClock.adjust(15 * 60_000)
      assert.strictEqual(yield* attempt("ana@example.com", "192.0.2.1", true), "right")
    }).pipe(Effect.provide(SignInLimits.layer))
  )

  it.effect("count for a person with the right password too, as guesses at others with the same email", () =>
    Effect.gen(function* () {
      for (let i = 0; i < PERSON_ATTEMPTS_MAX; i++) {
        assert.strictEqual(yield* attempt("ana@example.com", "192.0.2.1", true), "right")
      }
      assert.strictEqual(yield* attempt("ANA@example.com", "192.0.2.1", true), "held back")
    }).pipe(Effect.provide(SignInLimits.layer))
  )

  it.effect("do not count if the password could not be checked", () =>
    Effect.gen(function* () {
      const limits = yield* SignInLimits
      const of = { who: "ana@example.com", address: "192.0.2.1" }
      for (let i = 0; i < 100; i++) yield* Effect.flip(limits.attempt(of, Effect.fail("too many wait")))
      assert.strictEqual(yield* attempt(of.who, of.address, true), "right")
    }).pipe(Effect.provide(SignInLimits.layer))
  )

  it.effect("of one address with texts of any length use little memory", () =>
    Effect.gen(function* () {
      const limits = yield* SignInLimits
      const heapBytes = () => {
        globalThis.gc?.()
        return process.memoryUsage().heapUsed
      }
      const before = heapBytes()
      let made = 0
      const check = Effect.sync(() => void made++)
      for (let i = 0; i < 100_000; i++) {
        const who = String(i).padEnd(5000, "Ж")
        const fiber = yield* Effect.forkChild(limits.attempt({ who, address: "192.0.2.1" }, check))
        if (made <= ADDRESS_FAILURES_MAX && i <= ADDRESS_FAILURES_MAX) yield* TestClock.adjust(1000)
        yield* Fiber.join(fiber)
      }
      assert.strictEqual(made, ADDRESS_FAILURES_MAX)
      assert.isBelow(heapBytes() - before, 64 * 2 ** 20)
    }).pipe(Effect.provide(SignInLimits.layer))
  )
})
