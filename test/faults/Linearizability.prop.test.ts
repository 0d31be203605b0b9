/** The search for an order of a history, compared with one that tries all orders. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Random, Seed } from "../support/Random.ts"
import { type Model, refute, type Timed } from "./Linearizability.ts"

type Op = { readonly f: "write"; readonly value: number } | { readonly f: "read"; readonly value: number | undefined }

const register: Model<number, Op> = {
  initial: 0,
  nameOf: String,
  step: (state, { f, value }) => {
    if (f === "write") return value
    return value === undefined || value === state ? state : undefined
  }
}

/** Returns operations that took effect one after the other, each within a known interval. */
const historyOf = (random: Random, length: number): Array<Timed<Op>> => {
  let state = 0
  return Array.from({ length }, (_, at): Timed<Op> => {
    const span = { call: at - random.next() * 3, return: at + random.next() * 3 }
    if (random.chance(0.5)) return { op: { f: "read", value: state }, ...span }
    state = random.integer(1, 3)
    // The outcome of some operations is unknown.
    return { op: { f: "write", value: state }, ...span, ...(random.chance(0.2) && { return: Infinity }) }
  })
}

const permutations = <A>(items: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  items.length === 0
    ? [[]]
    : items.flatMap((item, i) => permutations(items.toSpliced(i, 1)).map((rest) => [item, ...rest]))

const subsets = <A>(items: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  items.reduce<ReadonlyArray<ReadonlyArray<A>>>((all, item) => [...all, ...all.map((some) => [...some, item])], [[]])

const explains = (order: ReadonlyArray<Timed<Op>>): boolean => {
  let state: number | undefined = register.initial
  for (const { op } of order) {
    state = register.step(state, op)
    if (state === undefined) return false
  }
  return order.every((one, i) => order.slice(i + 1).every((later) => later.return >= one.call))
}

const isLinearizable = (history: ReadonlyArray<Timed<Op>>): boolean => {
  const open = history.filter((one) => one.return === Infinity)
  const known = history.filter((one) => one.return !== Infinity)
  return subsets(open).some((some) => permutations([...known, ...some]).some(explains))
}

describe("linearizability", () => {
  it.effect.prop("finds an order of every history that had one", { seed: Seed }, ({ seed }) =>
    Effect.sync(() => assert.isUndefined(refute(register, historyOf(new Random(seed), 40))))
  )

  it.effect.prop("agrees with trying all orders", { seed: Seed }, ({ seed }) =>
    Effect.sync(() => {
      const random = new Random(seed)
      const history = historyOf(random, 6)
      const at = random.below(history.length)
      const changed = history[at]!
      // Changes the value of a read or a write.
      history[at] = { ...changed, op: { ...changed.op, value: random.integer(0, 3) } }
      assert.strictEqual(refute(register, history) === undefined, isLinearizable(history))
    })
  )

  it("names the place of a lost write", () => {
    const history: ReadonlyArray<Timed<Op>> = [
      { op: { f: "write", value: 1 }, call: 0, return: 1 },
      { op: { f: "read", value: 1 }, call: 2, return: 3 },
      { op: { f: "write", value: 2 }, call: 4, return: 5 },
      { op: { f: "read", value: 1 }, call: 6, return: 7 }
    ]
    const refutation = refute(register, history)
    assert.deepStrictEqual(refutation?.stuck, [{ f: "read", value: 1 }])
    assert.strictEqual(refutation?.longest.length, 3)
  })
})
