/**
 * Admission under random traffic of several accounts. Only work passes time, in the turns of an event loop: first
 * timers, then arriving requests, then steps deferred to the turn's end.
 */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Schema, Scope } from "effect"
import { Admission, AdmissionTime, laneAt, type Place } from "../../src/http/Admission.ts"
import { Random, Seed } from "../support/Random.ts"

/** The cost of reading, running and refusing a request, in milliseconds. */
const READ_MILLIS = 0.02
const WORK_MILLIS = 0.2
const REFUSE_MILLIS = 0.04

interface Asked {
  readonly account: string
  readonly isCommand: boolean
  readonly at: number
  isGone: boolean
  /** All requests, in the order in which they started or were refused. */
  begun?: { readonly at: number; readonly order: number }
  refused?: { readonly at: number; readonly order: number }
}

/** A service whose storage answers each command after a given time. */
class World {
  now = 0
  readonly asked: Array<Asked> = []
  readonly admission = Effect.runSync(
    Admission.make.pipe(
      Effect.provideService(AdmissionTime, {
        now: () => this.now,
        atTurnsEnd: (step) => void this.#atTurnsEnd.push(step)
      }),
      Effect.provideService(Clock.Clock, {
        ...Clock.Clock.defaultValue(),
        sleep: (duration) =>
          Effect.callback((resume) => this.at(this.now + Duration.toMillis(duration), () => resume(Effect.void)))
      }),
      Effect.provideService(Scope.Scope, Scope.makeUnsafe())
    )
  )
  /** Running commands by account. */
  readonly underWay = new Map<string, number>()
  underWayMost = 0
  longestTurn = 0
  #order = 0
  #atTurnsEnd: Array<() => void> = []
  #timers: Array<{ readonly at: number; readonly step: () => void }> = []
  readonly #storageMillis: (() => number) | undefined

  /** An undefined duration means a storage that never answers. */
  constructor(storageMillis: (() => number) | undefined) {
    this.#storageMillis = storageMillis
  }

  at(at: number, step: () => void): void {
    const place = this.#timers.findLastIndex((timer) => timer.at <= at)
    this.#timers.splice(place + 1, 0, { at, step })
  }

  /** Calls `next` after each answer, as a client that continues. */
  ask(account: string, isCommand: boolean, next: (answer: Asked) => void = () => {}): Asked {
    this.now += READ_MILLIS
    const asked: Asked = { account, isCommand, at: this.now, isGone: false }
    this.asked.push(asked)
    this.admission.enter(account, isCommand, {
      since: asked.at,
      get isGone() {
        return asked.isGone
      },
      start: (place) => this.#start(asked, place, next),
      refuse: () => {
        this.now += REFUSE_MILLIS
        assert.isUndefined(asked.begun ?? asked.refused)
        asked.refused = { at: this.now, order: this.#order++ }
        this.at(this.now, () => next(asked))
      }
    })
    return asked
  }

  #start(asked: Asked, place: Place | undefined, next: (answer: Asked) => void): void {
    assert.isUndefined(asked.begun ?? asked.refused)
    asked.begun = { at: this.now, order: this.#order++ }
    this.now += WORK_MILLIS
    assert.strictEqual(place !== undefined, asked.isCommand)
    if (place === undefined) return this.at(this.now, () => next(asked))
    this.#count(asked.account, 1)
    if (this.#storageMillis === undefined) return
    this.at(this.now + this.#storageMillis(), () => {
      this.#count(asked.account, -1)
      this.admission.leave(place, true)
      next(asked)
    })
  }

  #count(account: string, by: number): void {
    this.underWay.set(account, (this.underWay.get(account) ?? 0) + by)
    this.underWayMost = Math.max(
      this.underWayMost,
      [...this.underWay.values()].reduce((sum, count) => sum + count, 0)
    )
  }

  /** Runs the event loop until the given time, or until nothing is left to do. */
  run(until: number): void {
    while (this.now < until) {
      if (this.#atTurnsEnd.length === 0) {
        const [next] = this.#timers
        if (next === undefined) return
        this.now = Math.max(this.now, next.at)
      }
      const due = this.#timers.findLastIndex(({ at }) => at <= this.now) + 1
      for (const { step } of this.#timers.splice(0, due)) step()
      const started = this.now
      for (const step of this.#atTurnsEnd.splice(0)) step()
      this.longestTurn = Math.max(this.longestTurn, this.now - started)
    }
  }
}

const FLOOD = "mer_flood:test"
const QUIET = "mer_quiet:test"

/** Clients that send another request after each answer, also after a refusal, until the given time. */
const flood = (world: World, clients: number, until: number, isCommand: boolean = true): void => {
  const again = (): void => {
    if (world.now < until) world.ask(FLOOD, isCommand, again)
  }
  world.at(0, () => {
    for (let i = 0; i < clients; i++) again()
  })
}

const isOf =
  (account: string) =>
  (asked: Asked): boolean =>
    asked.account === account

describe("admission", () => {
  it.prop(
    "starts or refuses each request once, in its account's order, in bounded turns, and starts none that is too old",
    { seed: Seed },
    ({ seed }) => {
      const random = new Random(seed)
      const accounts = Array.from({ length: random.integer(1, 5) }, (_, i) => `mer_${i}:test`)
      const slowness = random.pick([1, 20, 200, 2000])
      const world = new World(() => random.integer(1, slowness))
      for (let i = 0; i < 1500; i++) {
        const account = random.pick(accounts)
        const isCommand = random.chance(0.7)
        const goesAway = random.chance(0.1)
        world.at(random.below(random.pick([1, 500, 3000])), () => {
          const asked = world.ask(account, isCommand)
          if (goesAway) world.at(world.now + random.below(100), () => (asked.isGone = true))
        })
      }
      world.run(Infinity)
      assert.lengthOf(world.asked, 1500)
      for (const { at, begun, isGone, refused } of world.asked) {
        if (!isGone) assert.isTrue((begun === undefined) !== (refused === undefined))
        // The request was checked in the turn in which it started.
        if (begun !== undefined) assert.isAtMost(begun.at - at, 1000 + 2)
      }
      for (const account of accounts) {
        for (const isCommand of [true, false]) {
          const orders = world.asked
            .filter((asked) => asked.account === account && asked.isCommand === isCommand)
            .flatMap(({ begun }) => begun?.order ?? [])
          assert.deepStrictEqual(
            orders,
            orders.toSorted((a, b) => a - b)
          )
        }
      }
      // Started requests, and refused ones.
      assert.isAtMost(world.longestTurn, 2 + WORK_MILLIS + 40 * REFUSE_MILLIS)
      assert.isAtMost(world.underWayMost, 1024 + 8 * accounts.length)
      assert.isTrue([...world.underWay.values()].every((count) => count === 0))
    },
    { arbitrary: { runs: 30 } }
  )

  it("does the same work under a flood of any size, with a bounded delay, and refuses the rest", () => {
    const begunWith = (clients: number) => {
      const world = new World(() => 3)
      flood(world, clients, 5000)
      world.run(5000)
      const begun = world.asked.filter((asked) => asked.begun !== undefined)
      const delays = begun.filter(({ at }) => at > 1000).map(({ at, begun }) => begun!.at - at)
      assert.isAtMost(Math.max(...delays), 700)
      // At the beginning, reading the requests of thousands of clients takes time.
      return begun.filter(({ begun }) => begun!.at > 500).length
    }
    const peak = begunWith(64)
    for (const clients of [1000, 5000, 10_000]) assert.isAtLeast(begunWith(clients), 0.9 * peak)
  })

  it("starts a neighbour's requests within two turns of a flood, and refuses none of them", () => {
    for (const [storageMillis, isCommand] of [
      [3, true],
      [3, false],
      [300, true]
    ] as const) {
      const world = new World(() => storageMillis)
      flood(world, 10_000, 5000, isCommand)
      for (let at = 1000; at < 5000; at += 50) world.at(at, () => void world.ask(QUIET, true))
      world.run(5000)
      const quiet = world.asked.filter(isOf(QUIET))
      assert.lengthOf(quiet, 80)
      for (const { at, begun, refused } of quiet.slice(0, -1)) {
        assert.isUndefined(refused)
        assert.isAtMost(begun!.at - at, 10)
      }
    }
  })

  it("refuses the rest of a flood within a second, and starts later requests immediately", () => {
    const world = new World(() => 3)
    flood(world, 10_000, 3000)
    world.at(3900, () => void world.ask(FLOOD, true))
    world.run(Infinity)
    for (const { begun, refused } of world.asked.slice(0, -1)) assert.isAtMost((begun ?? refused)!.at, 3000 + 1000)
    const last = world.asked.at(-1)!
    assert.isAtMost(last.begun!.at - last.at, 10)
  })

  it("runs no more commands than a slow storage completes in a second", () => {
    // Batches of this size, one after the other.
    let free = 0
    const world: World = new World(() => {
      free = Math.max(free, world.now) + 5
      return free - world.now
    })
    flood(world, 3000, 10_000)
    world.run(10_000)
    const late = world.asked.filter(({ at, begun }) => begun !== undefined && at > 5000)
    assert.isAbove(late.length, 5000 / 5 / 2)
    assert.isAtMost(world.underWay.get(FLOOD)!, 250)
  })

  it("refuses commands behind a storage that never answers, and runs requests that need no storage", () => {
    const world = new World(undefined)
    flood(world, 2000, 5000)
    for (let at = 0; at < 5000; at += 50) world.at(at, () => void world.ask(FLOOD, false))
    world.run(10_000)
    const commands = world.asked.filter(({ isCommand }) => isCommand)
    assert.lengthOf(
      commands.filter(({ begun }) => begun !== undefined),
      1024
    )
    for (const { begun, refused } of commands) assert.isDefined(begun ?? refused)
    for (const { at, begun, isCommand } of world.asked) if (!isCommand) assert.isAtMost(begun!.at - at, 50)
  })

  it("refuses all waiting requests when the service stops", () => {
    const world = new World(undefined)
    flood(world, 3000, 100)
    world.run(100)
    world.admission.close()
    assert.isTrue(world.asked.every(({ begun, refused }) => (begun ?? refused) !== undefined))
  })

  it.prop(
    "gives one lane to all addresses of an IPv6 host, and another to its neighbour",
    { host: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0xffff_ffff })) },
    ({ host }) => {
      const low = `${(host >>> 16).toString(16)}:${(host & 0xffff).toString(16)}`
      assert.strictEqual(laneAt(`2001:db8:0:1::${low}`), laneAt("2001:db8:0:1::1"))
      assert.strictEqual(laneAt(`2001:db8:0:1:${low}:0:0`), laneAt("2001:db8:0:1::1"))
      assert.notStrictEqual(laneAt(`2001:db8:0:2::${low}`), laneAt("2001:db8:0:1::1"))
      assert.strictEqual(laneAt("::ffff:192.0.2.1"), laneAt("192.0.2.1"))
    }
  )
})
