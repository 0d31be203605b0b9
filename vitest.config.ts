/**
 * A project of vitest for each kind of test (`test/support/Kinds.ts`). Without further arguments, `npm test` runs the
 * kinds that need neither another process nor a browser; arguments choose among all. No more files run at a time than
 * there are cores: those that start processes and browsers come first, and the short ones fill what is left.
 */
import { readFileSync, statfsSync } from "node:fs"
import { availableParallelism } from "node:os"
import * as Path from "node:path"
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config"
import { BaseSequencer, parseCLI, type TestSpecification } from "vitest/node"
import { KINDS, type Kind } from "./test/support/Kinds.ts"

const kindOf = ({ project }: TestSpecification): number => KINDS.findIndex(({ name }) => name === project.name)

class SlowestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    // oxlint-disable-next-line unicorn/no-array-sort -- the base class has no other
    return (await super.sort(files)).toSorted((a, b) => kindOf(a) - kindOf(b))
  }
}

const SHARED_MEMORY = "/dev/shm"
const SHARED_MEMORY_BYTES_MIN = 4 * 2 ** 30

/** Says that there is memory to write to as to a disk, enough of it, and that programs run from there. */
const hasSharedMemory = (): boolean => {
  if (process.platform !== "linux") return false
  const [, options = "noexec"] = / \/dev\/shm tmpfs (\S+)/.exec(readFileSync("/proc/mounts", "utf8")) ?? []
  if (options.split(",").some((option) => option === "noexec" || option === "ro")) return false
  const { bavail, bsize } = statfsSync(SHARED_MEMORY)
  return bavail * bsize >= SHARED_MEMORY_BYTES_MIN
}

// Dozens of Postgres clusters are made and thrown away: a third less of the system's time than with a disk.
if (process.env["TMPDIR"] === undefined && hasSharedMemory()) process.env["TMPDIR"] = SHARED_MEMORY

/** The kinds of this run: those of `npm test`, or all if the command line names files, a kind, or `test:all`. */
const kindsToRun = (): ReadonlyArray<Kind> => {
  const { filter, options } = parseCLI(["vitest", ...process.argv.slice(2)])
  const isChosen = filter.length > 0 || options.project !== undefined || process.env["TILL_TESTS"] === "all"
  return isChosen ? KINDS : KINDS.filter(({ needsProcesses }) => !needsProcesses)
}

/** What the tests of a kind share for the whole run. */
const SETUPS: Readonly<Record<Kind["name"], ReadonlyArray<string>>> = {
  e2e: ["test/support/Bundle.ts", "test/support/Postgres.ts"],
  browser: ["test/support/Bundle.ts", "test/support/Postgres.ts"],
  pg: ["test/support/Bundle.ts", "test/support/Postgres.ts"],
  sim: [],
  prop: [],
  bench: [],
  unit: []
}

const projectOf = ({ exclude, include, name, needsProcesses }: Kind): TestProjectInlineConfiguration => ({
  extends: true,
  test: {
    name,
    include: [...include],
    exclude: [...exclude],
    setupFiles: ["test/support/FileReport.ts", ...(needsProcesses ? [] : ["test/support/OneProcess.ts"])],
    globalSetup: [...SETUPS[name]]
  }
})

export default defineConfig({
  test: {
    projects: kindsToRun().map(projectOf),
    globalSetup: ["test/support/SeedRun.ts"],
    sequence: { sequencer: SlowestFirst },
    // Only for tests that hang: how long one takes is the machine's affair, which others use as well.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    maxWorkers: availableParallelism(),
    // Files of one worker share what they import: loading Effect and Till is half a second for each.
    isolate: false,
    // The many processes that tests start compile Till once, and not each of them.
    env: { NODE_COMPILE_CACHE: Path.join(import.meta.dirname, "node_modules/.cache/till") },
    // The properties of `@effect/vitest`, by the plan of the run.
    alias: [{ find: /^@effect\/vitest$/u, replacement: Path.join(import.meta.dirname, "test/support/Properties.ts") }],
    reporters: ["default", "test/support/Report.ts"]
  }
})
