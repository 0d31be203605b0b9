/** Failing tests, for the test of the report. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"

describe("a report", () => {
  it('says it\'s 1 + 1 (and "why")', () => assert.strictEqual(1 + 1, Number("3")))
  it.prop("has a smallest case", [Schema.Array(Schema.Int)], ([numbers]) => numbers.length < 3)
  it("names no test that passes", () => assert.isTrue(true))
})
