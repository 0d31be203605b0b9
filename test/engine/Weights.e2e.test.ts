/** The weight of documents is at least the memory that they use, and at most twice that. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import * as Path from "node:path"
import type { Measured } from "./WeightsProcess.ts"

const PROGRAM = Path.join(import.meta.dirname, "WeightsProcess.ts")

describe("a document's weight", () => {
  it("covers all shapes of documents", () => {
    const output = execFileSync(process.execPath, ["--expose-gc", PROGRAM], { encoding: "utf8" })
    const measured = JSON.parse(output) as ReadonlyArray<Measured>
    assert.lengthOf(measured, 4)
    for (const { taken, weight, what } of measured) {
      assert.isAtMost(taken, 1.1 * weight, what)
      assert.isAtLeast(taken, weight / 2.5, what)
    }
  })
})
