/** Bundles a program with all its packages, in as many files as its lazy imports need. */
import * as fs from "node:fs"
import { isBuiltin } from "node:module"
import * as Path from "node:path"
import type { InputOptions, OutputOptions, Plugin, RolldownOutput } from "rolldown"

export const ROOT = Path.resolve(import.meta.dirname, "..")

export type Output = RolldownOutput["output"]

/** Bundles the entries. The options are rolldown's. */
export const bundle = async (input: InputOptions, output: OutputOptions = {}): Promise<Output> => {
  const { rolldown } = await import("rolldown")
  const bundle = await rolldown({ platform: "node", logLevel: "silent", ...input })
  const { output: parts } = await bundle.generate({ format: "esm", ...output })
  await bundle.close()
  return parts
}

/** Marks the modules of `nodeModules`. */
const MARK = "\0"

/**
 * Takes Node's own modules from `process.getBuiltinModule`. An `import` reads all properties of a module, and so loads
 * what is otherwise loaded on demand: with `node:http` Node's client for `fetch`, 70 ms of CPU in each start.
 */
const nodeModules: Plugin = {
  name: "node-modules",
  // The bundler's own module defines what the replacements need.
  resolveId: (id, importer) => (isBuiltin(id) && importer?.startsWith(MARK) !== true ? MARK + id : null),
  load: (id) =>
    id.startsWith(MARK) && isBuiltin(id.slice(MARK.length))
      ? `module.exports = process.getBuiltinModule(${JSON.stringify(id.slice(MARK.length))})`
      : null
}

/** Bundles the command `till`: `main.js`, and one file for each lazy import. */
export const bundleServer = (output: OutputOptions = {}): Promise<Output> =>
  bundle({ input: Path.join(ROOT, "src/main.ts"), plugins: [nodeModules] }, output)

/** The files that the bundled command reads beside itself: folders of the sources, and their places in the bundle. */
export const SERVER_FILES: Readonly<Record<string, string>> = {
  "src/html/assets": "assets",
  "docs/guide": "guide"
}

/** Returns the text of a bundled file. */
export const contentOf = (part: Output[number]): string | Uint8Array =>
  part.type === "chunk" ? part.code : part.source

/** Writes the bundled files into a folder. */
export const write = (parts: Output, folder: string): void => {
  for (const part of parts) {
    const file = Path.join(folder, part.fileName)
    fs.mkdirSync(Path.dirname(file), { recursive: true })
    fs.writeFileSync(file, contentOf(part))
  }
}

/** Writes the bundled command and the files that it reads into a folder. */
export const writeServer = (parts: Output, folder: string): void => {
  write(parts, folder)
  for (const [from, to] of Object.entries(SERVER_FILES)) {
    fs.cpSync(Path.join(ROOT, from), Path.join(folder, to), { recursive: true })
  }
}
