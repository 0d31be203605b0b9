/** The file of the installation's secret, through rolls (semantics operation.secret, operation.roll). */
import { assert, describe, it } from "@effect/vitest"
import { Redacted, Schema } from "effect"
import * as SecretFile from "../../src/domain/SecretFile.ts"

const hexOf = (key: SecretFile.Key): string => Buffer.from(Redacted.value(key)).toString("hex")
const hexesOf = (keys: ReadonlyArray<SecretFile.Key>): ReadonlyArray<string> => keys.map(hexOf)

const LASTING = ["account numbers", "card fingerprints", "password salts", "erasures"] as const
const PURPOSES = ["sealed secrets", "form tokens", "connections between runners", "backup manifests"] as const

/** Reads a file as another process does. */
const read = (file: SecretFile.SecretFile): SecretFile.SecretFile => SecretFile.parse(SecretFile.textOf(file))!

const Rolls = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5 }))

describe("the secret's file", () => {
  it.prop("keeps through rolls what must stay the same, and replaces all other keys", { rolls: Rolls }, ({ rolls }) => {
    const first = SecretFile.make()
    const signed = [hexOf(SecretFile.anchorKeysOf(first)[0]!)]
    let file = first
    for (let i = 0; i < rolls; i++) {
      const both = read(SecretFile.withNewSecret(file))
      assert.deepStrictEqual(hexesOf(both.secrets).slice(1), hexesOf(file.secrets))
      for (const purpose of PURPOSES) {
        const [newest, older] = hexesOf(SecretFile.keysOf(both, purpose))
        assert.deepStrictEqual(hexesOf(SecretFile.keysOf(file, purpose)), [older!])
        assert.notStrictEqual(newest, older)
      }
      assert.isTrue(SecretFile.covers(both, file))
      assert.isFalse(SecretFile.covers(file, both))
      const alone = read(SecretFile.withoutOldSecret(both))
      assert.deepStrictEqual(hexesOf(alone.secrets), hexesOf(both.secrets).slice(0, 1))
      assert.isFalse(SecretFile.covers(alone, file))
      assert.deepStrictEqual(hexesOf(SecretFile.anchorKeysOf(alone)), hexesOf(SecretFile.anchorKeysOf(both)))
      signed.unshift(hexOf(SecretFile.anchorKeysOf(alone)[0]!))
      file = alone
    }
    for (const purpose of LASTING) {
      assert.strictEqual(hexOf(SecretFile.lastingKeyOf(file, purpose)), hexOf(SecretFile.lastingKeyOf(first, purpose)))
    }
    assert.strictEqual(SecretFile.lastingPrintOf(file), SecretFile.lastingPrintOf(first))
    assert.deepStrictEqual(hexesOf(SecretFile.anchorKeysOf(file)), signed)
    const every = [...file.secrets, ...LASTING.map((purpose) => SecretFile.lastingKeyOf(file, purpose))]
    assert.strictEqual(new Set(hexesOf(every)).size, 5)
  })

  const SECRET = "0123456789abcdef".repeat(4)
  const lasting = (names: ReadonlyArray<string>) => names.map((name) => `${name} ${SECRET}`).join("\n")
  const NAMES = ["account-numbers", "card-fingerprints", "password-salts", "erasures"]

  it("is read in upper case, without its last line break and with Windows' line breaks", () => {
    const whole = `${SECRET}\r\n${lasting(NAMES).replaceAll("\n", "\r\n")}\r\n`
    for (const text of [SECRET, SECRET.toUpperCase(), `\n ${SECRET} \n`, whole]) {
      assert.strictEqual(hexOf(SecretFile.parse(text)!.secrets[0]!), SECRET)
    }
  })

  for (const [what, text] of [
    ["is empty", ""],
    ["has a short secret", SECRET.slice(2)],
    ["has a long secret", `${SECRET}ab`],
    ["has a secret that is not in hex", `${SECRET.slice(1)}g`],
    ["has two secrets by hand", `${SECRET}\n${SECRET}`],
    ["has three secrets", [SECRET, SECRET, SECRET, lasting(NAMES)].join("\n")],
    ["lacks a key that lasts", `${SECRET}\n${lasting(NAMES.slice(1))}`],
    ["has a key that lasts twice", `${SECRET}\n${lasting([...NAMES, NAMES[0]!])}`],
    ["has a cut key", `${SECRET}\n${lasting(NAMES).slice(0, -1)}`],
    ["has no secret", lasting(NAMES)],
    ["has a line of something else", `${SECRET}\n# the secret`]
  ] as const) {
    it(`is refused if it ${what}`, () => assert.isUndefined(SecretFile.parse(text)))
  }
})
