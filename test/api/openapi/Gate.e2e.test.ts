/** `npm run check` compares today's contract with the last release's (spec: Versioning 6). */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import * as Path from "node:path"

describe("the gate", () => {
  it("accepts today's contract for the last release's callers", () => {
    const gate = Path.join(import.meta.dirname, "gate.ts")
    assert.strictEqual(execFileSync(process.execPath, [gate], { encoding: "utf8" }), "")
  })
})
