/** Under a fault, no cause has two lines in the log within a second (semantics operation.log_levels). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, References } from "effect"
import { StorageFailure } from "../../src/engine/log/Journal.ts"
import * as Log from "../../src/engine/process/Log.ts"
import type * as Faults from "../engine/storage/Faults.ts"
import { start } from "../support/MemoryTill.ts"
import { Random, runSeed } from "../support/Random.ts"

/** How long requests meet the fault. */
const FAULT_MILLIS = 2500
const CLIENTS = 16

interface Line {
  readonly text: string
  readonly at: number
  readonly annotations: Readonly<Record<string, unknown>>
}

/** The line's text without what differs from one time to the next. */
const causeOf = ({ text }: Line): string => text.replaceAll(/\/\S*|[a-z]+_\w+(?::\w+)?|\d+/gu, "…")

describe("the log under a fault of the storage", () => {
  it("has no cause twice within a second, and counts what it leaves out", async () => {
    const random = new Random(runSeed)
    let isFaulty = false
    const faults: Faults.Faults = () =>
      isFaulty && random.chance(0.7) ? Effect.fail(new StorageFailure({ cause: "a fault" })) : Effect.void
    const lines: Array<Line> = []
    const logger = Logger.make(({ fiber, message }) => {
      const annotations = { ...fiber.getRef(References.CurrentLogAnnotations) }
      lines.push({ text: String(message), at: performance.now(), annotations })
    })
    const till = await start({ faults, clock: Layer.merge(Logger.layer([logger]), Log.layer()) })
    isFaulty = true
    const ends = performance.now() + FAULT_MILLIS
    let refused = 0
    const client = async () => {
      while (performance.now() < ends) {
        const { status } = await till.request("POST", "/v1/customers", { body: { name: "Zoë" } })
        if (status === 503) refused++
      }
    }
    await Promise.all(Array.from({ length: CLIENTS }, client))
    isFaulty = false
    await till.close()
    assert.isAbove(refused, 20)
    const latest = new Map<string, number>()
    for (const line of lines) {
      const cause = causeOf(line)
      // The logger runs a moment after the decision.
      assert.isAtLeast(line.at - (latest.get(cause) ?? -Infinity), Log.PAUSE_MILLIS - 50, cause)
      latest.set(cause, line.at)
    }
    const ofRequests = lines.filter(({ text }) => text.startsWith("POST "))
    assert.isAtLeast(ofRequests.length, 2)
    assert.isTrue(ofRequests.some(({ annotations }) => Number(annotations["unlogged_before"]) > 0))
    assert.isTrue(lines.every(({ annotations }) => typeof annotations["part"] === "string"))
  })
})
