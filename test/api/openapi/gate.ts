/**
 * Part of `npm run check`: a change that breaks callers of the last release requires a new version of the API (spec:
 * Versioning 6). If the document has a version that the release lacks, the changes belong to that version and are only
 * printed.
 *
 * The release process runs this script with `--release`, which writes `docs/openapi/<version>.json`, and commits the
 * file. A released file is never rewritten.
 */
import * as fs from "node:fs"
import * as Path from "node:path"
import * as Document from "../../../src/api/openapi/Document.ts"
import { examples } from "../../../src/pages/docs/ErrorExamples.ts"
import { breaksOf, type Contract, versionsOf } from "./Compatibility.ts"

const ROOT = Path.join(import.meta.dirname, "../../..")
const FOLDER = Path.join(ROOT, "docs/openapi")
const BASE = "http://localhost:4242"

const contractNow = (): Contract => {
  const codes: Record<string, Array<string>> = {}
  for (const { code, status, type } of examples(`${BASE}/docs`)) {
    const use = `${status} ${type}`
    const uses = (codes[code] ??= [])
    if (!uses.includes(use)) uses.push(use)
  }
  return { ...Document.make(BASE), "x-error-codes": codes }
}

const release = (contract: Contract): void => {
  const { version } = JSON.parse(fs.readFileSync(Path.join(ROOT, "package.json"), "utf8")) as { version: string }
  const file = Path.join(FOLDER, `${version}.json`)
  fs.writeFileSync(file, `${JSON.stringify(contract)}\n`, { flag: "wx" })
  console.log(`Wrote ${Path.relative(ROOT, file)}.`)
}

const check = (contract: Contract): void => {
  const released = fs
    .readdirSync(FOLDER)
    .filter((name) => /^\d/.test(name))
    .toSorted((a, b) => a.localeCompare(b, "en", { numeric: true }))
  const last = released.at(-1)!
  const older = JSON.parse(fs.readFileSync(Path.join(FOLDER, last), "utf8")) as Contract
  const breaks = breaksOf(older, contract)
  if (breaks.length === 0) return
  const known = versionsOf(older)
  const isNewVersion = [...versionsOf(contract)].some((version) => !known.has(version))
  const title = isNewVersion
    ? `The new version of the API breaks callers of ${last}:`
    : `This breaks callers of ${last}, and needs a new version of the API (docs/interface.md, Versioning 6):`
  console.log([title, ...breaks].join("\n  "))
  if (!isNewVersion) process.exitCode = 1
}

if (process.argv.includes("--release")) release(contractNow())
else check(contractNow())
