/** The manifests of the two packages, from the repository's own. */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import { ROOT } from "./Bundle.ts"

/** The names under which the packages are published. */
export const SERVER_NAME = "till-payments"
export const CLIENT_NAME = "till-payments-client"

interface RootManifest {
  readonly version: string
  readonly license: string
  readonly dependencies: Readonly<Record<string, string>>
  readonly optionalDependencies: Readonly<Record<string, string>>
}

/** The manifest of the repository. */
export const rootManifest = (): RootManifest =>
  JSON.parse(fs.readFileSync(Path.join(ROOT, "package.json"), "utf8")) as RootManifest

/** Returns the address of the clone's origin as a web page; undefined without one. */
const originOf = (folder: string): string | undefined => {
  try {
    const remote = execFileSync("git", ["remote", "get-url", "origin"], {
      cwd: folder,
      stdio: "pipe",
      encoding: "utf8"
    })
    return webAddressOf(remote.trim())
  } catch {
    return undefined
  }
}

/** A remote of git: `https://host/owner/name.git`, `ssh://git@host/owner/name.git` or `git@host:owner/name.git`. */
const REMOTE = /^(?:(?:git\+)?(?:https?|ssh|git):\/\/)?(?:[\w.-]+@)?([\w.-]+\.[a-z]+)(?::\d+)?[:/]([\w./~-]+)$/u

/** Converts a remote of git to a web address; undefined for a folder. */
export const webAddressOf = (remote: string): string | undefined => {
  const [, host, path] = REMOTE.exec(remote) ?? []
  return path === undefined ? undefined : `https://${host}/${path.replace(/\/$/u, "").replace(/\.git$/u, "")}`
}

/** Returns the places of the project: the origin of this clone. A clone without one names none. */
const placesOf = (): object => {
  const origin = originOf(ROOT)
  if (origin === undefined) return {}
  return {
    repository: { type: "git", url: `git+${origin}.git` },
    homepage: `${origin}#readme`,
    bugs: { url: `${origin}/issues` }
  }
}

const KEYWORDS = ["payments", "checkout", "webhooks", "idempotency", "stripe", "self-hosted", "postgres"]

/** Returns the fields that both packages share. */
export const sharedFields = (name: string, description: string) => {
  const { license, version } = rootManifest()
  return { name, version, description, license, keywords: KEYWORDS, ...placesOf() }
}

/** Copies the documents that both packages contain. */
export const copyDocuments = (folder: string): void => {
  for (const file of ["LICENSE", "CHANGELOG.md"]) fs.copyFileSync(Path.join(ROOT, file), Path.join(folder, file))
}

/** Writes a manifest. */
export const writeManifest = (folder: string, manifest: object): void =>
  fs.writeFileSync(Path.join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`)
