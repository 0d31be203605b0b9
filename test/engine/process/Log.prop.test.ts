/**
 * The log: no cause has two lines within its pause, and no occurrence is lost without a count.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, type LogLevel, References } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { LOG_PARTS } from "../../../src/config.ts"
import * as Log from "../../../src/engine/process/Log.ts"
import { Writing } from "../../../src/engine/process/Writing.ts"
import { Random, Seed } from "../../support/Random.ts"

const SOURCE = Path.join(import.meta.dirname, "../../../src")

interface Line {
  readonly text: string
  readonly annotations: Readonly<Record<string, unknown>>
}

/** Runs an effect with the log's policy; returns the lines. */
const linesOf = (
  effect: Effect.Effect<unknown>,
  policy: Layer.Layer<never> = Log.layer(),
  level: LogLevel.LogLevel = "Info"
) => {
  const lines: Array<Line> = []
  const logger = Logger.make(({ fiber, message }) => {
    const annotations = fiber.getRef(References.CurrentLogAnnotations)
    lines.push({ text: String(message), annotations: { ...annotations } })
  })
  const layer = Layer.mergeAll(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, level), policy)
  return Effect.as(Effect.provide(effect, layer), lines)
}

const log = Log.logOf("engine")

describe("the throttle of the log", () => {
  it.prop("writes no cause twice within its pause, and counts what it leaves out", [Seed], ([seed]) => {
    const random = new Random(seed)
    const throttle = new Log.Throttle()
    const pauses = Array.from({ length: 1 + random.below(20) }, () => 1 + random.below(3000))
    const writtenAt = new Map<number, number>()
    const taken = pauses.map(() => 0)
    const told = pauses.map(() => 0)
    let now = random.below(1000)
    for (let i = 0; i < 500; i++) {
      now += random.below(200)
      const cause = random.below(pauses.length)
      taken[cause]!++
      const unlogged = throttle.take(`cause ${cause}`, pauses[cause]!, now)
      if (unlogged === undefined) continue
      assert.isAtLeast(now - (writtenAt.get(cause) ?? -Infinity), pauses[cause]!)
      writtenAt.set(cause, now)
      told[cause]! += 1 + unlogged
      assert.strictEqual(told[cause], taken[cause], "a line tells of all before it")
    }
  })

  it("remembers a bounded number of causes, and never writes one twice in a second because of that", () => {
    const throttle = new Log.Throttle()
    for (let i = 0; i < 5000; i++) assert.strictEqual(throttle.take(`cause ${i}`, 1000, i * 2), 0)
    assert.isUndefined(throttle.take("cause 4999", 1000, 10_000))
    assert.strictEqual(throttle.take("cause 4999", 1000, 10_998), 1)
  })
})

describe("the log", () => {
  it.effect("has one line for a cause, and its part", () =>
    Effect.gen(function* () {
      const flood = Effect.forEach([1, 2, 3], (i) =>
        Effect.andThen(log.error("It failed", `detail ${i}`), log.warning(`Text ${i}`, undefined, { cause: "text" }))
      )
      const lines = yield* linesOf(flood)
      assert.deepStrictEqual(lines, [
        { text: "It failed,detail 1", annotations: { part: "engine" } },
        { text: "Text 1", annotations: { part: "engine" } }
      ])
    })
  )

  it.effect("has every line of debugging, and all lines without a policy", () =>
    Effect.gen(function* () {
      const thrice = (line: Effect.Effect<void>) => Effect.andThen(line, Effect.andThen(line, line))
      assert.lengthOf(yield* linesOf(thrice(log.debug("A step")), Log.layer(), "Debug"), 3)
      assert.lengthOf(yield* linesOf(thrice(log.error("A failure")), Layer.empty), 3)
    })
  )

  it.effect("semantics operation.log_levels: a part's level replaces that of all parts", () =>
    Effect.gen(function* () {
      const policy = Log.layer(
        new Map([
          ["webhooks", "Debug"],
          ["engine", "Error"]
        ])
      )
      const all = (part: string) => {
        const { debug, error, info } = Log.logOf(part)
        return Effect.andThen(debug("debug"), Effect.andThen(info("info"), error("error")))
      }
      const textsOf = (part: string) => Effect.map(linesOf(all(part), policy), (lines) => lines.map(({ text }) => text))
      assert.deepStrictEqual(yield* textsOf("webhooks"), ["debug", "info", "error"])
      assert.deepStrictEqual(yield* textsOf("engine"), ["error"])
      assert.deepStrictEqual(yield* textsOf("http"), ["info", "error"])
    })
  )

  it.effect("has no line for a failed write while the storage refuses all", () =>
    Effect.gen(function* () {
      const lines = yield* linesOf(
        Effect.andThen(log.error("A flush failed", undefined, { isOfWrite: true }), log.error("A read failed")).pipe(
          Effect.provideService(Writing, { refusal: () => "The disk is full.", probe: Effect.succeed(undefined) })
        )
      )
      assert.deepStrictEqual(
        lines.map(({ text }) => text),
        ["A read failed"]
      )
    })
  )

  it.effect("makes no text for a line that a callback writes in a flood", () =>
    Effect.gen(function* () {
      let made = 0
      const lines = yield* linesOf(
        Effect.map(Effect.context<never>(), (context) => {
          for (let i = 0; i < 100; i++) {
            log.errorIn(context, { cause: "flood" }, () => {
              made++
              return { text: `failure ${i}` }
            })
          }
        })
      )
      assert.deepStrictEqual([made, lines.length], [1, 1])
    })
  )
})

describe("the sources", () => {
  const files = fs
    .readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.startsWith("client/") && file !== "engine/process/Log.ts")
  const sources = files.map((file) => ({ file, text: fs.readFileSync(Path.join(SOURCE, file), "utf8") }))

  it("write lines through the log alone, each part under its own name", () => {
    const parts = new Set<string>()
    for (const { file, text } of sources) {
      assert.notMatch(text, /\bEffect\.log(?:[A-Z]|\b)/, file)
      for (const [, part] of text.matchAll(/\blogOf\("(\w+)"\)/g)) {
        assert.strictEqual(part, file.replace(/(?:\/.*|\.ts)$/, ""), file)
        parts.add(part!)
      }
    }
    assert.deepStrictEqual([...parts].toSorted(), LOG_PARTS)
  })

  it("name the cause of each line whose text differs from time to time", () => {
    let count = 0
    for (const { file, text } of sources) {
      for (const [call] of text.matchAll(
        /\blog\.(?:debug|info|warning|error|fatal)\(\s*(?:`[^`]*\$\{|error\.)[\s\S]{0,400}/g
      )) {
        count++
        const end = /\n\s*\n|\n\}|;\n/.exec(call)?.index ?? call.length
        assert.include(call.slice(0, end), "cause: ", `${file}: ${call.slice(0, 80)}`)
      }
    }
    assert.isAtLeast(count, 10)
  })
})
