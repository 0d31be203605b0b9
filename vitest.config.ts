/**
 * One seed and one Postgres for the whole run, started before the first test file and removed after the last. Files
 * that start processes, browsers or databases come first: the short ones then fill what is left, and all workers end
 * together.
 */
import { readFileSync, statfsSync } from "node:fs"
import * as Path from "node:path"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Endings of file names, the slowest kind first. */
const KINDS = [".e2e.test.ts", ".browser.test.ts", ".pg.test.ts", ".sim.test.ts", ".prop.test.ts", ".test.ts"]
const kindOf = ({ moduleId }: TestSpecification): number => KINDS.findIndex((ending) => moduleId.endsWith(ending))

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

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/SeedRun.ts", "test/support/Postgres.ts"],
    setupFiles: ["src/domain/RepairJsonParse.ts", "test/support/SeedProperties.ts"],
    sequence: { sequencer: SlowestFirst },
    // For what hangs: on a busy machine, a property of twenty seconds takes a minute.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Of five, three usually wait for a process, a browser or a database.
    maxWorkers: 5,
    // Files of one worker share what they import: loading Effect and Till is half a second for each.
    isolate: false,
    // The many processes that tests start compile Till once, and not each of them.
    env: { NODE_COMPILE_CACHE: Path.join(import.meta.dirname, "node_modules/.cache/till") },
    reporters: ["default"]
  }
})
