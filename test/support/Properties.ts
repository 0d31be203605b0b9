/**
 * `@effect/vitest` as the tests import it (an alias of vitest.config.ts). Its properties start from the seed of the
 * run, try as many cases as the kind of run requires, and repeat the one case of `TILL_REPLAY`, if it is set.
 */
import type { Vitest } from "@effect/vitest"
import type { Arbitrary } from "effect"
import type { TestOptions } from "vitest"
import * as EffectVitest from "../../node_modules/@effect/vitest/dist/index.js"
import { runSeed } from "./Random.ts"
import { countRuns, runs } from "./Runs.ts"

export * from "../../node_modules/@effect/vitest/dist/index.js"

/** Cases of a property that sets no number. */
const RUNS_DEFAULT = 100

type PropertyOptions = number | (TestOptions & { readonly arbitrary?: Arbitrary.CheckOptions })

const planned = (options: PropertyOptions = {}): PropertyOptions => {
  const given = typeof options === "number" ? { timeout: options } : options
  const replay = process.env["TILL_REPLAY"]
  const arbitrary = {
    seed: runSeed,
    ...given.arbitrary,
    runs: runs(given.arbitrary?.runs ?? RUNS_DEFAULT),
    ...(replay !== undefined && { replay })
  }
  return { ...given, arbitrary }
}

// oxlint-disable-next-line typescript/no-explicit-any -- any property of any values
type Property = (...values: Array<any>) => unknown

const counted =
  (property: Property): Property =>
  (...values) => {
    countRuns(1)
    return property(...values)
  }

/** Returns a function of the same type, with other arguments for the original. */
const withPlan = <F>(prop: F): F =>
  ((name: string, arbitraries: unknown, property: Property, options?: PropertyOptions) =>
    (prop as Property)(name, arbitraries, counted(property), planned(options))) as F

/** Returns an object that overrides some properties of another. */
const overlaid = <A extends object>(target: A, over: Partial<A>): A =>
  new Proxy(target, {
    get: (_, name) => Reflect.get(Object.hasOwn(over, name) ? over : target, name)
  })

const testerOf = <R>(tester: Vitest.Tester<R>): Vitest.Tester<R> => overlaid(tester, { prop: withPlan(tester.prop) })

export const it: Vitest.Methods = overlaid(EffectVitest.it, {
  effect: testerOf(EffectVitest.it.effect),
  live: testerOf(EffectVitest.it.live),
  prop: withPlan(EffectVitest.it.prop)
})
