/**
 * `emulate`, a fake of Stripe's API in memory, which developers might use instead of Till. Till does not depend on it:
 * the bench fetches it from npm on the first use, keeps it in the user's cache, and runs none of its scripts.
 */
import { execFile } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs"
import { homedir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import { failureOf } from "./BenchFailure.ts"

export const VERSION = "0.12.2"
/** Every key is accepted, and each gets 4,999 answers an hour. */
const KEYS_COUNT = 1000
const INSTALL_MILLIS_MAX = 60_000

const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache")
const folder = join(cache, "till-bench", `emulate-${VERSION}`)

/** The file that Node runs after the installation. */
export const main = join(folder, "node_modules/emulate/dist/index.js")

export const apiKeys: ReadonlyArray<string> = Array.from({ length: KEYS_COUNT }, (_, i) => `sk_test_bench${i}`)

const install = async () => {
  if (existsSync(main)) return
  mkdirSync(dirname(folder), { recursive: true })
  // The folder is filled under another name, so that it appears complete.
  const made = mkdtempSync(`${folder}-`)
  try {
    const parameters = ["install", "--no-save", "--ignore-scripts", "--prefix", made, `emulate@${VERSION}`]
    await promisify(execFile)("npm", parameters, { cwd: made, timeout: INSTALL_MILLIS_MAX })
    rmSync(folder, { recursive: true, force: true })
    renameSync(made, folder)
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
}

/** Installs the fake; fails if npm cannot fetch it. */
export const installed = Effect.tryPromise({
  try: install,
  catch: failureOf(`emulate ${VERSION} cannot be installed`)
})
