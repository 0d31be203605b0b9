/**
 * The program of the last release, to test upgrades from it: that of the newest tag `v…` before the present commit.
 * While there is none, the checkout itself stands for it, packed and installed as users get it.
 */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import { install, pack, ROOT, SERVER } from "../pack/Installed.ts"

export interface Release {
  /** Name in the test's report. */
  readonly title: string
  /** The command `till`, without arguments. */
  readonly command: ReadonlyArray<string>
}

const git = (...parameters: ReadonlyArray<string>): string =>
  execFileSync("git", parameters, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })

/** Returns the newest tag of a release before the present commit; undefined without one, or in a folder without git. */
export const lastTag = (): string | undefined => {
  if (!fs.existsSync(Path.join(ROOT, ".git"))) return undefined
  const tags = git("tag", "--list", "v[0-9]*", "--no-contains", "HEAD", "--sort=-version:refname")
  return tags.split("\n")[0] || undefined
}

/** Writes the files of a tag through an index of its own, and gives them the packages of the tag's lock file. */
const checkOut = (tag: string, folder: string): Release => {
  const index = { ...process.env, GIT_INDEX_FILE: Path.join(folder, "index") }
  for (const parameters of [
    ["read-tree", tag],
    ["checkout-index", "--all", `--prefix=${folder}/`]
  ]) {
    execFileSync("git", parameters, { cwd: ROOT, env: index })
  }
  const lock = (of: string) => fs.readFileSync(Path.join(of, "package-lock.json"), "utf8")
  if (lock(folder) === lock(ROOT)) {
    fs.symlinkSync(fs.realpathSync(Path.join(ROOT, "node_modules")), Path.join(folder, "node_modules"))
  } else {
    execFileSync("npm", ["ci", "--omit=dev", "--no-audit", "--no-fund"], { cwd: folder, stdio: "ignore" })
  }
  return { title: tag, command: [process.execPath, Path.join(folder, "src/main.ts")] }
}

/** Makes the program of the last release in an empty folder. */
export const lastRelease = (folder: string): Release => {
  const tag = lastTag()
  if (tag !== undefined) return checkOut(tag, folder)
  const project = install(pack(folder, "server"))
  fs.renameSync(project, Path.join(folder, "project"))
  const main = Path.join(folder, "project", "node_modules", SERVER, "till.cjs")
  return { title: "the packed checkout", command: [process.execPath, main] }
}
