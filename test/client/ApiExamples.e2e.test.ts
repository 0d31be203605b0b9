/**
 * The programs of `examples/api`, each run unchanged against Till. The tests of a language that is not installed are
 * skipped, with the reason in their titles.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { execFile, spawnSync } from "node:child_process"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import * as os from "node:os"
import * as Path from "node:path"
import { promisify } from "node:util"
import { type MemoryTill, start } from "../support/MemoryTill.ts"

interface Language {
  readonly name: string
  /** The command that prints the language's version. */
  readonly version: ReadonlyArray<string>
  readonly command: readonly [string, ...Array<string>]
}

const EXAMPLES = Path.resolve(import.meta.dirname, "../../examples/api")

const LANGUAGES: ReadonlyArray<Language> = [
  { name: "Python", version: ["python3", "--version"], command: ["python3", "till.py"] },
  { name: "PHP", version: ["php", "--version"], command: ["php", "till.php"] },
  { name: "Go", version: ["go", "version"], command: ["go", "run", "till.go"] }
]

const isThere = ({ version: [command, ...args] }: Language): boolean => spawnSync(command!, args).status === 0

/** Forwards requests to Till, and drops the connection instead of the first answer to each POST. */
const losing = async (till: string): Promise<Server> => {
  const seen = new Set<string>()
  const server = createServer(async (request, response) => {
    const chunks: Array<Buffer> = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const headers = Object.fromEntries(
      ["authorization", "content-type", "idempotency-key"].flatMap((name) => {
        const value = request.headers[name]
        return typeof value === "string" ? [[name, value] as const] : []
      })
    )
    const method = request.method!
    const body = method === "POST" ? { body: Buffer.concat(chunks) } : {}
    const answer = await fetch(till + request.url!, { method, headers, ...body })
    const text = await answer.text()
    const key = headers["idempotency-key"]
    if (key !== undefined && !seen.has(key)) {
      seen.add(key)
      response.destroy()
      return
    }
    response.writeHead(answer.status, { "content-type": "application/json" }).end(text)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return server
}

describe.each(LANGUAGES)("the API from $name", (language) => {
  const title = isThere(language) ? "" : ` (${language.name} is not installed)`

  describe.runIf(isThere(language))(`as in examples/api${title}`, () => {
    let till: MemoryTill
    let proxy: Server
    beforeAll(async () => {
      till = await start()
      proxy = await losing(till.url)
    })
    afterAll(async () => {
      proxy.close()
      await till.close()
    })

    const run = async (url: string, key: string) => {
      const [command, ...args] = language.command
      const env = { PATH: process.env["PATH"], HOME: os.homedir(), TILL_URL: url, TILL_API_KEY: key }
      const { stdout } = await promisify(execFile)(command, args, { cwd: EXAMPLES, env, timeout: 600_000 })
      return stdout
    }

    const EXPECTED = new RegExp(
      [
        String.raw`^cus_\w+ is jenny@example\.com`,
        String.raw`(pi_\w+) succeeded: 2450 usd`,
        String.raw`\1 again, not charged twice`,
        String.raw`insufficient_funds: Your card has insufficient funds\.`,
        String.raw`- pi_\w+ requires_payment_method`,
        String.raw`- \1 succeeded\n$`
      ].join("\n"),
      "u"
    )

    it("charges once, reports a decline and reads every page", async () => {
      assert.match(await run(till.url, till.keys.secretTest), EXPECTED)
    })

    it("charges once if answers are lost", async () => {
      const { port } = proxy.address() as AddressInfo
      assert.match(await run(`http://127.0.0.1:${port}`, till.keys.secretTest), EXPECTED)
    })

    it("refuses a key of live mode", async () => {
      const output = await run(till.url, "sk_live_x").catch((error: { stdout: string; stderr: string }) =>
        error.stdout.concat(error.stderr)
      )
      assert.include(output, "TILL_API_KEY must hold a secret key of test mode")
    })
  })
})
