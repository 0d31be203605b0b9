/** The waits of a flush on a busy event loop, counted in its turns instead of time. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit } from "effect"
import type { Actor } from "../../../src/engine/actor/Actor.ts"
import * as GroupCommit from "../../../src/engine/actor/GroupCommit.ts"
import { Journal } from "../../../src/engine/log/Journal.ts"
import type { ChainedRow, Sealed } from "../../../src/engine/log/Record.ts"
import * as Harness from "../Harness.ts"

/** Longer than an idle turn; many of these turns fit into the longest wait of a flush. */
const TURN_MILLIS = 0.1
const APPEND_TURNS = 5
/** The time that an answer takes. */
const ANSWER_MILLIS = 0.01

/** Keeps the event loop busy as long as the scope lives, and counts its turns. */
const busyLoop = Effect.acquireRelease(
  Effect.sync(() => {
    const loop = { turns: 0, ended: false }
    const turn = () => {
      loop.turns++
      const until = performance.now() + TURN_MILLIS
      while (performance.now() < until);
      if (!loop.ended) setImmediate(turn)
    }
    setImmediate(turn)
    return loop
  }),
  (loop) => Effect.sync(() => void (loop.ended = true))
)

interface Flush {
  readonly records: number
  readonly rows: ReadonlyArray<{ readonly account: string; readonly version: number }>
  readonly bytes: number
  /** Turns from the end of the previous flush, or the first record, to the beginning of this one. */
  readonly turnsWaited: number
}

/**
 * Group commit into a journal that takes some turns per flush. `submit` appends a record; `flushes` lists all flushes.
 */
const start = Effect.gen(function* () {
  const loop = yield* busyLoop
  const flushes: Array<Flush> = []
  let freeSince = 0
  const append = (rows: ReadonlyArray<ChainedRow>) =>
    Effect.callback<void>((resume) => {
      const bytes = rows.reduce((sum, row) => sum + row.bytes.length, 0)
      flushes.push({ records: rows.length, rows, bytes, turnsWaited: loop.turns - freeSince })
      const end = loop.turns + APPEND_TURNS
      const check = () => {
        if (loop.turns < end) return void setImmediate(check)
        freeSince = loop.turns
        resume(Effect.void)
      }
      check()
    })
  const journal = { ...Harness.journalOf(yield* Harness.storageInMemory), append }
  const commit = yield* Effect.provideContext(
    GroupCommit.make({ room: Effect.void, onDurable: () => true, onClosed: () => {} }),
    Context.add(yield* Effect.context(), Journal, journal)
  )
  const actorOf = (account: string) => ({ account, closed: null, markDurable: () => {} }) as unknown as Actor
  const actors = new Map<string, Actor>()
  let version = 0
  const submit = (answered: () => void, bytes: number = 0, account: string = "mer_1:test") => {
    if (version === 0) freeSince = loop.turns
    const actor = actors.get(account) ?? actorOf(account)
    actors.set(account, actor)
    const record = { account, version: ++version }
    const sealed = { bytes: new Uint8Array(bytes), hash: "", previous: "", record } as unknown as Sealed
    commit.append(actor, sealed, (exit) => {
      assert.isTrue(Exit.isSuccess(exit))
      answered()
    })
  }
  return { submit, commit, flushes, loop }
})

/** Clients that repeat requests a number of times, each as soon as the previous one is answered. */
const clients = (
  submit: (answered: () => void, bytes?: number) => void,
  count: number,
  times: number,
  bytes?: number
) =>
  Effect.callback<void>((resume) => {
    let left = count * times
    const one = (more: number) =>
      submit(() => {
        if (more > 1) one(more - 1)
        if (--left === 0) resume(Effect.void)
      }, bytes)
    for (let i = 0; i < count; i++) one(times)
  })

describe("a flush on a busy event loop", () => {
  for (const count of [1, 40]) {
    it.effect(`waits for no other record if ${count} clients send the next at once`, () =>
      Effect.gen(function* () {
        const { submit, flushes } = yield* start
        yield* clients(submit, count, 10)
        assert.strictEqual(flushes.length, 10)
        for (const { records, turnsWaited } of flushes) {
          assert.strictEqual(records, count)
          assert.isAtMost(turnsWaited, 2)
        }
      })
    )
  }

  it.effect("does not wait for more records than it can take", () =>
    Effect.gen(function* () {
      const { submit, flushes } = yield* start
      yield* clients(submit, 1300, 10)
      assert.strictEqual(Math.max(...flushes.map(({ records }) => records)), 512)
      // The first flush follows the change of the lane.
      for (const { records, turnsWaited } of flushes.slice(1)) if (records === 512) assert.isAtMost(turnsWaited, 2)
    })
  )

  it.effect("takes 16 MiB at most, but always one record", () =>
    Effect.gen(function* () {
      const { submit, flushes } = yield* start
      yield* clients(submit, 20, 1, 3_000_000)
      yield* clients(submit, 2, 1, 17_000_000)
      assert.deepStrictEqual(
        flushes.map(({ records }) => records),
        [5, 5, 5, 5, 1, 1]
      )
      for (const { bytes, records } of flushes) assert.isTrue(bytes <= 16 * 1_048_576 || records === 1)
    })
  )

  it.effect("lets accounts take turns if not all records fit into one, and keeps the order of each", () =>
    Effect.gen(function* () {
      const { submit, commit, flushes } = yield* start
      const accounts = Array.from({ length: 34 }, (_, i) => `mer_${i}:test`)
      for (const account of accounts) for (let i = 0; i < 60; i++) submit(() => {}, 10, account)
      yield* commit.drained
      const [first] = flushes
      for (const account of accounts)
        assert.isAtLeast(first!.rows.filter((row) => row.account === account).length, Math.floor(512 / 34))
      assert.deepStrictEqual(
        flushes.map(({ records }) => records),
        [512, 512, 512, 504]
      )
      const all = flushes.flatMap(({ rows }) => rows)
      for (const account of accounts) {
        const versions = all.filter((row) => row.account === account).map(({ version }) => version)
        assert.deepStrictEqual(
          versions,
          versions.toSorted((a, b) => a - b)
        )
      }
    })
  )

  it.effect("leaves many or heavy records of one account to a flush beside those of others", () =>
    Effect.gen(function* () {
      for (const [count, bytes] of [
        [2000, 10],
        [12, 3_000_000]
      ] as const) {
        const { submit, commit, flushes } = yield* start
        for (let i = 0; i < count; i++) submit(() => {}, bytes)
        for (let i = 0; i < 3; i++) submit(() => {}, 10, "mer_2:test")
        yield* commit.drained
        const [small, ...others] = flushes
        assert.deepStrictEqual(
          small!.rows.map(({ account }) => account),
          ["mer_2:test", "mer_2:test", "mer_2:test"]
        )
        assert.isAtMost(small!.turnsWaited, 2)
        // The flushes of the flood begin during the small one.
        assert.isBelow(others[0]!.turnsWaited, APPEND_TURNS)
        const versions = others.flatMap(({ rows }) => rows).map(({ version }) => version)
        assert.deepStrictEqual(
          versions,
          Array.from({ length: count }, (_, i) => i + 1)
        )
        assert.isTrue(flushes.every(({ bytes, records }) => bytes <= 16 * 1_048_576 && records <= 512))
      }
    })
  )

  it.effect("answers a flood's commands in their order, some in each turn of the event loop", () =>
    Effect.gen(function* () {
      const { submit, commit, loop } = yield* start
      const answered: Array<{ readonly turn: number; readonly command: number }> = []
      // Without records of another account, a turn would take many answers.
      submit(() => {}, 10, "mer_2:test")
      for (let i = 0; i < 400; i++) {
        submit(() => {
          answered.push({ turn: loop.turns, command: i })
          const until = performance.now() + ANSWER_MILLIS
          while (performance.now() < until);
        })
      }
      yield* commit.drained
      assert.deepStrictEqual(
        answered.map(({ command }) => command),
        Array.from({ length: 400 }, (_, i) => i)
      )
      assert.isAbove(new Set(answered.map(({ turn }) => turn)).size, 4)
    })
  )

  it.effect("waits for records that are about to come, but not for ever", () =>
    Effect.gen(function* () {
      const { submit, commit, flushes } = yield* start
      for (let i = 0; i < 10; i++) {
        yield* clients(submit, 30, 1)
        yield* clients(submit, 1, 1)
      }
      const alone = flushes.filter(({ records }) => records === 1)
      assert.strictEqual(alone.length, 10)
      // The process itself may be paused for that long at times.
      assert.isAbove(Math.max(...alone.map(({ turnsWaited }) => turnsWaited)), 2)
      yield* commit.drained
    })
  )
})
