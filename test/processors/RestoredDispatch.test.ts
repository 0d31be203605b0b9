/**
 * The dispatcher of a restored installation (semantics processors.restored, processors.reconcile): an operation of the
 * restored state is asked about, and is neither sent again nor given up before the reconciliation.
 */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import type { Operation } from "../../src/domain/Operation.ts"
import type { Document } from "../../src/engine/log/Document.ts"
import { Placement } from "../../src/engine/process/Placement.ts"
import * as Harness from "../engine/Harness.ts"
import { type Fault, PROCESSOR, VirtualProcessor } from "../models/Operations.ts"
import { start } from "../sim/Process.ts"
import { begin, type Made } from "../support/fixtures/Operations.ts"

const DAY = 86_400_000
const STEP = { processor: PROCESSOR, since: 0, after: null } as const

/** Begins a payment whose call is lost, ends the process, and starts another one that was restored. */
const restored = Effect.gen(function* () {
  yield* Harness.startClock
  const flowing = yield* Effect.forkChild(Harness.flowing)
  const storage = yield* Harness.storageInMemory
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const calls: Array<string> = []
  const state = { fault: (call: string): Fault => (call === "perform" ? "request lost" : "none") }
  const virtual = new VirtualProcessor({
    fault: (call) => {
      calls.push(call)
      return state.fault(call)
    },
    lateness: () => 0
  })
  const remote = { ...virtual.remote, onlyLooks: false }
  const processors = () => virtual.processorsOf(remote)
  const launch = () =>
    start(storage, now, () => Effect.void, { placement: Placement.layerSole, gate: Effect.void, processors })
  const before = yield* launch()
  const { merchantId } = yield* before.merchant
  const account = `${merchantId}:test`
  const made: Made = yield* Effect.promise(() => begin({ accounts: before.accounts, merchantId }))
  yield* Effect.sleep(30)
  yield* before.stop
  yield* Fiber.interrupt(flowing)
  remote.onlyLooks = true
  calls.length = 0
  const after = yield* launch()
  const operation = Effect.map(
    Effect.orDie(after.accounts.read(account, made.operation)),
    (found) => (found as Document<Operation>).value
  )
  return { account, after, calls, operation, state }
})

/** Compares a part, while time passes. */
const reconciled = Effect.fnUntraced(function* (
  { account, after }: Effect.Success<typeof restored>,
  part: "decide" | "unresolved"
) {
  const comparing = yield* Effect.forkChild(Effect.orDie(after.reconcile(account, { ...STEP, part })))
  yield* Harness.pass(1000, 100)
  return yield* Fiber.join(comparing)
})

describe("processors.restored: an operation that was open", () => {
  it.effect("is only asked about, and left to a person after a day; the reconciliation gives it up", () =>
    Effect.gen(function* () {
      const scene = yield* restored
      const { after, calls, operation } = scene
      yield* Harness.pass(60_000, 1000)
      assert.strictEqual((yield* operation).status, "unresolved")
      yield* Harness.pass(DAY, 600_000)
      assert.strictEqual((yield* operation).status, "decide")
      assert.deepStrictEqual([...new Set(calls)], ["look"])
      assert.isAbove(calls.length, 10)
      const page = yield* reconciled(scene, "decide")
      assert.deepStrictEqual(page, { compared: 1, discrepancies: [], next: null })
      assert.deepInclude(yield* operation, { status: "final", resolved_by: "look" })
      assert.deepStrictEqual(calls.slice(-2), ["look", "fence"])
      yield* after.stop
    })
  )

  it.effect("stays as it is if the processor gives no word to the reconciliation", () =>
    Effect.gen(function* () {
      const scene = yield* restored
      const { after, calls, operation, state } = scene
      yield* Harness.pass(60_000, 1000)
      state.fault = () => "request lost"
      const { discrepancies } = yield* reconciled(scene, "unresolved")
      assert.deepStrictEqual(
        discrepancies.map(({ result }) => result),
        ["unanswered"]
      )
      assert.strictEqual((yield* operation).status, "unresolved")
      assert.notInclude(calls, "fence")
      yield* after.stop
    })
  )
})
