import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as Path from "node:path"

/** Runs a program in a process of its own. */
const run = (program: string) => {
  const loop = Path.join(import.meta.dirname, "../../../src/engine/process/Loop.ts")
  const script = `
    import { Effect, Fiber } from "effect"
    import * as Loop from "${loop}"
    ${program}`
  return spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    cwd: import.meta.dirname,
    encoding: "utf8",
    timeout: 300_000
  })
}

describe("a loop", () => {
  it("that dies ends the process, with its name and the cause", () => {
    const { status, stderr } = run(`
      let steps = 0
      Effect.runFork(Loop.forever("counting", Effect.sync(() => { if (++steps === 3) throw new Error("three") })))
      setInterval(() => {}, 1000)`)
    assert.strictEqual(status, 1)
    assert.match(stderr, /Error: The counting has come to an end[^]*\[cause\]: Error: three/)
  })

  it("that dies before its first step ends the process too", () => {
    const { status, stderr } = run(`
      Effect.runFork(Loop.vital("counting", Effect.andThen(Effect.die("zero"), Effect.never)))
      setInterval(() => {}, 1000)`)
    assert.strictEqual(status, 1)
    assert.match(stderr, /Error: The counting has come to an end[^]*\[cause\]: 'zero'/)
  })

  it("that is interrupted ends without a message", () => {
    const { status, stderr } = run(`
      const fiber = Effect.runFork(Loop.forever("waiting", Effect.sleep(10)))
      setTimeout(() => Effect.runFork(Fiber.interrupt(fiber)), 50)`)
    assert.deepStrictEqual([status, stderr], [0, ""])
  })
})
