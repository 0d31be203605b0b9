/** The output of a run with failures: for each failed test the command that runs it again. */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as Path from "node:path"
import { stripVTControlCharacters } from "node:util"

const FAILING = Path.join(import.meta.dirname, "failing")
const VITEST = Path.resolve(import.meta.dirname, "../../node_modules/vitest/vitest.mjs")
const RUN = `'${process.execPath}' '${VITEST}' run --config '${FAILING}/vitest.config.ts'`

/** Runs a shell command without the variables of this run of tests. */
const outputOf = (command: string): string => {
  const { TILL_REPLAY: _, TILL_SEED: __, TILL_TESTS: ___, VITEST: ____, ...env } = process.env
  const { stderr, stdout } = spawnSync(command, {
    cwd: Path.resolve(FAILING, "../../.."),
    encoding: "utf8",
    env,
    shell: true
  })
  return stripVTControlCharacters(`${stdout}${stderr}`)
}

const commandsIn = (output: string): ReadonlyArray<string> => output.split("\n").filter((line) => / -t '/.test(line))

describe("a run with tests that fail", () => {
  const output = outputOf(RUN)

  it("prints the tests that it has run, and the seed", () => {
    assert.match(output, /^unit +1 file, 3 tests, \d+ runs of properties, \d+ s of CPU$/m)
    assert.strictEqual(output.match(/^TILL_SEED=\d+$/gm)?.length, 2)
  })

  it("prints a command for each, which runs that test alone and fails in the same way", () => {
    const commands = commandsIn(output)
    assert.strictEqual(commands.length, 2)
    for (const command of commands) {
      const again = outputOf(command.replace("npm test -- test/support/failing/Failing.ts", RUN))
      assert.deepStrictEqual(commandsIn(again), [command])
    }
  })

  it("prints the error of each below its command", () => {
    const lines = output.split("\n")
    const errors = lines.flatMap((line, i) => (/ -t '/.test(line) ? [lines[i + 1]] : []))
    assert.lengthOf(errors, 2)
    const described = /^ {2}(?:Property falsified after \d|expected .*\(test\/.*\.ts:\d+\)$)/
    for (const error of errors) assert.match(error!, described)
  })

  it("has a property try its smallest case again, and no other", () => {
    const command = commandsIn(output).find((line) => line.includes("TILL_REPLAY="))!
    assert.match(
      outputOf(command.replace("npm test -- test/support/failing/Failing.ts", RUN)),
      /, [1-9] runs? of properties/
    )
  })
})
