/** The answers that need no command. */
import { assert, describe, it } from "@effect/vitest"
import { announcementOf, answerTo } from "../../src/cli/Quick.ts"
import { didYouMean } from "../../src/cli/Suggestion.ts"
import { COMMAND_NAMES } from "../../src/cli/Summaries.ts"
import { VERSION } from "../../src/version.ts"

describe("an answer without a command", () => {
  it("is the version, or the list of all commands", () => {
    for (const flag of ["--version", "-v"]) {
      assert.deepStrictEqual(answerTo([flag]), { stream: "stdout", text: `till v${VERSION}\n`, exitCode: 0 })
    }
    for (const args of [[], ["--help"], ["-h"], ["help"]]) {
      const { exitCode, text } = answerTo(args)!
      assert.strictEqual(exitCode, 0)
      for (const name of COMMAND_NAMES) assert.match(text, new RegExp(`^ {2}${name} {2,}\\S`, "mu"))
    }
  })

  it("corrects a mistyped command, and fails", () => {
    const wrong = (text: string) => ({ stream: "stderr", text: `till: there is no command ${text}\n`, exitCode: 1 })
    assert.deepStrictEqual(answerTo(["srve"]), wrong('"srve"; did you mean serve?'))
    assert.deepStrictEqual(answerTo(["lsit", "customers"]), wrong('"lsit"; did you mean list?'))
    assert.deepStrictEqual(answerTo(["elephant"]), wrong('"elephant"; till --help lists all'))
  })

  it("is none for a command, or for flags in front of one", () => {
    for (const name of COMMAND_NAMES) assert.isUndefined(answerTo([name]))
    assert.isUndefined(answerTo(["serve", "--help"]))
    assert.isUndefined(answerTo(["--log-level", "debug", "serve"]))
  })
})

describe("the first line of a service", () => {
  it("is printed by the process that a person starts", () => {
    assert.strictEqual(announcementOf(["serve"], false), `Starting Till ${VERSION} …\n`)
    assert.strictEqual(announcementOf(["serve"], true), "")
    assert.strictEqual(announcementOf(["serve", "--help"], false), "")
    assert.strictEqual(announcementOf(["verify"], false), "")
  })
})

describe("a suggestion", () => {
  it.each([
    ["custmers", ["customers", "charges"], "; did you mean customers?"],
    ["cahrges", ["customers", "charges"], "; did you mean charges?"],
    ["prices", ["products", "prices"], "; did you mean prices?"],
    ["payment", ["payment_intents", "payment_methods", "prices"], "; did you mean payment_intents or payment_methods?"],
    ["x", ["customers", "charges"], ""],
    ["elephants", ["customers", "charges"], ""]
  ])("for %s", (word, words, expected) => {
    assert.strictEqual(didYouMean(word, words), expected)
  })
})
