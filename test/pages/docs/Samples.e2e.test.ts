/**
 * The samples of the reference and the commands of the guides work as they are printed: each in its own process,
 * against a fresh environment. Python and PHP run where they are installed.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as Path from "node:path"
import { promisify } from "node:util"
import * as Document from "../../../src/api/openapi/Document.ts"
import { OUTCOMES } from "../../../src/api/openapi/Outcomes.ts"
import { GUIDES } from "../../../src/pages/docs/Guides.ts"
import { CLIENT_MODULE, type Sample, samplesOf } from "../../../src/pages/docs/Samples.ts"
import { begin } from "../../support/fixtures/Operations.ts"
import { layerFreshLog } from "../../support/RequestLog.ts"
import { type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"

const ROOT = Path.join(import.meta.dirname, "../../..")

const run = promisify(execFile)

/** The operation that deletes all data comes last. */
const operationsOf = (document: Document.Document): ReadonlyArray<string> => {
  const all = Object.values(document.paths).flatMap((item) => Object.values(item).map(({ operationId }) => operationId))
  return [...all.filter((id) => id !== "test_helpers.delete_data"), "test_helpers.delete_data"]
}

const isInstalled = async (command: string): Promise<boolean> => {
  try {
    await run(command, ["--version"])
    return true
  } catch {
    return false
  }
}

let server: MemoryTillWithPages
let document: Document.Document
let folder: string
beforeAll(async () => {
  server = await start({ requestLog: layerFreshLog({ batchMillis: 20 }) })
  document = Document.make(server.url)
  folder = fs.mkdtempSync(Path.join(os.tmpdir(), "till-samples-"))
})
afterAll(async () => {
  fs.rmSync(folder, { recursive: true, force: true })
  await server.close()
})

const sampleOf = (operationId: string, language: Sample["language"]): string =>
  samplesOf(document)(operationId).find((sample) => sample.language === language)!.code

const environment = () => ({ ...process.env, TILL_API_KEY: server.secretTest })

/** Runs a program, and returns what it prints. A request log shows a request a moment after its answer. */
const output = async (command: string, parameters: ReadonlyArray<string>): Promise<string> => {
  const { stdout } = await run(command, [...parameters], { env: environment(), cwd: folder, maxBuffer: 2 ** 24 })
  return stdout
}

/** The events of the environment, newest first. */
const eventTypes = async (): Promise<ReadonlyArray<string>> =>
  (await server.get("/v1/events?limit=100")).data.map(({ type }: { type: string }) => type)

describe("the sample of every operation", () => {
  it("works in curl, and causes no other events than those that are documented", async () => {
    for (const operationId of operationsOf(document)) {
      await server.request("DELETE", "/v1/test_helpers/data")
      await server.post("/v1/payment_intents", { amount: 1, currency: "usd" })
      await begin(server)
      const code = sampleOf(operationId, "curl")
      const parts = code.split("\n\n")
      if (parts.length > 1) {
        // The setup runs first, so that its events do not count.
        await output("bash", [
          "-ec",
          `${parts.slice(0, -1).join("\n\n")}\ndeclare -p | grep -E '^declare -- [a-z_]+=' > variables`
        ])
      }
      const before = (await eventTypes()).length
      const last = parts.length === 1 ? code : `source variables\n${parts.at(-1)!}`
      const printed = await output("bash", ["-ec", last])
      const answer = JSON.parse(printed)
      assert.isNotOk(answer.error, `${operationId}: ${printed}`)
      assert.property(answer, "object", operationId)
      if (operationId === "test_helpers.delete_data") continue
      const caused = (await eventTypes()).slice(0, -before)
      for (const type of caused) assert.include(OUTCOMES[operationId]!.events, type, operationId)
      if (OUTCOMES[operationId]!.events.length > 0 && operationId !== "test_helpers.advance_clock") {
        assert.isNotEmpty(caused, operationId)
      }
    }
  })

  it("compiles strictly and works in TypeScript, and the programs of the guides compile", async () => {
    const modules = Path.join(folder, "node_modules", CLIENT_MODULE)
    fs.mkdirSync(modules, { recursive: true })
    fs.writeFileSync(Path.join(folder, "package.json"), JSON.stringify({ type: "module" }))
    const client = `export * from ${JSON.stringify(Path.join(ROOT, "src/client/index.ts"))}\n`
    // Node strips no types within `node_modules`, so it runs the script.
    for (const file of ["client.ts", "client.js"]) fs.writeFileSync(Path.join(modules, file), client)
    const exports = { types: "./client.ts", default: "./client.js" }
    fs.writeFileSync(Path.join(modules, "package.json"), JSON.stringify({ type: "module", exports }))
    const files = operationsOf(document).map((id) => {
      fs.writeFileSync(Path.join(folder, `${id}.ts`), `${sampleOf(id, "typescript")}\n`)
      return `${id}.ts`
    })
    const programs = GUIDES.flatMap((guide) =>
      blocksOf(guide, "ts").map((block, index) => {
        fs.writeFileSync(Path.join(folder, `${guide}-${index}.ts`), block)
        return `${guide}-${index}.ts`
      })
    )
    assert.isAbove(programs.length, 2)
    const config = {
      extends: Path.join(ROOT, "tsconfig.json"),
      compilerOptions: {
        typeRoots: [Path.join(ROOT, "node_modules/@types")],
        noPropertyAccessFromIndexSignature: false
      },
      include: [],
      files: [...files, ...programs]
    }
    fs.writeFileSync(Path.join(folder, "tsconfig.json"), JSON.stringify(config))
    const tsc = Path.join(ROOT, "node_modules/typescript/bin/tsc")
    await output(process.execPath, [tsc, "-p", "tsconfig.json", "--noEmit"]).catch((error) =>
      assert.fail(`${error.stdout}`)
    )
    fs.writeFileSync(Path.join(folder, "all.ts"), files.map((file) => `await import("./${file}")`).join("\n"))
    await server.post("/v1/customers", {})
    await begin(server)
    await output(process.execPath, ["all.ts"])
  })

  it.each([
    ["python", "python3", "-c"],
    ["php", "php", "-r"]
  ] as const)("works in %s", async (language, command, flag) => {
    if (!(await isInstalled(command))) return console.warn(`The samples in ${language} are left out: no ${command}.`)
    await server.post("/v1/customers", {})
    await begin(server)
    for (const operationId of operationsOf(document)) {
      const code = sampleOf(operationId, language).replace(/^<\?php\n/, "")
      const printed = await output(command, [flag, code]).catch((error) => assert.fail(`${operationId}: ${error}`))
      assert.include(printed, "object", operationId)
    }
  })
})

/** The blocks of code of a guide in a language. */
const blocksOf = (guide: string, language: string): ReadonlyArray<string> => {
  const text = fs.readFileSync(Path.join(ROOT, `docs/guide/${guide}.md`), "utf8")
  const blocks = text.split(/^```/m).filter((_, index) => index % 2 === 1)
  return blocks.filter((block) => block.startsWith(`${language}\n`)).map((block) => block.slice(language.length + 1))
}

/** Commands of a guide, which run in one shell, as a reader would run them. */
const commandsOf = (guide: string): string =>
  blocksOf(guide, "sh")
    .filter((block) => !block.startsWith("export TILL_API_KEY="))
    .join("\n")
    .replaceAll("http://localhost:4242", server.url)

describe("the commands of a guide", () => {
  it.each(GUIDES.filter((guide) => !["live", "gateways", "from-stripe"].includes(guide)))("%s work", async (guide) => {
    const commands = commandsOf(guide)
    assert.include(commands, "curl")
    const printed = await output("bash", ["-ec", commands.replaceAll("curl ", "curl -sS ")])
    const errors = [...printed.matchAll(/"code":"(\w+)"/g)].map(([, code]) => code)
    // The guide about errors shows one.
    assert.deepStrictEqual(
      errors.filter((code) => code !== "card_declined"),
      [],
      printed
    )
  })
})
