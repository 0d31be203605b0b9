/**
 * The two versions of a comparison, each in a folder below the run's: this checkout with its uncommitted changes, and
 * the commit of a git reference. Changes of the checkout during the comparison affect neither, and the repository
 * records neither.
 */
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { BenchFailure, failureOf } from "../BenchFailure.ts"
import { type Command, commandOf, type Contender, contenders } from "../Contender.ts"

export interface Version {
  /** Name in the report. */
  readonly title: string
  readonly contender: Contender
  readonly command: Command
}

const ROOT = join(import.meta.dirname, "../..")

/** Runs a program to its end and returns its output; an interruption ends the program. */
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

/** Returns the full hash of a reference's commit. */
const commitOf = (reference: string): Effect.Effect<string, BenchFailure> =>
  git(["rev-parse", "--verify", "--end-of-options", `${reference}^{commit}`]).pipe(
    Effect.map((text) => text.trim()),
    Effect.mapError(({ problem }) => new BenchFailure({ problem: `"${reference}" names no commit here. ${problem}` }))
  )

/** Writes a commit's files through a separate index: git keeps no work tree that it would have to prune. */
const checkOut = (commit: string, folder: string) => {
  const variables = { GIT_INDEX_FILE: `${folder}.index` }
  return Effect.andThen(
    git(["read-tree", commit], variables),
    git(["checkout-index", "--all", `--prefix=${folder}/`], variables)
  )
}

/** Copies the files that git would add; ignored files are not Till's. */
const copyCheckout = Effect.fnUntraced(function* (folder: string) {
  const listed = yield* git(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
  // git lists a deleted file until the deletion is committed.
  for (const name of listed.split("\0").filter((name) => name !== "" && fs.existsSync(join(ROOT, name)))) {
    fs.mkdirSync(dirname(join(folder, name)), { recursive: true })
    fs.copyFileSync(join(ROOT, name), join(folder, name))
  }
})

/** A name with a leading dot is no package: apart from the commands, tools write such files during the copy. */
const isOfTools = (name: string): boolean => name.startsWith(".") && name !== ".bin"

/** Copies a folder by hard links, or file by file to another file system. */
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

/** Gives a version the packages that its lock file names, from this checkout if the lock files are equal. */
const addPackages = Effect.fnUntraced(function* (folder: string) {
  const lock = (folder: string) => fs.readFileSync(join(folder, LOCK), "utf8")
  if (fs.existsSync(join(folder, LOCK)) && lock(folder) !== lock(ROOT)) {
    yield* output("npm", ["ci", "--omit=dev"], folder)
  } else {
    linkFolder(fs.realpathSync(join(ROOT, "node_modules")), join(folder, "node_modules"), isOfTools)
  }
})

/** Returns the Node of a version's packages, or that of this process if there is none. */
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

/** Puts both versions below the run's folder, which is removed with the run. */
export const lay = Effect.fnUntraced(function* (
  reference: string,
  runFolder: string,
  set: Readonly<Record<string, string>> = {}
) {
  const commit = yield* commitOf(reference)
  const [ownFolder, otherFolder] = [join(runFolder, "this"), join(runFolder, "other")]
  yield* checkOut(commit, otherFolder)
  yield* copyCheckout(ownFolder)
  const other = yield* versionIn(otherFolder, `${reference} (${commit.slice(0, 7)})`)
  const { command, ...own } = yield* versionIn(ownFolder, "this checkout")
  const variables = { ...command.variables, ...set }
  return { own: { ...own, command: { ...command, variables } }, other, otherCommit: commit }
})
