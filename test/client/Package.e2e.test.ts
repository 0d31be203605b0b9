/**
 * Installs `till/client` as built by `npm run prepare` in another project, through the package's `exports`. A strict
 * compiler without Till's own options compiles the README's programs with it.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as Path from "node:path"

const root = Path.resolve(import.meta.dirname, "../..")
const project = fs.mkdtempSync(Path.join(os.tmpdir(), "till-package-"))
afterAll(() => fs.rmSync(project, { recursive: true }))

/** Runs the compiler and returns its errors. */
const compile = (args: ReadonlyArray<string>, directory: string): string => {
  const tsc = Path.join(root, "node_modules/typescript/bin/tsc")
  try {
    execFileSync(process.execPath, [tsc, ...args], { cwd: directory, encoding: "utf8" })
    return ""
  } catch (error) {
    return (error as { readonly stdout: string }).stdout
  }
}

const linkPackages = (names: ReadonlyArray<string>, modules: string) => {
  for (const name of names) {
    fs.mkdirSync(Path.dirname(Path.join(modules, name)), { recursive: true })
    fs.symlinkSync(Path.join(root, "node_modules", name), Path.join(modules, name))
  }
}

/** Installs the package in a project, as a copy: a link would lead back to Till's sources. */
const install = () => {
  const modules = Path.join(project, "node_modules")
  fs.writeFileSync(Path.join(project, "package.json"), JSON.stringify({ name: "shop", type: "module" }))
  linkPackages(["effect", "@types/node", "undici-types"], modules)
  const installed = Path.join(modules, "till")
  assert.strictEqual(compile(["-p", "tsconfig.client.json", "--outDir", Path.join(installed, "dist")], root), "")
  fs.copyFileSync(Path.join(root, "package.json"), Path.join(installed, "package.json"))
  const readme = fs.readFileSync(Path.join(root, "README.md"), "utf8")
  const programs = [...readme.matchAll(/```ts\n(.*?)```/gs)].map(([, program]) => program!)
  assert.isAbove(programs.length, 1)
  return programs.map((program, index) => {
    fs.writeFileSync(Path.join(project, `${index}.mts`), program)
    return `${index}.mts`
  })
}

/** Runs a module in that project and returns its output. */
const run = (program: string): string => {
  const args = ["--no-experimental-strip-types", "--input-type=module", "-e", program]
  return execFileSync(process.execPath, args, { cwd: project, encoding: "utf8" }).trim()
}

describe("the package till/client", () => {
  let files: ReadonlyArray<string> = []
  beforeAll(() => {
    files = install()
  })

  it("compiles in another strict project, with each kind of module resolution, and runs", () => {
    for (const [module, moduleResolution] of [
      ["nodenext", "nodenext"],
      ["esnext", "bundler"]
    ] as const) {
      const options = { strict: true, target: "es2023", module, moduleResolution, types: ["node"], noEmit: true }
      fs.writeFileSync(Path.join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files }))
      assert.strictEqual(compile([], project), "", moduleResolution)
    }
    assert.strictEqual(
      run('import { verifyWebhook } from "till/client"; console.log(typeof verifyWebhook)'),
      "function"
    )
  })

  it("reads names correctly in a process whose JSON.parse misreads them, without changing JSON.parse", () => {
    const metadata = String.raw`{"a":0,"\n":0}`
    const read = run(`
      import { createHmac } from "node:crypto"
      import { verifyWebhook } from "till/client"
      const parse = JSON.parse
      parse(${JSON.stringify(String.raw`{"a":0,"\\":0}`)})
      const body = ${JSON.stringify(`{"id":"evt_1","type":"customer.updated","metadata":${metadata}}`)}
      const time = Math.floor(Date.now() / 1000)
      const signature = createHmac("sha256", "whsec_a").update("v1=" + time + "." + body).digest("hex")
      const event = verifyWebhook({ body, header: "t=" + time + ",v1=" + signature, secret: "whsec_a" })
      console.log(JSON.stringify([event.metadata, JSON.parse === parse]))
    `)
    assert.strictEqual(read, `[${metadata},true]`)
  })
})
