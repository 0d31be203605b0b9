/** The rule about comments finds sentences without a subject, and lets plain ones pass. */
import { assert, describe, it } from "@effect/vitest"
import { problemsOf } from "./PlainComments.ts"

describe("the rule about comments", () => {
  it.each([
    "Returns the records of an account, oldest first.",
    "Chunks received for the current request. The last one may be empty.",
    "Ofcom and Whose-like words are no question words."
  ])("lets %s pass", (comment) => {
    assert.deepStrictEqual(problemsOf(comment), [])
  })

  it.each([
    ["What proves who somebody is counts for so long.", 2],
    ["So many pieces of a request have come.", 1],
    ["Of each group it has at least one.", 1],
    ["Nobody types it: it is what a process asks that starts.", 2],
    ["The lease ends. Those that waited go on.", 1],
    ["A heading\n\nWho asks is answered.", 1],
    ["It has changed meanwhile.", 1]
  ] as const)("finds %s", (comment, count) => {
    assert.lengthOf(problemsOf(comment), count)
  })
})
