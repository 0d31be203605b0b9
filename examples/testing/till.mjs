// Till for one run of tests: on a port that is free, with data of its own, and gone when the run is over.
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { promisify } from "node:util"

/** Runs without npx, which does not hand on the signal that ends it. */
const command = process.env.TILL_COMMAND ?? "node_modules/.bin/till"

/** A shop's own DATABASE_URL is none of Till's business. */
const environment = (folder) => ({ ...process.env, DATABASE_URL: "", PORT: "0", TILL_DATA_DIR: folder })

/** Starts Till, and answers when it takes requests. */
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
  throw new Error("Till has ended; it has said why above")
}

/** Keys of a new merchant: its data, its webhooks and its clock are nobody else's, so tests can run at the same time. */
export const makeMerchant = async ({ folder }, name) => {
  const { stdout } = await promisify(execFile)(command, ["merchants", "create", name], { env: environment(folder) })
  return { secretKey: /sk_test_\w+/.exec(stdout)[0], publishableKey: /pk_test_\w+/.exec(stdout)[0] }
}
