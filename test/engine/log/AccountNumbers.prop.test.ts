/**
 * Ids that lead to their accounts: any generated id of any account is found, after any events; a made-up id leads to no
 * account; and without the key, ids show neither their account nor that two belong to the same account.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Schema } from "effect"
import { Unavailable } from "../../../src/engine/Accounts.ts"
import type { AccountNumbersShape } from "../../../src/engine/log/AccountNumbers.ts"
import { nextSequence } from "../../../src/engine/log/Identifiers.ts"
import { StorageFailure } from "../../../src/engine/log/Journal.ts"
import { Views } from "../../../src/engine/views/Views.ts"
import type { EngineOptions, RunningEngine, Storage } from "../Harness.ts"
import * as Harness from "../Harness.ts"
import { Random, Seed } from "../../support/Random.ts"
import * as Toy from "../Toy.ts"

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const SPACE = 62 ** 4

const numbers = Harness.numbersUnder("a key")

/** Generates ids of one account, one after the other. */
const idsOf = (account: string, count: number, { idOf, of }: AccountNumbersShape = numbers): ReadonlyArray<string> => {
  let sequence = 0
  const number = of(account)
  return Array.from({ length: count }, () => idOf("ctr", (sequence = nextSequence(sequence, Harness.START)), number))
}

/** Returns the last four characters as a number. */
const tailOf = (id: string): number =>
  Array.from(id.slice(-4)).reduce((sum, one) => sum * 62 + ALPHABET.indexOf(one), 0)

/**
 * Returns about how far counts are from even, in standard deviations of the chi-square distribution. Even ones exceed 8
 * less than once in 10¹² times.
 */
const unevenness = (values: ReadonlyArray<number>, classes: number): number => {
  const counts = Array.from({ length: classes }, () => 0)
  for (const value of values) counts[value]!++
  const expected = values.length / classes
  const chiSquare = counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
  return (chiSquare - (classes - 1)) / Math.sqrt(2 * (classes - 1))
}

describe("an id that carries its account's number", () => {
  it.effect.prop(
    "has the form of all others, ascends, is unique, and shows the number to a reader with the key",
    { account: Schema.String },
    ({ account }) =>
      Effect.sync(() => {
        const ids = idsOf(account, 200)
        for (const id of ids) {
          assert.match(id, /^ctr_[0-9A-Za-z]{24}$/)
          assert.strictEqual(numbers.numberIn(id), numbers.of(account))
        }
        assert.deepStrictEqual(ids.toSorted(), ids)
        assert.strictEqual(new Set(ids.map((id) => id.slice(-15))).size, ids.length)
        assert.strictEqual(Harness.numbersUnder("a key").of(account), numbers.of(account))
      })
  )

  it("is of a kind that is found by its id, and of the form of an id", () => {
    const [id] = idsOf("mer_1:test", 1) as [string]
    const other = numbers.idOf("evt", 1, numbers.of("mer_1:test"))
    for (const text of [
      other,
      "",
      "ctr_",
      "ctr",
      id.slice(0, -1),
      `${id}0`,
      `x${id}`,
      ` ${id}`,
      `${id}\n`,
      "ctr_slot"
    ]) {
      assert.isUndefined(numbers.numberIn(text), text)
    }
  })

  it("looks random without the key, character by character and as a whole", () => {
    const ids = idsOf("mer_1:test", 62_000)
    for (let place = 1; place <= 4; place++) {
      const characters = ids.map((id) => ALPHABET.indexOf(id.at(-place)!))
      assert.isBelow(unevenness(characters, 62), 8, `place ${place}`)
    }
    assert.isBelow(
      unevenness(
        ids.map(tailOf).map((tail) => Math.floor((tail * 997) / SPACE)),
        997
      ),
      8
    )
  })

  it("does not show without the key that it belongs with another id", () => {
    // If the number showed through, the differences of an account's ids would not be even, as those of others are.
    const ids = idsOf("mer_1:test", 62_001)
    const differences = ids.slice(1).map((id, i) => (tailOf(id) - tailOf(ids[i]!) + SPACE) % SPACE)
    assert.isBelow(
      unevenness(
        differences.map((difference) => difference % 62),
        62
      ),
      8
    )
    assert.isBelow(
      unevenness(
        differences.map((difference) => Math.floor((difference * 997) / SPACE)),
        997
      ),
      8
    )
    const wrong = Harness.numbersUnder("another key")
    const guesses = ids.map((id) => wrong.numberIn(id)!)
    assert.isBelow(
      unevenness(
        guesses.map((guess) => Math.floor((guess * 997) / SPACE)),
        997
      ),
      8
    )
    assert.isAbove(new Set(guesses).size, ids.length * 0.98)
  })

  it("has a number that shows nothing of the account, and depends on the key", () => {
    const accounts = Array.from({ length: 62_000 }, (_, i) => `mer_${i}:test`)
    const own = accounts.map((account) => numbers.of(account)!)
    assert.isBelow(
      unevenness(
        own.map((number) => Math.floor((number * 997) / SPACE)),
        997
      ),
      8
    )
    assert.isAtLeast(Math.min(...own), 0)
    assert.isBelow(Math.max(...own), SPACE)
    const other = Harness.numbersUnder("another key")
    assert.isBelow(accounts.filter((account, i) => other.of(account) === own[i]).length, 5)
  })
})

/** Wraps storage so that it counts the calls of its views. */
const counting = (storage: Storage): { readonly storage: Storage; readonly asked: Map<string, number> } => {
  const asked = new Map<string, number>()
  const views = new Proxy(Harness.viewsOf(storage), {
    get: (target, name, receiver) => {
      asked.set(String(name), (asked.get(String(name)) ?? 0) + 1)
      return Reflect.get(target, name, receiver)
    }
  })
  return { storage: Context.add(storage, Views, views), asked }
}

const started = Effect.fnUntraced(function* (storage: Storage, options: EngineOptions = {}) {
  const engine = yield* Harness.startEngine(storage, options)
  yield* Effect.addFinalizer(() => engine.kill)
  return engine
})

const create = ({ accounts }: RunningEngine, account: string, slot: string = "a") =>
  accounts.run(account, Toy.create(slot, "plain"))

const COLLIDING: AccountNumbersShape = { ...numbers, of: () => 7 }

describe("the holder of a document", () => {
  it.effect.prop(
    "is found by the id through restarts, rebuilds and cold caches, even if accounts share a number",
    { seed: Seed },
    ({ seed }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const random = new Random(seed)
          yield* Harness.startClock
          const storage = yield* Harness.storageInMemory
          const options = random.chance(0.3) ? { numbers: COLLIDING } : {}
          const holders = new Map<string, string>()
          let engine = yield* started(storage, options)
          const restart = Effect.gen(function* () {
            yield* random.chance(0.5) ? engine.stop : engine.kill
            engine = yield* started(storage, options)
          })
          for (let step = 0; step < 30; step++) {
            const account = `mer_${random.below(8)}:test`
            const slot = `${step}`
            switch (random.below(6)) {
              case 0:
                yield* restart
                break
              case 1:
                yield* engine.stop
                yield* Harness.rebuilt(storage)
                engine = yield* started(storage, options)
                break
              default:
                holders.set((yield* create(engine, account, slot)).id, account)
            }
            for (const id of [...holders.keys()].filter(() => random.chance(0.2))) {
              assert.strictEqual(yield* engine.accounts.holder(id), holders.get(id))
            }
          }
          yield* restart
          for (const [id, account] of holders) assert.strictEqual(yield* engine.accounts.holder(id), account)
        })
      ),
    { arbitrary: { runs: 30 } }
  )

  it.effect("is found from the moment that the document is acknowledged, without reads once it is in memory", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      const { asked, storage } = counting(yield* Harness.storageInMemory)
      const engine = yield* started(storage)
      const { id } = yield* create(engine, "mer_1:test")
      yield* create(engine, "mer_2:test")
      assert.strictEqual(yield* engine.accounts.holder(id), "mer_1:test")
      asked.clear()
      for (let i = 0; i < 10; i++) assert.strictEqual(yield* engine.accounts.holder(id), "mer_1:test")
      assert.deepStrictEqual(
        [...asked.keys()].filter((name) => name !== "apply"),
        []
      )
    })
  )

  it.effect("is undefined for made-up ids, which activate no account and cost one look-up each", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      const { asked, storage } = counting(yield* Harness.storageInMemory)
      const first = yield* started(storage)
      const ids: Array<string> = []
      for (let i = 0; i < 20; i++) ids.push((yield* create(first, `mer_${i}:test`)).id)
      yield* first.stop
      const engine = yield* started(storage)
      yield* Harness.settled
      asked.clear()
      const forged = ids.flatMap((id) => {
        const [end] = id.slice(-1)
        return [
          id.slice(0, -1) + (end === "0" ? "1" : "0"),
          id.replace(/.{15}$/u, "000000000000000"),
          `evt${id.slice(3)}`
        ]
      })
      for (const id of [...forged, "ctr_000000000000000000000000", "", "%", "ctr_", "evt_1"]) {
        assert.isUndefined(yield* engine.accounts.holder(id), id)
      }
      // An id with an account's number by chance would read that account too: less than once in ten thousand runs.
      assert.deepStrictEqual([...asked.keys()].toSorted(), ["accountsNumbered"])
      assert.strictEqual(asked.get("accountsNumbered"), 41)
    })
  )

  it.effect("is found under a number that another process has stored", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      const storage = yield* Harness.storageInMemory
      const [one, two] = [
        yield* started(storage, { numbers: COLLIDING }),
        yield* started(storage, { numbers: COLLIDING })
      ]
      const first = yield* create(one, "mer_1:test")
      assert.strictEqual(yield* one.accounts.holder(first.id), "mer_1:test")
      const second = yield* create(two, "mer_2:test")
      yield* two.projector.drained
      assert.strictEqual(yield* one.accounts.holder(second.id), "mer_2:test")
    })
  )

  it.effect("is found when the account's views were created without its number, as by a restore", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      const storage = yield* Harness.storageInMemory
      const views = Harness.viewsOf(storage)
      const first = yield* started(Context.add(storage, Views, { ...views, keepNumber: () => Effect.void }))
      const ids = new Map<string, string>()
      for (let i = 0; i < 5; i++) ids.set((yield* create(first, `mer_${i}:test`)).id, `mer_${i}:test`)
      yield* first.stop
      assert.lengthOf(yield* views.accountsUnnumbered(100), 5)
      const engine = yield* started(storage)
      yield* Harness.settled
      assert.lengthOf(yield* views.accountsUnnumbered(100), 0)
      for (const [id, account] of ids) assert.strictEqual(yield* engine.accounts.holder(id), account)
    })
  )

  it.effect("is found when its actor has ended and the views lack the document", () =>
    Effect.gen(function* () {
      let failing = false
      yield* Harness.startClock
      const engine = yield* started(yield* Harness.storageInMemory, {
        faults: (point) =>
          failing && point === "append.after" ? Effect.fail(new StorageFailure({ cause: "lost" })) : Effect.void
      })
      const { id } = yield* create(engine, "mer_1:test")
      failing = true
      assert.instanceOf(yield* Effect.flip(create(engine, "mer_1:test", "b")), Unavailable)
      assert.strictEqual(yield* engine.accounts.holder(id), "mer_1:test")
    })
  )

  it.effect("is unavailable, not undefined, if the storage fails", () =>
    Effect.gen(function* () {
      yield* Harness.startClock
      const engine = yield* started(yield* Harness.storageInMemory, {
        faults: (point) => (point === "read" ? Effect.fail(new StorageFailure({ cause: "lost" })) : Effect.void)
      })
      assert.instanceOf(yield* Effect.flip(engine.accounts.holder(idsOf("mer_1:test", 1)[0]!)), Unavailable)
    })
  )
})
