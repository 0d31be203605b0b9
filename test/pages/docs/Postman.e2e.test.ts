/** The Postman collection is small, passes as a whole, and leaves what the environment has. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as Path from "node:path"
import { promisify } from "node:util"
import { layerFreshLog } from "../../support/RequestLog.ts"
import { type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"

const NEWMAN = Path.join(import.meta.dirname, "../../../node_modules/newman/bin/newman.js")

let server: MemoryTillWithPages
let folder: string
beforeAll(async () => {
  server = await start({ requestLog: layerFreshLog({ batchMillis: 20 }) })
  folder = fs.mkdtempSync(Path.join(os.tmpdir(), "till-postman-"))
})
afterAll(async () => {
  fs.rmSync(folder, { recursive: true, force: true })
  await server.close()
})

interface Report {
  readonly run: {
    readonly stats: { readonly assertions: { readonly total: number; readonly failed: number } }
    readonly failures: ReadonlyArray<unknown>
    readonly executions: ReadonlyArray<{ readonly item: { readonly name: string }; readonly response?: unknown }>
  }
}

/** Runs the collection as a user would, with the key and further variables. */
const newman = async (...variables: ReadonlyArray<string>): Promise<Report["run"]> => {
  const report = Path.join(folder, "report.json")
  const settings = [`api_key=${server.secretTest}`, ...variables].flatMap((one) => ["--env-var", one])
  const parameters = ["run", "collection.json", ...settings, "-r", "json", "--reporter-json-export", report]
  await promisify(execFile)(process.execPath, [NEWMAN, ...parameters], { cwd: folder, maxBuffer: 2 ** 26 }).catch(
    () => undefined
  )
  return (JSON.parse(fs.readFileSync(report, "utf8")) as Report).run
}

describe("the Postman collection", () => {
  it("passes, and keeps data, keys and clock unless a variable allows otherwise", async () => {
    const text = await (await fetch(`${server.url}/docs/postman.json`)).text()
    assert.isBelow(text.length, 2 ** 20)
    fs.writeFileSync(Path.join(folder, "collection.json"), text)
    const customer = await server.post("/v1/customers", { name: "Kept" })
    const keys = await server.get("/v1/api_keys")

    const careful = await newman()
    assert.deepStrictEqual(careful.failures, [])
    assert.isAbove(careful.stats.assertions.total, 100)
    assert.strictEqual((await server.get(`/v1/customers/${customer.id}`)).name, "Kept")
    assert.deepStrictEqual(await server.get("/v1/api_keys"), keys)

    const all = await newman("allow_lasting_changes=yes")
    assert.deepStrictEqual(all.failures, [])
    assert.isAbove(all.stats.assertions.total, careful.stats.assertions.total)
    assert.strictEqual((await server.get(`/v1/customers/${customer.id}`)).error.code, "resource_missing")
  })
})
