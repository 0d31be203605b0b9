/** Layers import downwards only: whatever the table below does not allow is forbidden. */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as Path from "node:path"

const SOURCE = Path.join(import.meta.dirname, "..", "src")

/** Which layers a layer may import, beside itself. `*` is everything. */
const ALLOWED: Readonly<Record<string, ReadonlyArray<string>>> = {
  engine: [],
  domain: [],
  payments: ["domain", "engine"],
  webhooks: ["domain", "engine"],
  postgres: ["domain", "engine", "webhooks"],
  api: ["domain"],
  http: ["api", "payments", "engine", "domain"],
  pages: ["http", "api", "payments", "engine", "domain"],
  client: ["api", "domain"],
  control: ["payments", "engine"],
  config: ["domain"],
  app: ["*"],
  // What a merchant could do as well, a command does as one: through the API.
  cli: ["app", "client"],
  main: ["*"]
}

/** Layers that may use `effect` and Node's own modules, and no other package. */
const ONLY_EFFECT = ["engine", "domain"]

/** `src/engine/Actor.ts` lies in `engine`, `src/app.ts` is `app`. */
const layerOf = (file: string): string => file.split("/")[0]!.replace(/\.ts$/u, "")

/** What a source imports: static and dynamic imports, and re-exports. */
export const importsOf = (source: string): ReadonlyArray<string> => {
  const code = source.replaceAll(/\/\*[\s\S]*?\*\//gu, "").replaceAll(/^\s*\/\/.*$/gmu, "")
  const statements = code.matchAll(/(?:^|[;\n])\s*(?:import|export)\b[^"';]*?\bfrom\s*["']([^"']+)["']/gu)
  const bare = code.matchAll(/(?:^|[;\n])\s*import\s*["']([^"']+)["']/gu)
  const dynamic = code.matchAll(/\bimport\s*\(\s*["']([^"']+)["']/gu)
  return [...statements, ...bare, ...dynamic].map((match) => match[1]!)
}

/** One line for each import that the table forbids. `file` is relative to the sources. */
export const violationsOf = (file: string, source: string): ReadonlyArray<string> => {
  const layer = layerOf(file)
  const allowed = ALLOWED[layer]
  if (allowed === undefined) return [`${file} lies in the layer ${layer}, which is not in the table`]
  return importsOf(source).flatMap((specifier) => {
    const violation = `${file} must not import ${specifier}`
    if (!specifier.startsWith(".")) {
      const packageName = specifier.split("/")[0]!
      const free = !ONLY_EFFECT.includes(layer) || packageName === "effect" || specifier.startsWith("node:")
      return free ? [] : [violation]
    }
    const target = Path.posix.join(Path.posix.dirname(file), specifier)
    if (target.startsWith("..")) return [violation]
    const of = layerOf(target)
    return of === layer || allowed.includes("*") || allowed.includes(of) ? [] : [violation]
  })
}

const sources = fs
  .readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => file.split(Path.sep).join("/"))

describe("the layers", () => {
  it("import downwards only", () => {
    assert.isAbove(sources.length, 50)
    const violations = sources.flatMap((file) => violationsOf(file, fs.readFileSync(Path.join(SOURCE, file), "utf8")))
    assert.deepStrictEqual(violations, [])
  })

  it("are the ones that the table names", () => {
    assert.deepStrictEqual(
      [...new Set(sources.map(layerOf))].filter((layer) => ALLOWED[layer] === undefined),
      []
    )
  })
})

describe("the check of the layers", () => {
  const forbidden = Object.keys(ALLOWED).flatMap((layer) =>
    Object.keys(ALLOWED)
      .filter((other) => other !== layer && !ALLOWED[layer]!.includes(other) && !ALLOWED[layer]!.includes("*"))
      .map((other) => [layer, other] as const)
  )
  const fileIn = (layer: string) => (fs.existsSync(Path.join(SOURCE, `${layer}.ts`)) ? `${layer}.ts` : `${layer}/A.ts`)
  const pathTo = (from: string, to: string) => {
    const relative = Path.posix.relative(Path.posix.dirname(from), to)
    return relative.startsWith(".") ? relative : `./${relative}`
  }

  it.each(forbidden)("finds %s importing %s", (layer, other) => {
    const [file, path] = [fileIn(layer), pathTo(fileIn(layer), fileIn(other))]
    for (const statement of [
      `import { a } from "${path}"`,
      `import type { A } from "${path}"`,
      `import * as A from '${path}'`,
      `import {\n  a,\n  type B\n} from "${path}"`,
      `export * from "${path}"`,
      `export { a } from "${path}"`,
      `import "${path}"`,
      `const a = await import("${path}")`
    ]) {
      assert.deepStrictEqual(violationsOf(file, `/** A. */\n${statement}\n`), [`${file} must not import ${path}`])
    }
  })

  it.each(ONLY_EFFECT)("finds %s importing a package", (layer) => {
    for (const name of ["@effect/sql-pg", "@effect/platform-node", "pg", "effect-other"]) {
      assert.strictEqual(violationsOf(`${layer}/A.ts`, `import { a } from "${name}"`).length, 1)
    }
    for (const name of ["effect", "effect/Schema", "node:crypto"]) {
      assert.deepStrictEqual(violationsOf(`${layer}/A.ts`, `import { a } from "${name}"`), [])
    }
  })

  it("lets through what the table allows, and what only looks like an import", () => {
    assert.deepStrictEqual(violationsOf("payments/A.ts", 'import { a } from "../engine/Accounts.ts"'), [])
    assert.deepStrictEqual(violationsOf("engine/A.ts", 'import { a } from "./B.ts"'), [])
    assert.deepStrictEqual(violationsOf("engine/A.ts", '// import { a } from "../domain/B.ts"'), [])
    assert.deepStrictEqual(violationsOf("engine/A.ts", '/*\nimport { a } from "../domain/B.ts"\n*/'), [])
  })

  it("finds a layer that nobody has named, and a way out of the sources", () => {
    assert.strictEqual(violationsOf("utils/A.ts", "").length, 1)
    assert.strictEqual(violationsOf("engine/A.ts", 'import { a } from "../../test/engine/Toy.ts"').length, 1)
  })
})
