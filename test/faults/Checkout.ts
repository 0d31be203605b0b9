/** The sources under test: this checkout's, another's, or a copy with one changed line. */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import { type Command, commandOf } from "../../bench/Contender.ts"

export interface Checkout {
  readonly folder: string
  /** Short hash; ends in `+` if the work tree has changes other than a run's report. */
  readonly commit: string
  /** The command line with which `till` starts it. */
  readonly command: Command
}

const git = (folder: string, ...parameters: ReadonlyArray<string>): string => {
  try {
    return execFileSync("git", parameters, { cwd: folder, encoding: "utf8", stdio: "pipe" }).trim()
  } catch {
    return ""
  }
}

/** Pathspec that leaves out the report, which a run writes. */
const NOT_REPORT = ":(top,exclude)docs/faults.md"

const commitOf = (folder: string): string => {
  const changed = git(folder, "status", "--porcelain", "--", ":/", NOT_REPORT) !== ""
  return `${git(folder, "rev-parse", "--short", "HEAD") || "unknown"}${changed ? "+" : ""}`
}

const start = (folder: string): Command => {
  const node = fs.globSync(Path.join(folder, "node_modules/node-*/bin/node")).toSorted()[0] ?? process.execPath
  return commandOf(folder, node)
}

/** Throws if the folder holds no Till. */
export const open = (folder: string): Checkout => {
  const path = Path.resolve(folder)
  for (const file of ["src/main.ts", "src/cli/till.sh", "node_modules"]) {
    if (!fs.existsSync(Path.join(path, file)))
      throw new Error(`${path} has no ${file}: it is no checkout to be started`)
  }
  return { folder: path, commit: commitOf(path), command: start(path) }
}

/** One line of the sources and its replacement. */
export interface Mutation {
  readonly file: string
  readonly find: string
  readonly replace: string
}

/**
 * Writes a copy with one mutation. Throws unless the text is found exactly once, because the control would test
 * nothing.
 */
export const mutated = (from: Checkout, folder: string, { file, find, replace }: Mutation): Checkout => {
  const text = fs.readFileSync(Path.join(from.folder, file), "utf8")
  const count = text.split(find).length - 1
  if (count !== 1) throw new Error(`${file} has ${JSON.stringify(find)} ${count} times, and a mutation needs it once`)
  fs.mkdirSync(folder, { recursive: true })
  fs.cpSync(Path.join(from.folder, "src"), Path.join(folder, "src"), { recursive: true })
  fs.copyFileSync(Path.join(from.folder, "package.json"), Path.join(folder, "package.json"))
  fs.symlinkSync(fs.realpathSync(Path.join(from.folder, "node_modules")), Path.join(folder, "node_modules"))
  fs.writeFileSync(
    Path.join(folder, file),
    text.replace(find, () => replace)
  )
  return { folder, commit: from.commit, command: start(folder) }
}
