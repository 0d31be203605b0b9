/** A test of a kind that `npm test` runs cannot start a process, in whichever way. */
import { assert, describe, it } from "@effect/vitest"
import * as childProcess from "node:child_process"

const NODE = process.execPath

const WAYS: Readonly<Record<string, () => unknown>> = {
  spawn: () => childProcess.spawn(NODE),
  fork: () => childProcess.fork("nothing.js"),
  exec: () => childProcess.exec(NODE),
  execFile: () => childProcess.execFile(NODE),
  spawnSync: () => childProcess.spawnSync(NODE, ["--version"]),
  execSync: () => childProcess.execSync(`${NODE} --version`),
  execFileSync: () => childProcess.execFileSync(NODE, ["--version"])
}

describe("a test in one process", () => {
  for (const [name, start] of Object.entries(WAYS)) {
    it(`starts none by ${name}`, () => assert.throws(start, "This kind of test starts no process"))
  }
})
