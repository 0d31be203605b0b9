import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { bucketTerms, entryOf, termNumbers } from "../../../src/engine/log/Search.ts"

const ACCOUNT = "mer_1:test"
/** Few letters, so that terms repeat. */
const Term = Schema.String.check(Schema.isPattern(/^[ab]{0,4}$/))
const Measure = Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })))

describe("the search entry of a document", () => {
  it.prop(
    "has the number of each of its terms once, in ascending order",
    { terms: Schema.Array(Term), measure: Measure },
    ({ measure, terms }) => {
      const entry = entryOf(ACCOUNT, "payment_intent", { terms, measure })
      const ascending = [...new Set(entry.terms)].toSorted((a, b) => a - b)
      assert.deepStrictEqual(entry.terms, ascending)
      assert.strictEqual(entry.measure, measure)
      const has = (term: string) => entry.terms.includes(termNumbers(ACCOUNT, "payment_intent")(term))
      assert.isTrue(terms.every(has))
      assert.lengthOf(entry.terms, new Set(terms).size + (measure === null ? 0 : 2))
      if (measure !== null) assert.isTrue(bucketTerms({ from: measure, to: measure }).some(has))
    }
  )
})
