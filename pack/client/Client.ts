/**
 * The client's package: `TillClient` and `verifyWebhook` without any dependency, for `import` and `require`; `Till`
 * for Effect programs, which bring Effect; and the types of the browser's `checkout.js`.
 *
 * Effect's runtime is bundled, as far as the client uses it. The types are those of the sources, but the contract's are
 * written out (ContractTypes.ts).
 */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import type { InputOptions } from "rolldown"
import { bundle, type Output, ROOT, write } from "../Bundle.ts"
import { CLIENT_NAME, copyDocuments, rootManifest, sharedFields, writeManifest } from "../Manifest.ts"
import { noticesOf, packagesOf } from "../Packages.ts"
import { contractTypes } from "./ContractTypes.ts"

const SOURCES = Path.join(ROOT, "src/client")
const source = (name: string): string => Path.join(SOURCES, name)

const INPUT: InputOptions = {
  // No runtime's own modules are imported.
  platform: "neutral",
  resolve: {
    mainFields: ["module", "main"],
    alias: {
      "node:crypto": Path.join(import.meta.dirname, "NodeCrypto.ts"),
      "node:util/types": Path.join(import.meta.dirname, "NodeUtilTypes.ts")
    }
  }
}

/** Modules that the module for Effect programs shares with the other one, so that errors have one class each. */
const SHARED = new Set(["Errors.ts", "Webhook.ts", "WebhookVerification.ts"].map(source))

/** Keeps lines and names: Node prints the whole line of an error that nothing catches, and names are in its stack. */
const READABLE = { minify: { compress: true, mangle: false, codegen: false }, comments: false } as const

/** The code, once, for `require`; and the module for Effect programs. */
const bundles = async (): Promise<{ readonly index: Output; readonly effect: Output }> => ({
  index: await bundle(
    { ...INPUT, input: { index: source("index.ts") } },
    { ...READABLE, format: "cjs", entryFileNames: "[name].js" }
  ),
  effect: await bundle(
    {
      ...INPUT,
      input: { effect: source("effect.ts") },
      external: (id) => SHARED.has(id) || /^effect(?:\/|$)/u.test(id)
    },
    { ...READABLE, entryFileNames: "[name].mjs", paths: (id) => (SHARED.has(id) ? "./index.mjs" : id) }
  )
})

/** Returns the module that exports what the code for `require` exports: the same classes, whichever way they come. */
const moduleOf = ([entry]: Output): string => {
  const names = entry.exports.map((name) => `export const ${name} = client.${name}\n`)
  return `import client from "./index.js"\n\n${names.join("")}`
}

/** Matches the specifier of a relative import in a declaration. */
const RELATIVE = /(?<=(?:from |import\()")\.{1,2}\/[^"]+(?=")/gu

/** Returns the files that an import leads to, with the file itself. */
const reachable = (file: string, found = new Set<string>()): ReadonlySet<string> => {
  if (found.has(file)) return found
  found.add(file)
  for (const [specifier] of fs.readFileSync(file, "utf8").matchAll(RELATIVE)) {
    reachable(Path.resolve(Path.dirname(file), specifier.replace(/\.ts$/u, ".d.ts")), found)
  }
  return found
}

/** Makes a folder that sees the repository's packages, outside of `node_modules`, whose files emit nothing. */
const temporaryFolder = (): string => {
  const dist = Path.join(ROOT, "dist")
  fs.mkdirSync(dist, { recursive: true })
  return fs.mkdtempSync(Path.join(dist, "types-"))
}

/** Emits the declarations of the client into `types`, with the contract's types written out. */
const emitTypes = (types: string): void => {
  const sources = temporaryFolder()
  try {
    for (const folder of ["client", "domain", "json"]) {
      fs.cpSync(Path.join(ROOT, "src", folder), Path.join(sources, folder), { recursive: true })
    }
    fs.writeFileSync(Path.join(sources, "client/Contract.ts"), contractTypes())
    const options = {
      rootDir: sources,
      outDir: types,
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true
    }
    const files = ["client/index.ts", "client/effect.ts"]
    const config = { extends: Path.join(ROOT, "tsconfig.json"), compilerOptions: options, include: [], files }
    fs.writeFileSync(Path.join(sources, "tsconfig.json"), JSON.stringify(config))
    const tsc = Path.join(ROOT, "node_modules/typescript/bin/tsc")
    execFileSync(process.execPath, [tsc, "-p", sources], { stdio: ["ignore", "inherit", "inherit"] })
  } finally {
    fs.rmSync(sources, { recursive: true })
  }
}

/** Halves the indentation of the compiler, a third of such a file. */
const withTabs = (text: string): string =>
  text.replaceAll(/^(?: {4})+/gmu, (indentation) => "\t".repeat(indentation.length / 4))

/**
 * Puts the declarations beside the code. Those of the module for Effect programs are modules themselves, because Effect
 * is one; the others serve `import` and `require`.
 */
const writeTypes = (folder: string): void => {
  const types = temporaryFolder()
  try {
    emitTypes(types)
    const plain = reachable(Path.join(types, "client/index.d.ts"))
    const all = reachable(Path.join(types, "client/effect.d.ts"))
    const names = new Map([...plain, ...all].map((file) => [file, Path.basename(file, ".d.ts")]))
    if (new Set(names.values()).size < names.size) throw new Error("two modules with types have the same name")
    for (const [file, name] of names) {
      const text = withTabs(fs.readFileSync(file, "utf8")).replaceAll(RELATIVE, (specifier) => {
        const target = Path.resolve(Path.dirname(file), specifier.replace(/\.ts$/u, ".d.ts"))
        return `./${names.get(target)}.${plain.has(target) ? "js" : "mjs"}`
      })
      fs.writeFileSync(Path.join(folder, `${name}.d.${plain.has(file) ? "ts" : "mts"}`), text)
    }
    fs.writeFileSync(Path.join(folder, "index.d.mts"), 'export * from "./index.js"\n')
  } finally {
    fs.rmSync(types, { recursive: true })
  }
}

const manifest = () => ({
  ...sharedFields(CLIENT_NAME, "The TypeScript client of Till, a payments service that you run yourself"),
  main: "./index.js",
  module: "./index.mjs",
  types: "./index.d.ts",
  exports: {
    ".": {
      import: { types: "./index.d.mts", default: "./index.mjs" },
      require: { types: "./index.d.ts", default: "./index.js" }
    },
    "./effect": { types: "./effect.d.mts", default: "./effect.mjs" },
    "./checkout": { types: "./checkout.d.mts", default: "./checkout.mjs" },
    "./package.json": "./package.json"
  },
  sideEffects: false,
  engines: { node: ">=20" },
  peerDependencies: { effect: `^${rootManifest().dependencies["effect"]}` },
  peerDependenciesMeta: { effect: { optional: true } }
})

/** Makes the package's files in a new folder. */
export const stageClient = async (folder: string): Promise<void> => {
  fs.rmSync(folder, { recursive: true, force: true })
  fs.mkdirSync(folder, { recursive: true })
  const { effect, index } = await bundles()
  for (const parts of [index, effect]) write(parts, folder)
  fs.writeFileSync(Path.join(folder, "index.mjs"), moduleOf(index))
  writeTypes(folder)
  const assets = Path.join(ROOT, "src/html/assets")
  fs.copyFileSync(Path.join(assets, "checkout.js"), Path.join(folder, "checkout.mjs"))
  fs.copyFileSync(Path.join(assets, "checkout.d.ts"), Path.join(folder, "checkout.d.mts"))
  copyDocuments(folder)
  fs.copyFileSync(Path.join(import.meta.dirname, "README.md"), Path.join(folder, "README.md"))
  fs.writeFileSync(Path.join(folder, "THIRD_PARTY_NOTICES.md"), noticesOf(packagesOf([...index, ...effect])))
  writeManifest(folder, manifest())
}
