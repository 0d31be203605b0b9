/** The packages whose code a bundle contains, and the notices that their licences ask for. */
import * as fs from "node:fs"
import * as Path from "node:path"
import type { Output } from "./Bundle.ts"

export interface BundledPackage {
  readonly name: string
  readonly version: string
  /** The licence's name, as an SPDX expression. */
  readonly license: string
  /** The package's folder. */
  readonly folder: string
}

/** Licences that allow Till's packages to contain the code, if they name it. */
const ALLOWED = new Set(["MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "0BSD", "MIT-0"])

const LICENSE_FILE = /^(?:licen[cs]e|notice)(?:[-.].*)?$/iu

/** Reads a package's manifest. */
export const packageIn = (folder: string): BundledPackage => {
  const { license, name, version } = JSON.parse(fs.readFileSync(Path.join(folder, "package.json"), "utf8")) as {
    readonly name: string
    readonly version: string
    readonly license?: string
  }
  if (license === undefined || !ALLOWED.has(license)) {
    throw new Error(`${name} ${version} has the licence ${license}, with which it may not be packed unread`)
  }
  return { name, version, license, folder }
}

/** Finds the packages of a bundle's modules, each once, by name. */
export const packagesOf = (parts: ReadonlyArray<Output[number]>): ReadonlyArray<BundledPackage> => {
  const folders = new Set<string>()
  for (const part of parts) {
    if (part.type !== "chunk") continue
    for (const module of part.moduleIds) {
      const folder = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/u.exec(module)?.[0]
      if (folder !== undefined) folders.add(folder)
    }
  }
  return [...folders].map(packageIn).toSorted((a, b) => a.name.localeCompare(b.name))
}

/** Returns the texts of a package's licence and notice. */
const licenseTextOf = ({ folder, name }: BundledPackage): string => {
  const files = fs.readdirSync(folder).filter((file) => LICENSE_FILE.test(file))
  if (files.length === 0) throw new Error(`${name} has no file with its licence`)
  return files.map((file) => fs.readFileSync(Path.join(folder, file), "utf8").trim()).join("\n\n")
}

/** Returns the notices about all packages. A text that several packages share is printed once. */
export const noticesOf = (packages: ReadonlyArray<BundledPackage>): string => {
  const byText = new Map<string, Array<BundledPackage>>()
  for (const one of packages) {
    const text = licenseTextOf(one)
    byText.set(text, [...(byText.get(text) ?? []), one])
  }
  const sections = [...byText].map(([text, sharing]) => {
    const names = sharing.map(({ license, name, version }) => `${name} ${version} (${license})`)
    return `## ${names.join(", ")}\n\n\`\`\`\n${text}\n\`\`\`\n`
  })
  return `# Third-party notices\n\nThis package contains code of the following packages.\n\n${sections.join("\n")}`
}
