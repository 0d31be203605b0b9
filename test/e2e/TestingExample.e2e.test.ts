/** The tests of `examples/testing` pass against the real Till, which ends with them. */
import { assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as Path from "node:path"
import { promisify } from "node:util"

const root = Path.resolve(import.meta.dirname, "../..")

describe("the example of a test suite", () => {
  it("passes, starts Till once, and leaves nothing behind", async () => {
    const folder = fs.mkdtempSync(Path.join(os.tmpdir(), "till-testing-"))
    try {
      // Resolves the client as after the installation that the README describes.
      const config = {
        root: Path.join(root, "examples/testing"),
        cacheDir: folder,
        resolve: { alias: { "till-payments-client": Path.join(root, "src/client/index.ts") } },
        // A merchant is created by a process, and this test runs beside others.
        test: { globalSetup: "till.setup.mjs", include: ["*.test.mjs"], hookTimeout: 60_000 }
      }
      const file = Path.join(folder, "vitest.config.mjs")
      fs.writeFileSync(file, `export default ${JSON.stringify(config)}`)
      const env = {
        PATH: process.env["PATH"],
        TMPDIR: folder,
        TILL_COMMAND: Path.join(root, "src/cli/till.sh"),
        // A shop's own database, which must stay untouched.
        DATABASE_URL: "postgres://shop@127.0.0.1:1/shop"
      }
      const vitest = Path.join(root, "node_modules/vitest/vitest.mjs")
      const args = [vitest, "run", "--no-color", "--config", file]
      const { stdout } = await promisify(execFile)(process.execPath, args, { env, cwd: folder })
      assert.match(stdout, /Tests {2}3 passed \(3\)/)
      assert.deepStrictEqual(
        fs.readdirSync(folder).filter((name) => name.startsWith("till-")),
        []
      )
    } finally {
      fs.rmSync(folder, { recursive: true })
    }
  })
})
