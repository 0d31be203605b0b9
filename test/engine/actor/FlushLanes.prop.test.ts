/**
 * The lanes of flushes (semantics limits.turns) under random traffic of several accounts, with flushes and answers that
 * end at random times.
 */
import { assert, describe, it } from "@effect/vitest"
import { Exit } from "effect"
import type { Actor } from "../../../src/engine/actor/Actor.ts"
import { type Entry, FlushLanes, type Lane } from "../../../src/engine/actor/FlushLanes.ts"
import type { Sealed } from "../../../src/engine/log/Record.ts"
import { Random, Seed } from "../../support/Random.ts"

/** The most records of one account in an ordinary flush, and their most bytes. */
const ORDINARY_RECORDS_MAX = 64
const ORDINARY_BYTES_MAX = 1_048_576
const FLUSH_MAX = 512
const BULK_MILLIS = 100

const FLOOD = "mer_flood:test"
const QUIET = "mer_quiet:test"

const accountOf = ({ actor }: Entry): string => actor.account

/** Lanes whose flushes take as long as the test decides. */
class World {
  now = 0
  readonly lanes = new FlushLanes()
  readonly #running = new Map<Lane, ReadonlyArray<Entry>>()
  /** Durable records of the bulk lane that are not answered. */
  readonly #unanswered: Array<Entry> = []
  readonly #pushed = new Map<string, number>()
  readonly #appended = new Map<string, number>()
  readonly #answered = new Map<string, number>()

  push(account: string, bytes: number = 10): Entry {
    const version = this.#next(this.#pushed, account)
    const entry: Entry = {
      actor: { account } as Actor,
      sealed: { bytes: new Uint8Array(bytes), record: { account, version } } as unknown as Sealed,
      settle: () => assert.strictEqual(version, this.#next(this.#answered, account))
    }
    this.lanes.push(entry)
    return entry
  }

  /** Begins a flush of a lane without one, and returns its records. */
  begin(lane: Lane): ReadonlyArray<Entry> {
    if (this.#running.has(lane)) return []
    const others = [...this.#running.values(), this.#unanswered].flat().map(accountOf)
    this.lanes.sort(lane, this.now)
    const batch = lane.take()
    for (const entry of batch) {
      const account = accountOf(entry)
      assert.strictEqual(entry.sealed.record.version, this.#next(this.#appended, account))
      if (lane === this.lanes.ordinary) assert.notInclude(others, account)
    }
    assert.isAtMost(batch.length, FLUSH_MAX)
    if (lane === this.lanes.ordinary) {
      for (const own of Map.groupBy(batch, accountOf).values()) {
        assert.isAtMost(own.length, ORDINARY_RECORDS_MAX)
        assert.isAtMost(
          own.reduce((sum, { sealed }) => sum + sealed.bytes.length, 0),
          ORDINARY_BYTES_MAX
        )
      }
    }
    if (batch.length > 0) this.#running.set(lane, batch)
    return batch
  }

  end(lane: Lane): void {
    const batch = this.#running.get(lane)
    if (batch === undefined) return
    this.#running.delete(lane)
    lane.noteFlushed(batch.length)
    this.#unanswered.push(...(lane === this.lanes.bulk ? batch : []))
    if (lane === this.lanes.ordinary) this.#decide(batch)
  }

  answer(count: number): void {
    this.#decide(this.#unanswered.splice(0, count))
  }

  /** Ends everything that is left. */
  finish(): void {
    while (this.lanes.undecided.length > 0) {
      for (const lane of [this.lanes.ordinary, this.lanes.bulk]) {
        this.begin(lane)
        this.end(lane)
      }
      this.answer(Infinity)
    }
    assert.deepStrictEqual(this.#answered, this.#pushed)
  }

  #decide(entries: ReadonlyArray<Entry>): void {
    for (const entry of entries) {
      const { settle } = entry
      assert.isNotNull(settle)
      entry.settle = null
      settle!(Exit.void)
    }
  }

  #next(versions: Map<string, number>, account: string): number {
    const version = (versions.get(account) ?? 0) + 1
    versions.set(account, version)
    return version
  }
}

describe("the lanes of flushes", () => {
  it.prop(
    "append and answer each account's records once and in order, and leave few of each account in an ordinary flush",
    { seed: Seed },
    ({ seed }) => {
      const random = new Random(seed)
      const world = new World()
      const { bulk, ordinary } = world.lanes
      const accounts = Array.from({ length: random.integer(1, 30) }, (_, i) => `mer_${i}:test`)
      const burst = random.pick([5, 100, 700])
      const steps: ReadonlyArray<() => void> = [
        () => {
          const account = random.pick(accounts)
          const bytes = random.chance(0.02) ? 2_000_000 : 10
          for (let i = random.integer(1, 3); i > 0; i--) world.push(account, bytes)
        },
        () => {
          const account = random.pick(accounts.slice(0, 3))
          for (let i = random.integer(1, burst); i > 0; i--) world.push(account)
        },
        () => void world.begin(ordinary),
        () => void world.begin(bulk),
        () => world.end(ordinary),
        () => world.end(bulk),
        () => world.answer(random.integer(1, 64)),
        () => void (world.now += random.integer(0, 60))
      ]
      for (let i = 0; i < 400; i++) random.pick(steps)()
      world.end(ordinary)
      world.end(bulk)
      world.finish()
    },
    { arbitrary: { runs: 60 } }
  )

  it("lets a small account wait for no flush of a flood", () => {
    const world = new World()
    const { bulk, ordinary } = world.lanes
    for (let i = 0; i < 2000; i++) world.push(FLOOD)
    world.begin(ordinary)
    for (let i = 0; i < 10; i++) {
      assert.lengthOf(world.begin(bulk), FLUSH_MAX)
      const quiet = world.push(QUIET)
      for (let i = 0; i < FLUSH_MAX; i++) world.push(FLOOD)
      assert.deepStrictEqual(world.begin(ordinary), [quiet])
      world.end(ordinary)
      assert.isNull(quiet.settle)
      world.end(bulk)
      world.answer(100)
    }
    world.finish()
  })

  it("takes an account with few records back after a while, once all its records are answered", () => {
    const world = new World()
    const { bulk, ordinary } = world.lanes
    for (let i = 0; i < 100; i++) world.push(FLOOD)
    assert.isEmpty(world.begin(ordinary))
    assert.lengthOf(world.begin(bulk), 100)
    world.end(bulk)
    world.now += BULK_MILLIS
    const second = world.push(FLOOD)
    assert.deepStrictEqual(world.begin(bulk), [second])
    world.end(bulk)
    world.now += 1
    const third = world.push(FLOOD)
    // The answers to the first hundred are still on their way.
    assert.deepStrictEqual(world.begin(bulk), [third])
    world.end(bulk)
    world.answer(Infinity)
    const last = world.push(FLOOD)
    assert.isEmpty(world.begin(bulk))
    assert.deepStrictEqual(world.begin(ordinary), [last])
    world.end(ordinary)
    world.finish()
  })

  it("keeps an account in the bulk lane whose records have become many during a long flush of another", () => {
    const world = new World()
    const { bulk, ordinary } = world.lanes
    const other = "mer_other:test"
    for (let i = 0; i < 100; i++) for (const account of [FLOOD, other]) world.push(account)
    world.begin(ordinary)
    world.begin(bulk)
    world.end(bulk)
    world.answer(Infinity)
    world.push(FLOOD)
    assert.lengthOf(world.begin(bulk), 1)
    for (let i = 0; i < 100; i++) world.push(other)
    world.now += BULK_MILLIS + 1
    assert.isEmpty(world.begin(ordinary))
    world.end(bulk)
    world.answer(Infinity)
    assert.lengthOf(world.begin(bulk), 100)
    world.end(bulk)
    world.finish()
  })

  it("starts an ordinary flush with the first record beside a flood, and gathers records after it", () => {
    const world = new World()
    const { bulk, ordinary } = world.lanes
    for (let i = 0; i < 30; i++) world.push(QUIET)
    assert.lengthOf(world.begin(ordinary), 30)
    for (let i = 0; i < 100; i++) world.push(FLOOD)
    world.end(ordinary)
    assert.isEmpty(world.begin(ordinary))
    world.begin(bulk)
    world.push(QUIET)
    assert.isTrue(world.lanes.hasEnough(ordinary))
    world.end(bulk)
    world.answer(Infinity)
    world.now += BULK_MILLIS + 1
    assert.lengthOf(world.begin(ordinary), 1)
    for (let i = 0; i < 60; i++) world.push(QUIET)
    world.end(ordinary)
    assert.lengthOf(world.begin(ordinary), 60)
    world.end(ordinary)
    world.push(QUIET)
    assert.isFalse(world.lanes.hasEnough(ordinary))
    world.finish()
  })
})
