/**
 * Clients that other projects' generators make from the contract compile strictly, and carry out a payment, a list and
 * a decline: openapi-typescript with openapi-fetch, @hey-api/openapi-ts, and orval.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as Path from "node:path"
import { promisify } from "node:util"
import * as Document from "../../../src/api/openapi/Document.ts"
import { type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"

const ROOT = Path.join(import.meta.dirname, "../../..")
const MODULES = Path.join(ROOT, "node_modules")

let server: MemoryTillWithPages
let folder: string
beforeAll(async () => {
  server = await start()
  folder = fs.mkdtempSync(Path.join(os.tmpdir(), "till-clients-"))
  fs.symlinkSync(MODULES, Path.join(folder, "node_modules"))
  write("package.json", { type: "module" })
  write("openapi.json", Document.make(server.url))
})
afterAll(async () => {
  fs.rmSync(folder, { recursive: true, force: true })
  await server.close()
})

const write = (name: string, content: object | string): void =>
  fs.writeFileSync(Path.join(folder, name), typeof content === "string" ? content : JSON.stringify(content))

/** Runs a program of `node_modules` in the folder, and returns what it prints. */
const run = async (script: string, ...parameters: ReadonlyArray<string>): Promise<string> => {
  const hook = Path.join(ROOT, "test/support/TypeScript5.ts")
  const env = {
    ...process.env,
    TILL_API_KEY: server.secretTest,
    TILL_URL: server.url,
    NODE_OPTIONS: `--import=${hook}`
  }
  const file = Path.isAbsolute(script) ? script : Path.join(MODULES, script)
  const { stdout } = await promisify(execFile)(process.execPath, [file, ...parameters], { cwd: folder, env }).catch(
    (error) => assert.fail(`${script}: ${error.stdout} ${error.stderr}`)
  )
  return stdout
}

const PREAMBLE = `
declare const process: { readonly env: Readonly<Record<string, string>> }
const baseUrl = process.env["TILL_URL"]!
const authorization = \`Basic \${btoa(\`\${process.env["TILL_API_KEY"]}:\`)}\`
const headers = () => ({ "Idempotency-Key": crypto.randomUUID() })
const paid = { amount: 2000, currency: "usd", payment_method: "pm_card_visa", confirm: true }
`

const CLIENTS = {
  "openapi-typescript and openapi-fetch": {
    generate: () => run("openapi-typescript/bin/cli.js", "openapi.json", "-o", "schema.ts"),
    program: `import createClient from "openapi-fetch"
import type { paths } from "./schema"
${PREAMBLE}
const till = createClient<paths>({ baseUrl, headers: { authorization } })
const customer = (await till.POST("/v1/customers", { params: { header: headers() }, body: { name: "Jenny" } })).data!
const body = { ...paid, customer: customer.id }
const payment = (await till.POST("/v1/payment_intents", { params: { header: headers() }, body })).data!
const query = { customer: customer.id, limit: 1 }
const { data } = (await till.GET("/v1/payment_intents", { params: { query } })).data!
const declined = { ...paid, payment_method: "pm_card_declined" }
const { error } = await till.POST("/v1/payment_intents", { params: { header: headers() }, body: declined })
console.log(payment.status, payment.id === data[0]!.id, error!.error.decline_code)
`
  },
  "@hey-api/openapi-ts": {
    generate: () => run("@hey-api/openapi-ts/bin/run.js", "-i", "openapi.json", "-o", "hey"),
    program: `import { client } from "./hey/client.gen"
import { customersCreate, paymentIntentsCreate, paymentIntentsList } from "./hey/sdk.gen"
${PREAMBLE}
client.setConfig({ baseUrl, headers: { authorization } })
const customer = (await customersCreate({ headers: headers(), body: { name: "Jenny" } })).data!
const payment = (await paymentIntentsCreate({ headers: headers(), body: { ...paid, customer: customer.id } })).data!
const { data } = (await paymentIntentsList({ query: { customer: customer.id, limit: 1 } })).data!
const declined = { ...paid, payment_method: "pm_card_declined" }
const { error } = await paymentIntentsCreate({ headers: headers(), body: declined })
console.log(payment.status, payment.id === data[0]!.id, error!.error.decline_code)
`
  },
  orval: {
    generate: () => {
      const till = {
        input: "./openapi.json",
        output: { target: "./orval/till.ts", client: "fetch", baseUrl: server.url }
      }
      write("orval.config.mjs", `export default ${JSON.stringify({ till })}\n`)
      return run("orval/dist/bin/orval.mjs", "--config", "orval.config.mjs")
    },
    program: `import { customersCreate, paymentIntentsCreate, paymentIntentsList } from "./orval/till"
${PREAMBLE}
const options = () => ({ headers: { authorization, ...headers() } })
const customer = await customersCreate({ name: "Jenny" }, options())
if (customer.status !== 200) throw new Error(baseUrl)
const payment = await paymentIntentsCreate({ ...paid, customer: customer.data.id }, options())
const page = await paymentIntentsList({ customer: customer.data.id, limit: 1 }, { headers: { authorization } })
const declined = await paymentIntentsCreate({ ...paid, payment_method: "pm_card_declined" }, options())
if (payment.status !== 200 || page.status !== 200 || declined.status !== 402) throw new Error("unexpected statuses")
console.log(payment.data.status, payment.data.id === page.data.data[0]!.id, declined.data.error.decline_code)
`
  }
} as const

describe("a client of the contract", () => {
  it.each(Object.entries(CLIENTS))("by %s compiles strictly and pays", async (_, { generate, program }) => {
    await generate()
    write("flow.ts", program)
    write("tsconfig.json", {
      compilerOptions: {
        target: "ES2024",
        lib: ["ES2024", "DOM", "DOM.Iterable"],
        module: "ESNext",
        moduleResolution: "Bundler",
        types: [],
        strict: true,
        noEmit: true
      },
      files: ["flow.ts"]
    })
    await run("typescript/bin/tsc", "-p", "tsconfig.json")
    await run("rolldown/bin/cli.mjs", "flow.ts", "--file", "flow.mjs", "--platform", "node")
    assert.strictEqual(await run(Path.join(folder, "flow.mjs")), "succeeded true generic_decline\n")
  })
})
