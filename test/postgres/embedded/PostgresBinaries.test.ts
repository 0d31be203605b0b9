/** The layout of the packaged Postgres on each supported system. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { install } from "../../../src/postgres/embedded/PostgresBinaries.ts"
import { temporaryFolder } from "../../support/TemporaryFolder.ts"

/** Makes this process report another system. */
const on = (platform: NodeJS.Platform) => {
  const real = Object.getOwnPropertyDescriptor(process, "platform")!
  return Effect.acquireRelease(
    Effect.sync(() => Object.defineProperty(process, "platform", { ...real, value: platform })),
    () => Effect.sync(() => Object.defineProperty(process, "platform", real))
  )
}

/** Creates a package as npm unpacks it, with the links of its install script if that has run. */
const makePackage = (native: string, scriptHasRun: boolean) => {
  for (const folder of ["bin", "lib/postgresql", "share"]) fs.mkdirSync(Path.join(native, folder), { recursive: true })
  for (const file of ["bin/initdb", "bin/postgres", "lib/libicuuc.77.1.dylib", "lib/libz.1.dylib", "lib/libpq.a"]) {
    fs.writeFileSync(Path.join(native, file), file)
  }
  const links = ["libicuuc.77.dylib", "libicuuc.dylib"].map((alias) => ({
    source: "native/lib/libicuuc.77.1.dylib",
    target: `native/lib/${alias}`
  }))
  fs.writeFileSync(Path.join(native, "pg-symlinks.json"), JSON.stringify(links))
  if (!scriptHasRun) return
  for (const { target } of links) {
    fs.symlinkSync("libicuuc.77.1.dylib", Path.join(native, "lib", Path.basename(target)))
  }
}

const ALIASES = ["libicuuc.77.dylib", "libicuuc.dylib"]

describe("the tree of the packaged Postgres", () => {
  for (const platform of ["linux", "darwin"] as const) {
    for (const scriptHasRun of [false, true]) {
      it.effect(
        `has each library once on ${platform}, ${scriptHasRun ? "with" : "without"} the package's own links`,
        () =>
          Effect.gen(function* () {
            const folder = yield* temporaryFolder()
            const native = Path.join(folder, "native")
            makePackage(native, scriptHasRun)
            yield* on(platform)
            const packaged = { native, version: "18.4.0", majorVersion: "18" }
            const programs = yield* install(packaged, Path.join(folder, "programs"))
            const libraries = Path.join(programs, "../lib")
            const stats = (name: string) => fs.lstatSync(Path.join(libraries, name))
            assert.deepStrictEqual(fs.readdirSync(libraries).toSorted(), [
              "libicuuc.77.1.dylib",
              ...ALIASES,
              "libz.1.dylib",
              "postgresql"
            ])
            // On macOS it is the file itself, so that its dependencies are searched in this folder.
            assert.strictEqual(stats("libicuuc.77.1.dylib").isFile(), platform === "darwin")
            const file = fs.realpathSync(Path.join(libraries, "libicuuc.77.1.dylib"))
            for (const alias of ALIASES) assert.strictEqual(fs.realpathSync(Path.join(libraries, alias)), file)
            assert.strictEqual(fs.readFileSync(file, "utf8"), "lib/libicuuc.77.1.dylib")
          })
      )
    }
  }
})
