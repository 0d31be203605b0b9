/**
 * The program that tests start as processes: Till bundled, made once per run (vitest's `globalSetup` of the kinds
 * that start processes). It loads in half of the CPU time of the 600 modules. Without the setup, tests run the sources.
 */
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as Path from "node:path"
import { bundleServer, contentOf, ROOT, SERVER_FILES, writeServer } from "../../pack/Bundle.ts"

const SOURCES = Path.join(ROOT, "src/main.ts")
const BUNDLES = Path.join(ROOT, "node_modules/.cache/till/bundles")
const VARIABLE = "TILL_TEST_PROGRAM"
const KEPT_MILLIS = 24 * 3_600_000

/** Returns the path of the program. */
export const program = (): string => process.env[VARIABLE] ?? SOURCES

/** Bundles Till, unless the same bundle exists: Node caches compiled code by the file's path. */
export default async function setup(): Promise<void> {
  if (process.env[VARIABLE] !== undefined) return
  const parts = await bundleServer()
  const content = createHash("sha256")
  for (const part of parts) content.update(contentOf(part))
  for (const folder of Object.keys(SERVER_FILES)) {
    for (const file of fs.readdirSync(Path.join(ROOT, folder), { recursive: true, withFileTypes: true })) {
      if (file.isFile()) content.update(fs.readFileSync(Path.join(file.parentPath, file.name)))
    }
  }
  const folder = Path.join(BUNDLES, content.digest("hex").slice(0, 16))
  if (!fs.existsSync(folder)) {
    removeOld()
    const temporary = `${folder}.${process.pid}`
    writeServer(parts, temporary)
    fs.renameSync(temporary, folder)
  }
  process.env[VARIABLE] = Path.join(folder, "main.js")
}

/** Keeps newer bundles, which a run of another state of the sources may use. */
const removeOld = (): void => {
  fs.mkdirSync(BUNDLES, { recursive: true })
  for (const name of fs.readdirSync(BUNDLES)) {
    const folder = Path.join(BUNDLES, name)
    if (Date.now() - fs.statSync(folder).mtimeMs > KEPT_MILLIS) fs.rmSync(folder, { recursive: true, force: true })
  }
}
