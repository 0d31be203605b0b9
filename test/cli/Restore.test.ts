import { assert, describe, it } from "@effect/vitest"
import { timeFrom } from "../../src/cli/Time.ts"

describe("the time to restore up to", () => {
  it.each([
    ["2026-11-24T22:00:00Z", 1_795_557_600_000],
    ["2026-11-24T22:00Z", 1_795_557_600_000],
    ["2026-11-24T23:00:00.250+01:00", 1_795_557_600_250],
    ["1795557600", 1_795_557_600_000],
    ["1795557600.25", 1_795_557_600_250]
  ])("is read from %s", (text, millis) => {
    assert.strictEqual(timeFrom(text), millis)
  })

  // Without a zone, the time would depend on the machine; milliseconds would be read as seconds.
  it.each(["", "yesterday", "2026-11-24", "2026-11-24T22:00:00", "2026-13-24T22:00:00Z", "1795557600000", "-1", "1e9"])(
    "is not guessed from %j",
    (text) => {
      assert.isUndefined(timeFrom(text))
    }
  )
})
