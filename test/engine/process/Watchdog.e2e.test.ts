/** Only a process whose event loop stands still is killed (semantics operation.hang). */
import { assert, describe, it } from "@effect/vitest"
import { type ChildProcess, spawn } from "node:child_process"
import * as Path from "node:path"
import { pause, until } from "../../support/TillProcess.ts"

const PROGRAM = Path.join(import.meta.dirname, "WatchdogProcess.ts")
const ID = "req_8Q0dVfnA8H9hYRvh9PoQmqQu"

interface Ended {
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

const run = async (
  options: object,
  steps: ReadonlyArray<object>,
  { during = async () => {}, flags = [] }: Partial<Disturbance> = {}
): Promise<Ended> => {
  const child = spawn(process.execPath, [...flags, PROGRAM, JSON.stringify(options), JSON.stringify(steps)])
  let stdout = ""
  let stderr = ""
  child.stdout.on("data", (chunk) => (stdout += String(chunk)))
  child.stderr.on("data", (chunk) => (stderr += String(chunk)))
  const ended = new Promise<NodeJS.Signals | null>((resolve) => child.once("close", (_, signal) => resolve(signal)))
  await until("it has begun", () => stdout.includes("begun") || child.exitCode !== null)
  await during(child)
  return { signal: await ended, stdout, stderr }
}

interface Disturbance {
  readonly during: (child: ChildProcess) => Promise<void>
  readonly flags: ReadonlyArray<string>
}

const WATCHED = { hangSeconds: 1, logs: true }
const FOR_EVER = { hold: 60_000 }

describe("a process whose event loop stands still", () => {
  it("is killed, with one log line that names the request that began last", async () => {
    const { signal, stderr, stdout } = await run(WATCHED, [{ note: "req_" + "0".repeat(24) }, { note: ID }, FOR_EVER])
    assert.strictEqual(signal, "SIGKILL")
    assert.notInclude(stdout, "done")
    const lines = stderr.trimEnd().split("\n")
    assert.lengthOf(lines, 1)
    const { annotations, level, message, timestamp } = JSON.parse(lines[0]!)
    assert.strictEqual(level, "FATAL")
    assert.match(message, /^The event loop has not turned for 1 s/)
    assert.strictEqual(annotations.request_id, ID)
    assert.closeTo(Date.parse(timestamp), Date.now(), 60_000)
  })

  it("is killed without a line if logging is off, and names no request if there was none", async () => {
    assert.deepInclude(await run({ ...WATCHED, logs: false }, [FOR_EVER]), { signal: "SIGKILL", stderr: "" })
    assert.isNull(JSON.parse((await run(WATCHED, [FOR_EVER])).stderr).annotations.request_id)
  })
})

describe("a process is left alone", () => {
  const assertLives = async (...parameters: Parameters<typeof run>) =>
    assert.deepStrictEqual(await run(...parameters), { signal: null, stdout: "begun\ndone\n", stderr: "" })

  it("whose loop turns again in time, also if it is blocked often", () =>
    assertLives({ hangSeconds: 2, logs: true }, Array.from({ length: 6 }, () => [{ hold: 900 }, { turn: 600 }]).flat()))

  it("that is not watched", () => assertLives({ hangSeconds: 0, logs: true }, [{ hold: 3000 }]))

  it("that is stopped as a whole, as on a sleeping machine", () =>
    assertLives(WATCHED, [{ hold: 300 }, { turn: 300 }], {
      during: async (child) => {
        child.kill("SIGSTOP")
        await pause(4000)
        child.kill("SIGCONT")
      }
    }))

  it("whose inspector is open: a debugger may have paused it", async () => {
    const { signal, stdout } = await run(WATCHED, [{ hold: 3000 }], { flags: ["--inspect=127.0.0.1:0"] })
    assert.isNull(signal)
    assert.include(stdout, "done")
  })
})
