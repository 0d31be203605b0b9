import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { load } from "../../src/postgres/InstallationSecret.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"

describe("InstallationSecret", () => {
  it.effect("is created once, in a folder that need not exist, and readable by its owner only", () =>
    Effect.gen(function* () {
      const folder = Path.join(yield* temporaryFolder(), "not", "there")
      const secrets = yield* Effect.forEach([1, 2, 3], () => load(Path.join(folder, "secret")), {
        concurrency: "unbounded"
      })
      const [first, ...others] = secrets.map((secret) => Buffer.from(Redacted.value(secret)).toString("hex"))
      assert.strictEqual(first?.length, 64)
      assert.deepStrictEqual(others, [first, first])
      assert.strictEqual(fs.statSync(Path.join(folder, "secret")).mode & 0o777, 0o600)
      assert.deepStrictEqual(fs.readdirSync(folder), ["secret"])
      const elsewhere = yield* load(Path.join(yield* temporaryFolder(), "secret"))
      assert.notStrictEqual(Buffer.from(Redacted.value(elsewhere)).toString("hex"), first)
    })
  )

  it.effect("is read from a read-only folder, as mounted secrets are", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder()
      const bytes = "0123456789abcdef".repeat(4)
      fs.mkdirSync(Path.join(folder, "..data"))
      fs.writeFileSync(Path.join(folder, "..data", "secret"), bytes)
      fs.symlinkSync(Path.join("..data", "secret"), Path.join(folder, "secret"))
      fs.chmodSync(folder, 0o500)
      const secret = yield* load(Path.join(folder, "secret"))
      assert.strictEqual(Buffer.from(Redacted.value(secret)).toString("hex"), bytes)
      fs.chmodSync(folder, 0o700)
    })
  )

  it.effect("is refused if it is damaged, instead of replaced by another", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder()
      fs.writeFileSync(Path.join(folder, "secret"), "abcd\n")
      const error = yield* Effect.flip(load(Path.join(folder, "secret")))
      assert.strictEqual(error.message, `${folder}/secret is damaged: it must hold 32 bytes in hex.`)
    })
  )
})
