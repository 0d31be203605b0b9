/**
 * A vitest reporter beside the default one: progress and remaining time, a command for each failed test, and totals by
 * kind.
 */
import * as Path from "node:path"
import type { TestError } from "vitest"
import type { Reporter, TestCase, TestModule, TestSpecification, Vitest } from "vitest/node"
import { KINDS } from "./Kinds.ts"

const PROGRESS_MILLIS = 10_000

const plural = (count: number, word: string): string => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`

const duration = (millis: number): string => {
  const seconds = Math.round(millis / 1000)
  return seconds < 100 ? `${seconds} s` : `${Math.round(seconds / 60)} min`
}

/** Quotes a text as one word of a shell command. */
const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** The token with which a failed property repeats the failing case. */
const replayOf = (test: TestCase): string | undefined => {
  const messages = test.result().errors?.map(({ message }) => message) ?? []
  return messages.map((message) => /^Replay: (.+)$/m.exec(message)?.[1]).find((token) => token !== undefined)
}

/** The command that runs one test again, with the same random choices. */
export const replayCommand = (test: TestCase, seed: number, isWhole: boolean): string => {
  const replay = replayOf(test)
  const pattern = `^${test.fullName.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`)}$`
  return [
    `TILL_SEED=${seed}`,
    ...(replay === undefined ? [] : [`TILL_REPLAY=${quoted(replay)}`]),
    isWhole ? "npm run test:all --" : "npm test --",
    test.module.relativeModuleId,
    `-t ${quoted(pattern)}`
  ].join(" ")
}

interface Totals {
  files: number
  tests: number
  runs: number
  cpuMillis: number
}

/** A line for each kind: its files, tests and runs of properties, and the CPU time of its workers. */
export const summary = (modules: ReadonlyArray<TestModule>): ReadonlyArray<string> => {
  const totals = new Map<string, Totals>()
  for (const module of modules) {
    const of = totals.get(module.project.name) ?? { files: 0, tests: 0, runs: 0, cpuMillis: 0 }
    of.files += 1
    of.tests += [...module.children.allTests()].length
    of.runs += module.meta().runs ?? 0
    of.cpuMillis += module.meta().cpuMillis ?? 0
    totals.set(module.project.name, of)
  }
  const width = Math.max(...KINDS.map(({ name }) => name.length))
  return KINDS.flatMap(({ name }) => {
    const of = totals.get(name)
    if (of === undefined) return []
    const counts = [plural(of.files, "file"), plural(of.tests, "test"), plural(of.runs, "run")]
    return [`${name.padEnd(width)}  ${counts.join(", ")} of properties, ${duration(of.cpuMillis)} of CPU`]
  })
}

const MESSAGE_LENGTH_MAX = 400

/** Returns an error's first line and its place, because the whole error may be far above the end of a long output. */
const described = ({ message, stacks }: TestError): string => {
  const [line = ""] = message.split("\n", 1)
  const place = stacks?.find(({ file }) => !file.includes("node_modules"))
  const at = place === undefined ? "" : ` (${Path.relative(process.cwd(), place.file)}:${place.line})`
  return `${line.slice(0, MESSAGE_LENGTH_MAX)}${at}`
}

export default class Report implements Reporter {
  #vitest!: Vitest
  #begunAt = 0
  #toldAt = 0
  /** Expected time of each file in milliseconds: that of the last run, or its kind's. */
  #expected = new Map<string, number>()
  #done = 0
  #tests = 0
  #failed: Array<TestCase> = []

  onInit(vitest: Vitest): void {
    this.#vitest = vitest
  }

  onTestRunStart(specifications: ReadonlyArray<TestSpecification>): void {
    this.#begunAt = this.#toldAt = performance.now()
    this.#done = this.#tests = 0
    this.#failed = []
    const expectedOf = (specification: TestSpecification): number =>
      this.#vitest.cache.getTestSpecificationResult(specification)?.duration ??
      1000 * KINDS.find(({ name }) => name === specification.project.name)!.fileSeconds
    this.#expected = new Map(specifications.map((each) => [each.moduleId, Math.max(expectedOf(each), 1)]))
  }

  onTestCaseResult(test: TestCase): void {
    this.#tests++
    if (test.result().state === "failed") this.#failed.push(test)
  }

  onTestModuleEnd({ moduleId }: TestModule): void {
    this.#done += this.#expected.get(moduleId) ?? 0
    this.#expected.delete(moduleId)
    const now = performance.now()
    if (now - this.#toldAt < PROGRESS_MILLIS) return
    this.#toldAt = now
    const files = this.#expected.size
    const expected = this.#expected.values().reduce((sum, millis) => sum + millis, 0)
    const left = ((now - this.#begunAt) * expected) / this.#done
    this.#vitest.logger.log(`${plural(this.#tests, "test")} done, ${plural(files, "file")} left: ${duration(left)}`)
  }

  onTestRunEnd(modules: ReadonlyArray<TestModule>): void {
    const { logger } = this.#vitest
    const { seed } = this.#vitest.getRootProject().getProvidedContext()
    const isWhole = process.env["TILL_TESTS"] === "all"
    for (const line of summary(modules)) logger.log(line)
    logger.log(`TILL_SEED=${seed}`)
    if (this.#failed.length > 0) logger.log("\nEach failed test again, with the same choices:")
    for (const test of this.#failed) {
      logger.log(replayCommand(test, seed, isWhole))
      for (const error of test.result().errors ?? []) logger.log(`  ${described(error)}`)
    }
  }
}
