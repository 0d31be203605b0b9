/** The real bench, ended at several moments: none of its processes runs on, and none of its files is left. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import { family, signalIfThere, until } from "../support/TillProcess.ts"

const BENCH = Path.resolve(import.meta.dirname, "../../bench/main.ts")
const COMPARISON = ["--compare", "HEAD", "--only", "create", "--seconds", "0.2", "--starts", "3"]

const textOf = (pid: number, file: string): string => {
  try {
    return fs.readFileSync(`/proc/${pid}/${file}`, "utf8")
  } catch {
    return ""
  }
}

/** Returns whether a process runs; a zombie does not. */
const isAlive = (pid: number): boolean => {
  const stat = textOf(pid, "stat")
  return stat !== "" && !/^.*\) [ZX] /s.test(stat)
}

const commandsOf = (pids: ReadonlyArray<number>): ReadonlyArray<string> =>
  pids.map((pid) => textOf(pid, "cmdline").replaceAll("\0", " "))

const servers = (pids: ReadonlyArray<number>) =>
  commandsOf(pids).filter((command) => command.endsWith(" serve ")).length

const named = (pids: ReadonlyArray<number>, part: string) =>
  commandsOf(pids).filter((command) => command.includes(part)).length

/** Children of a postmaster have other command lines. */
const postmasters = (pids: ReadonlyArray<number>) =>
  commandsOf(pids).filter((command) => /^[^ ]*postgres -D /.test(command)).length

/** Moments of the bench, as its processes and its folder show them. */
const moments: Readonly<Record<string, (pids: ReadonlyArray<number>, folder: string) => boolean>> = {
  "it lays the versions": (_, folder) => fs.globSync(`${folder}/*/other/src`).length > 0,
  "a Postgres makes its cluster": (pids) => commandsOf(pids).some((command) => command.includes("--pgdata")),
  "both versions serve": (pids) => servers(pids) === 2
}

/** Limit for two clusters and two starts on a busy machine. */
const MOMENT_MILLIS_MAX = 120_000
const TEST_MILLIS_MAX = 200_000

/** Starts a bench, ends it at the moment, and waits until all of its processes and files are gone. */
const assertNothingLeft = Effect.fnUntraced(function* (
  parameters: ReadonlyArray<string>,
  moment: (pids: ReadonlyArray<number>, folder: string) => boolean,
  end: (pid: number) => void
) {
  // A folder on a disk, because a bench refuses to write to memory.
  const folder = yield* temporaryFolder("/var/tmp")
  // A process group of its own, as in a terminal.
  const child = spawn(process.execPath, [BENCH, ...parameters], {
    env: { ...process.env, TMPDIR: folder, DATABASE_URL: "" },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"]
  })
  let printed = ""
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (printed += String(chunk)))
  const pid = child.pid!
  let members: ReadonlyArray<number> = []
  // A failing test must not leave processes behind.
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const member of [...members, pid]) if (isAlive(member)) signalIfThere(member, "SIGKILL")
    })
  )
  for (const deadline = performance.now() + MOMENT_MILLIS_MAX; !moment(members, folder); members = family(pid)) {
    assert.isNull(child.exitCode, printed)
    assert.isBelow(performance.now(), deadline, `The moment was not reached. ${printed}`)
    yield* Effect.sleep("50 millis")
  }
  assert.isAbove(members.length, 1)
  end(pid)
  yield* Effect.promise(() => until("all of its processes are gone", () => !members.some(isAlive)))
  yield* Effect.promise(() => until("its folder is gone", () => fs.readdirSync(folder).length === 0))
})

describe.runIf(process.platform === "linux")("a bench that is ended", () => {
  for (const [name, moment] of Object.entries(moments)) {
    it.live(
      `is killed while ${name}: nothing is left`,
      () => assertNothingLeft(COMPARISON, moment, (pid) => void process.kill(pid, "SIGKILL")),
      TEST_MILLIS_MAX
    )
  }

  it.live(
    "is interrupted from its terminal: nothing is left",
    () => assertNothingLeft(COMPARISON, moments["both versions serve"]!, (pid) => void process.kill(-pid, "SIGINT")),
    TEST_MILLIS_MAX
  )

  /** The last part to appear is the one to wait for. */
  const parts: Readonly<Record<string, readonly [ReadonlyArray<string>, (pids: ReadonlyArray<number>) => boolean]>> = {
    "it compares Till with baselines, each of which has a Postgres": [
      ["--only", "create-latency"],
      (pids) => postmasters(pids) === 3 && named(pids, "groupCommit.ts") === 1
    ],
    "it floods Till": [["--only", "overload", "--seconds", "2"], (pids) => named(pids, "PacedLoadGenerator.ts") === 3],
    "it fills a database": [
      ["--only", "growth"],
      (pids) => servers(pids) === 1 && named(pids, "LoadGenerator.ts") === 1
    ]
  }
  for (const [name, [parameters, moment]] of Object.entries(parts)) {
    it.live(
      `is killed while ${name}: nothing is left`,
      () => assertNothingLeft(parameters, moment, (pid) => void process.kill(pid, "SIGKILL")),
      TEST_MILLIS_MAX
    )
  }
})
