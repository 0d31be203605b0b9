/**
 * Refuses to start processes in the kinds of tests that `npm test` runs (vitest's `setupFiles`), so that none of them
 * slips in under the wrong ending.
 */
import childProcess from "node:child_process"
import { syncBuiltinESMExports } from "node:module"

const refuse = (): never => {
  throw new Error("This kind of test starts no process: a file that needs one ends in .e2e.test.ts or .browser.test.ts")
}

// `spawn`, `exec`, `execFile` and `fork` all begin here.
Object.assign(childProcess.ChildProcess.prototype, { spawn: refuse })
Object.assign(childProcess, { spawnSync: refuse, execFileSync: refuse, execSync: refuse })
syncBuiltinESMExports()
