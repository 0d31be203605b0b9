import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import * as SecretFile from "../../src/domain/SecretFile.ts"
import { load, put, replace } from "../../src/postgres/InstallationSecret.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"

const hexOf = ({ secrets }: SecretFile.SecretFile): string => Buffer.from(Redacted.value(secrets[0]!)).toString("hex")

describe("InstallationSecret", () => {
  it.effect("is created once, in a folder that need not exist, and readable by its owner only", () =>
    Effect.gen(function* () {
      const folder = Path.join(yield* temporaryFolder(), "not", "there")
      const secrets = yield* Effect.forEach([1, 2, 3], () => load(Path.join(folder, "secret")), {
        concurrency: "unbounded"
      })
      const [first, ...others] = secrets.map(hexOf)
      assert.strictEqual(first?.length, 64)
      assert.deepStrictEqual(others, [first, first])
      assert.strictEqual(fs.statSync(Path.join(folder, "secret")).mode & 0o777, 0o600)
      assert.deepStrictEqual(fs.readdirSync(folder), ["secret"])
      const elsewhere = yield* load(Path.join(yield* temporaryFolder(), "secret"))
      assert.notStrictEqual(hexOf(elsewhere), first)
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
      assert.strictEqual(hexOf(secret), bytes)
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

  it.effect("operation.roll: is replaced whole, also behind a link, and readable by its owner only", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder()
      const [file, link] = [Path.join(folder, "real"), Path.join(folder, "secret")]
      const before = yield* load(file)
      fs.symlinkSync("real", link)
      const both = SecretFile.withNewSecret(before)
      yield* replace(link, both)
      assert.isTrue(fs.lstatSync(link).isSymbolicLink())
      assert.strictEqual(fs.statSync(file).mode & 0o777, 0o600)
      assert.strictEqual(SecretFile.textOf(yield* load(link)), SecretFile.textOf(both))
      assert.deepStrictEqual(fs.readdirSync(folder), ["real", "secret"])
    })
  )

  it.effect("takes the place of a backup's if it has all of its secrets, and is kept", () =>
    Effect.gen(function* () {
      const file = Path.join(yield* temporaryFolder(), "secret")
      const before = yield* load(file)
      const both = SecretFile.withNewSecret(before)
      const after = SecretFile.withoutOldSecret(both)
      yield* replace(file, both)
      for (const of of [before, both, after]) yield* put(file, Redacted.make(SecretFile.textOf(of)))
      assert.strictEqual(SecretFile.textOf(yield* load(file)), SecretFile.textOf(both))
      yield* replace(file, after)
      const refused = yield* Effect.flip(put(file, Redacted.make(SecretFile.textOf(before))))
      assert.include(refused.message, `${file} is another installation's secret`)
    })
  )
})
