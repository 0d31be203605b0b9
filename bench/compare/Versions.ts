/**
 * The two versions that are compared, each in a folder of its own below the run's: what this checkout holds now,
 * changes that are not committed included, and what a git reference names. Neither changes while the comparison runs,
 * whatever happens to the checkout meanwhile, and the repository gets to know of neither.
 */
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { BenchFailure, failureOf } from "../BenchFailure.ts"
import type { Command, Contender } from "../Contender.ts"
import { commandOf, contenders } from "../Contender.ts"

export interface Version {
  /** As the report calls it. */
  readonly title: string
  readonly contender: Contender
  readonly command: Command
}

const ROOT = join(import.meta.dirname, "../..")

/** Runs a program to its end and gives what it printed; interruption ends it. */
const output = (program: string, parameters: ReadonlyArray<string>, cwd: string, variables: NodeJS.ProcessEnv = {}) =>
  Effect.callback<string, BenchFailure>((resume) => {
    const fail = failureOf(`${program} ${parameters[0]}`)
    const child = spawn(program, [...parameters], { cwd, env: { ...process.env, ...variables } })
    let [printed, errors] = ["", ""]
    child.stdin.end()
    child.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString()))
    child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()))
    child.once("error", (error) => resume(Effect.fail(fail(error))))
    child.once("close", (code) =>
      resume(code === 0 ? Effect.succeed(printed) : Effect.fail(fail(errors.trim() || `it ended with ${code}`)))
    )
    return Effect.sync(() => void child.kill("SIGKILL"))
  })

const git = (parameters: ReadonlyArray<string>, variables?: NodeJS.ProcessEnv) =>
  output("git", parameters, ROOT, variables)

/** The full hash of the commit that a reference names. */
const commitOf = (reference: string): Effect.Effect<string, BenchFailure> =>
  git(["rev-parse", "--verify", "--end-of-options", `${reference}^{commit}`]).pipe(
    Effect.map((text) => text.trim()),
    Effect.mapError(({ problem }) => new BenchFailure({ problem: `"${reference}" names no commit here. ${problem}` }))
  )

/** Writes a commit's files by way of an index of its own: no work tree is left that git would have to forget again. */
const checkOut = (commit: string, folder: string) => {
  const variables = { GIT_INDEX_FILE: `${folder}.index` }
  return Effect.andThen(
    git(["read-tree", commit], variables),
    git(["checkout-index", "--all", `--prefix=${folder}/`], variables)
  )
}

/** Copies what git would take: what is ignored is not Till's. */
const copyCheckout = Effect.fnUntraced(function* (folder: string) {
  const listed = yield* git(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
  // A file that is deleted and not committed is listed still.
  for (const name of listed.split("\0").filter((name) => name !== "" && fs.existsSync(join(ROOT, name)))) {
    fs.mkdirSync(dirname(join(folder, name)), { recursive: true })
    fs.copyFileSync(join(ROOT, name), join(folder, name))
  }
})

/**
 * Packages have no names with a dot in front. But for the commands, what has one is what tools keep beside the
 * packages, and write while this reads.
 */
const isOfTools = (name: string): boolean => name.startsWith(".") && name !== ".bin"

/** Copies a folder by hard links, or file by file where it lies on another file system. */
const linkFolder = (from: string, to: string, isLeftOut: (name: string) => boolean = () => false): void => {
  fs.mkdirSync(to)
  for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
    if (isLeftOut(entry.name)) continue
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) linkFolder(source, target)
    else if (entry.isSymbolicLink()) fs.symlinkSync(fs.readlinkSync(source), target)
    else linkFile(source, target)
  }
}

const linkFile = (source: string, target: string): void => {
  try {
    fs.linkSync(source, target)
  } catch {
    fs.copyFileSync(source, target)
  }
}

const LOCK = "package-lock.json"

/** Gives a version the packages that its lock names: this checkout's if those are the same. */
const addPackages = Effect.fnUntraced(function* (folder: string) {
  const lock = (folder: string) => fs.readFileSync(join(folder, LOCK), "utf8")
  if (fs.existsSync(join(folder, LOCK)) && lock(folder) !== lock(ROOT)) {
    yield* output("npm", ["ci", "--omit=dev"], folder)
  } else {
    linkFolder(fs.realpathSync(join(ROOT, "node_modules")), join(folder, "node_modules"), isOfTools)
  }
})

/** The Node that came along with a version, which `till` runs it on; this process' own where there is none. */
const nodeOf = (folder: string): string =>
  fs.globSync(join(folder, "node_modules/node-*/bin/node")).toSorted()[0] ?? process.execPath

const versionIn = Effect.fnUntraced(function* (folder: string, title: string) {
  yield* addPackages(folder)
  const main = join(folder, "src/main.ts")
  if (!fs.existsSync(main) || !fs.existsSync(join(folder, "src/cli/till.sh"))) {
    return yield* new BenchFailure({
      problem: `${title} has no src/main.ts or no src/cli/till.sh: it cannot be started.`
    })
  }
  const contender = { ...contenders.till, title, parameters: [main, "serve"] }
  return { title, contender, command: commandOf(folder, nodeOf(folder)) } satisfies Version as Version
})

/** Lays both versions below the run's folder, which removes them. */
export const lay = Effect.fnUntraced(function* (reference: string, runFolder: string) {
  const commit = yield* commitOf(reference)
  const [ownFolder, otherFolder] = [join(runFolder, "this"), join(runFolder, "other")]
  yield* checkOut(commit, otherFolder)
  yield* copyCheckout(ownFolder)
  const other = yield* versionIn(otherFolder, `${reference} (${commit.slice(0, 7)})`)
  return { own: yield* versionIn(ownFolder, "this checkout"), other, otherCommit: commit }
})
