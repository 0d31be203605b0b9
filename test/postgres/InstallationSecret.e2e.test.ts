import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import { promisify } from "node:util"
import { temporaryFolder } from "../support/TemporaryFolder.ts"

describe("InstallationSecret", () => {
  it.live(
    "operation.secret: is created once by several processes that start at the same time, and all read the same one",
    () =>
      Effect.gen(function* () {
        const file = Path.join(yield* temporaryFolder(), "secrets", "till")
        const { href } = new URL("../../src/postgres/InstallationSecret.ts", import.meta.url)
        const program = `
          import { Effect, Redacted } from "effect"
          import { load } from ${JSON.stringify(href)}
          while (Date.now() < Number(process.argv[2])) {}
          const { secrets } = await Effect.runPromise(load(process.argv[1]))
          console.log(Buffer.from(Redacted.value(secrets[0])).toString("hex"))`
        const at = String(Date.now() + 1500)
        const starts = Array.from({ length: 6 }, () =>
          promisify(execFile)(process.execPath, ["--input-type=module", "-e", program, file, at], {
            cwd: import.meta.dirname
          })
        )
        const secrets = (yield* Effect.promise(() => Promise.all(starts))).map(({ stdout }) => stdout.trim())
        assert.match(secrets[0]!, /^[0-9a-f]{64}$/)
        assert.deepStrictEqual(new Set(secrets), new Set([fs.readFileSync(file, "utf8").trim()]))
        assert.deepStrictEqual(fs.readdirSync(Path.dirname(file)), ["till"])
      })
  )
})
