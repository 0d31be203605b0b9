/** What documents are said to weigh in memory covers what they take there, and is no more than twice as much. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import * as Path from "node:path"
import type { Measured } from "./WeightsProcess.ts"

const PROGRAM = Path.join(import.meta.dirname, "WeightsProcess.ts")

describe("a document's weight", () => {
  it("covers documents, whatever they are like", () => {
    const output = execFileSync(process.execPath, ["--expose-gc", PROGRAM], { encoding: "utf8" })
    const measured = JSON.parse(output) as ReadonlyArray<Measured>
    assert.lengthOf(measured, 4)
    for (const { taken, weight, what } of measured) {
      assert.isAtMost(taken, 1.1 * weight, what)
      assert.isAtLeast(taken, weight / 2.5, what)
    }
  })
})
