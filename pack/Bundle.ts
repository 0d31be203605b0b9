/** Bundles a program with all its packages, in as many files as its lazy imports need. */
import * as fs from "node:fs"
import * as Path from "node:path"
import type { InputOptions, OutputOptions, RolldownOutput } from "rolldown"

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

/** Bundles the command `till`: `main.js`, and one file for each lazy import. */
export const bundleServer = (output: OutputOptions = {}): Promise<Output> =>
  bundle({ input: Path.join(ROOT, "src/main.ts") }, output)

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
