// Till for one test run: on a free port, with its own data, which is removed after the run.
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { promisify } from "node:util"

/** Not npx, which does not pass on signals. */
const command = process.env.TILL_COMMAND ?? "node_modules/.bin/till"

/** Without the shop's own DATABASE_URL, which Till would use. */
const environment = (folder) => ({ ...process.env, DATABASE_URL: "", PORT: "0", TILL_DATA_DIR: folder })

/** Starts Till, and resolves when it accepts requests. */
export const startTill = async () => {
  const folder = await mkdtemp(join(tmpdir(), "till-"))
  const till = spawn(command, ["serve"], { env: environment(folder), stdio: ["ignore", "pipe", "inherit"] })
  const ended = once(till, "exit")
  const stop = async () => {
    till.kill()
    await ended
    await rm(folder, { recursive: true })
  }
  for await (const line of createInterface(till.stdout)) {
    const [, url] = /^Till listens on (.*)$/.exec(line) ?? []
    if (url !== undefined) return { url, folder, stop }
  }
  throw new Error("Till has ended; the reason is printed above")
}

/** Creates a merchant with its own data, webhooks and clock, so that tests can run concurrently. Returns its keys. */
export const makeMerchant = async ({ folder }, name) => {
  const { stdout } = await promisify(execFile)(command, ["merchants", "create", name], { env: environment(folder) })
  return { secretKey: /sk_test_\w+/.exec(stdout)[0], publishableKey: /pk_test_\w+/.exec(stdout)[0] }
}
