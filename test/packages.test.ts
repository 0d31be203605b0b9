/** The packages that npm installs. */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as Path from "node:path"

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
    for (const [name, version] of versions) assert.match(version, /^\d+\.\d+\.\d+(?:-[\w.]+)?$/u, name)
  })
})

describe("package-lock.json", () => {
  // All of them run on the Node that comes along. npm would look at the one that it runs on itself, and on one older than
  // they ask for leave out, without a word, what vitest, oxlint and oxfmt have for each platform.
  it("does not say which Node a package needs: delete the `engines` that npm has written", () => {
    const packages: Readonly<Record<string, { engines?: unknown }>> = jsonIn("package-lock.json").packages
    assert.isAbove(Object.keys(packages).length, 100)
    const demanding = Object.keys(packages).filter((path) => path !== "" && packages[path]!.engines !== undefined)
    assert.deepStrictEqual(demanding, [])
  })
})
