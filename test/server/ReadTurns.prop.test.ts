/**
 * The turns of connections (semantics limits.turns) under random arrivals of several holders. Only work passes time:
 * first the connections with bytes are read, as many as there are, then the steps deferred to the turn's end run.
 */
import { assert, describe, it } from "@effect/vitest"
import { type Holder, ReadTurns } from "../../src/server/ReadTurns.ts"
import { Random, Seed } from "../support/Random.ts"

/** Requests of one holder that a turn takes as they arrive. */
const TAKEN_MAX = 64
/** The time budget for waiting connections, and the cost of a request, in milliseconds. */
const TURN_MILLIS = 1
const TAKE_MILLIS = 0.02

interface Asked {
  readonly holder: string
  readonly connection: number
  readonly turn: number
  /** Holders with a waiting connection, and waiting connections of the same holder, at the arrival. */
  readonly holdersWaiting: number
  readonly ahead: number
  takenInTurn?: number
  /** Requests of other holders taken at turns' ends during the wait. */
  others: number
}

class World {
  now = 0
  turn = 0
  longestStep = 0
  readonly asked: Array<Asked> = []
  readonly taken: Array<Asked> = []
  readonly waiting = new Set<Asked>()
  #isEnd = false
  #steps: Array<() => void> = []
  readonly turns = new ReadTurns({ now: () => this.now, atTurnsEnd: (step) => void this.#steps.push(step) })

  /** Lets a request arrive on a connection. Calls `then` when it is taken. */
  ask(holder: Holder, connection: number, then: () => void = () => {}): void {
    const asked: Asked = {
      holder: holder.name,
      connection,
      turn: this.turn,
      holdersWaiting: new Set([...this.waiting].map(({ holder }) => holder)).size,
      ahead: [...this.waiting].filter((one) => one.holder === holder.name).length,
      others: 0
    }
    this.asked.push(asked)
    this.waiting.add(asked)
    this.turns.enter(holder, {
      take: () => {
        assert.isTrue(this.waiting.delete(asked))
        asked.takenInTurn = this.turn
        this.taken.push(asked)
        this.now += TAKE_MILLIS
        if (this.#isEnd) for (const other of this.waiting) if (other.holder !== asked.holder) other.others++
        then()
      }
    })
  }

  /** Ends a turn of the event loop. */
  end(): void {
    this.#isEnd = true
    for (const step of this.#steps.splice(0)) {
      const began = this.now
      step()
      this.longestStep = Math.max(this.longestStep, this.now - began)
    }
    this.#isEnd = false
    this.turn++
  }

  finish(): void {
    while (this.waiting.size > 0) this.end()
    // The turn's own end.
    this.end()
  }
}

describe("the turns of connections", () => {
  it.prop(
    "take every request once, in its holder's order, few of a holder in a turn, and let none wait for a flood",
    { seed: Seed },
    ({ seed }) => {
      const random = new Random(seed)
      const world = new World()
      const names = Array.from({ length: random.integer(1, 8) }, (_, i) => `mer_${i}:test`)
      const holders = names.map((name) => Array.from({ length: 3 }, () => world.turns.hold(name))[0]!)
      const burst = random.pick([3, 70, 600])
      for (let turn = 0; turn < 60; turn++) {
        for (let i = random.integer(0, 4); i > 0; i--) {
          const holder = random.pick(holders)
          const connections = random.chance(0.2) ? random.integer(1, burst) : 1
          for (let i = 0; i < connections; i++) world.ask(holder, i)
        }
        const arrived = Map.groupBy(
          world.taken.filter(({ takenInTurn }) => takenInTurn === turn),
          ({ holder }) => holder
        )
        for (const taken of arrived.values()) assert.isAtMost(taken.length, TAKEN_MAX)
        world.end()
      }
      world.finish()
      assert.lengthOf(world.taken, world.asked.length)
      assert.isAtMost(world.longestStep, TURN_MILLIS + TAKE_MILLIS)
      for (const name of names) {
        const of = (list: ReadonlyArray<Asked>) => list.filter(({ holder }) => holder === name)
        assert.deepStrictEqual(of(world.taken), of(world.asked))
      }
      // Before each request of its own, a holder waits for one of every other holder.
      for (const { ahead, others } of world.asked) assert.isAtMost(others, (ahead + 1) * (names.length - 1))
      // A holder with a few requests per turn never waits.
      const perTurn = Map.groupBy(world.asked, ({ holder, turn }) => `${holder} ${turn}`)
      const isSmall = (name: string) =>
        [...perTurn].every(([key, { length }]) => !key.startsWith(`${name} `) || length <= TAKEN_MAX)
      for (const { holder, takenInTurn, turn } of world.asked)
        if (isSmall(holder)) assert.strictEqual(takenInTurn, turn)
    },
    { arbitrary: { runs: 100 } }
  )

  it("take other holders' requests as they arrive, in a flood of any size", () => {
    const world = new World()
    const flood = world.turns.hold("mer_flood:test")
    const quiet = world.turns.hold("mer_quiet:test")
    for (let i = 0; i < 10_000; i++) world.ask(flood, i)
    assert.lengthOf(world.taken, TAKEN_MAX)
    world.ask(quiet, 0)
    assert.strictEqual(world.taken.at(-1)!.holder, "mer_quiet:test")
    world.finish()
    assert.lengthOf(world.taken, 10_001)
  })

  it("take the connections of clients that send again at once in rotation", () => {
    const world = new World()
    const flood = world.turns.hold("mer_flood:test")
    const answered: Array<number> = Array.from({ length: 1000 }, (_, i) => i)
    while (world.taken.length < 20_000) {
      for (const connection of answered.splice(0)) world.ask(flood, connection, () => void answered.push(connection))
      world.end()
    }
    const order = world.taken.map(({ connection }) => connection)
    for (let i = 0; i + 1000 < order.length; i++) assert.strictEqual(order[i], order[i + 1000])
  })

  it("forget a holder with its last connection", () => {
    const world = new World()
    const holders = Array.from({ length: 50 }, (_, i) => world.turns.hold(`mer_${i % 5}:test`))
    assert.strictEqual(world.turns.size, 5)
    for (const [i, holder] of holders.entries()) world.ask(holder, i)
    for (const holder of holders) world.turns.release(holder)
    assert.strictEqual(world.turns.size, 0)
    world.finish()
    assert.lengthOf(world.taken, 50)
  })
})
