/** The progress of `till verify` and `till rebuild`. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { lineOf, withProgress } from "../../src/cli/ProgressLine.ts"
import { Progress } from "../../src/engine/process/Progress.ts"

/** Works on records, a thousand each second. */
const work = Effect.fnUntraced(function* (records: number) {
  const progress = yield* Progress
  progress.begin(records)
  for (let done = 0; done < records; done += 1000) {
    yield* Effect.sleep("1 second")
    progress.advance(1000)
  }
  return "done"
})

/** Returns the texts that are written during the work. */
const written = Effect.fnUntraced(function* (records: number, isTTY: boolean) {
  const texts: Array<string> = []
  const fiber = yield* Effect.forkChild(withProgress(work(records), { isTTY, write: (text) => texts.push(text) }))
  for (let done = 0; done < records; done += 1000) yield* TestClock.adjust("1 second")
  assert.strictEqual(yield* Fiber.join(fiber), "done")
  return texts
})

describe("the progress line", () => {
  it("shows the records done, the rate and the time left", () => {
    assert.strictEqual(lineOf(250_001, 0, 500), "0 of 250,001 records (0 %)")
    assert.strictEqual(
      lineOf(250_001, 134_000.5, 10_000),
      "134,000 of 250,001 records (53 %), 13,400 records/s, 9 s left"
    )
    assert.include(lineOf(10_000_000, 1_000_000, 10_000), ", 1 min 30 s left")
    assert.include(lineOf(100_000_000, 1_000_000, 100_000), ", 2 h 45 min left")
    assert.include(lineOf(2000, 2000, 3000), "(100 %), 667 records/s, 0 s left")
  })

  it.effect("is a line every ten seconds in a file", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* written(9000, false), [])
      assert.deepStrictEqual(yield* written(25_000, false), [
        "9,000 of 25,000 records (36 %), 900 records/s, 18 s left\n",
        "19,000 of 25,000 records (76 %), 950 records/s, 7 s left\n"
      ])
    })
  )

  it.effect("is one line on a terminal, and erased at the end", () =>
    Effect.gen(function* () {
      const texts = yield* written(3000, true)
      assert.isAtLeast(texts.length, 5)
      for (const text of texts) assert.isTrue(text.startsWith("\r\u001b[K") && !text.includes("\n"), text)
      assert.include(texts, "\r\u001b[K1,000 of 3,000 records (33 %), 667 records/s, 3 s left")
      assert.strictEqual(texts.at(-1), "\r\u001b[K")
    })
  )
})
