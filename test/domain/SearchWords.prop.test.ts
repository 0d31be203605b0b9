/**
 * Words of texts (semantics search.words): their folding, what finds them, and the terms by which they are found. A
 * search by beginnings has exactly the words with its terms.
 */
import { assert, describe, it } from "@effect/vitest"
import {
  addTermsOf,
  finds,
  type Reach,
  termsToFind,
  type Word,
  WORDS_MAX,
  wordsIn
} from "../../src/domain/SearchWords.ts"
import { Random, Seed } from "../support/Random.ts"

describe("search.words: the words of a text", () => {
  it.each([
    ["Order #36, paid", "order 36 paid"],
    ["order_id", "order id"],
    ["İstanbul, DİYARBAKIR ve Diyarbakır", "istanbul diyarbakir ve diyarbakir"],
    ["Straße STRASSE STRAẞE", "strasse strasse strasse"],
    ["Łódź Søren Ærø Œuvre Đặng Þór", "lodz soren aero oeuvre dang thor"],
    ["Müller Mu\u0308ller", "muller muller"],
    ["ΣΑΣ σας Ὀδυσσεύς", "σασ σασ οδυσσευσ"],
    ["Пётр Йорк", "петр иорк"],
    ["O'Brien O’Brien d'Arc", "obrien obrien darc"],
    ["Ｏｒｄｅｒ ５４", "order 54"],
    ["jenny.rosen+shop@example.com", "jenny rosen shop example com"],
    ["مُحَمَّد", "محمد"],
    ["שָׁלוֹם", "שלום"],
    ["東京タワー2024が", "東京タワー 2024 が"],
    ["ｶﾞｷﾞ", "ガギ"],
    ["김민준", "김민준"],
    ["हिन्दी", "हिन्दी"],
    ["— ... 😀 \u0000", ""]
  ])("%s are: %s", (text, words) => {
    assert.strictEqual(wordsIn(text).join(" "), words)
  })

  it.prop("are the same when they are read again", [Seed], ([seed]) => {
    const random = new Random(seed)
    const text = Array.from({ length: random.integer(1, 12) }, () =>
      String.fromCodePoint(random.chance(0.5) ? random.below(0x250) : random.below(0xd800))
    ).join("")
    const words = wordsIn(text)
    assert.deepStrictEqual(wordsIn(words.join(" ")), words)
  })

  it("are at most 16, of a thousand characters, and of 64 characters each", () => {
    const text = (length: number) => Array.from({ length }, (_, i) => `w${i}`).join(" ")
    assert.deepStrictEqual(wordsIn(text(40)), text(16).split(" "))
    assert.deepStrictEqual(wordsIn("x".repeat(100)), ["x".repeat(64)])
    assert.deepStrictEqual(wordsIn(`${"-".repeat(999)}ab`), ["a"])
    assert.strictEqual(WORDS_MAX, 64)
  })
})

const found = (asked: string, text: string, reach: Reach): boolean => finds(asked, { text, reach })

describe("search.words: a word is found", () => {
  it.each([
    ["jen", "jenny", true],
    ["jenny", "jenny", true],
    ["martine", "martinez", true],
    ["internet", "internal", false],
    ["internationale", "internationally", true],
    ["nny", "jenny", false],
    ["je", "jenny", false],
    ["li", "li", true],
    ["36", "36", true],
    ["367", "3675", false],
    ["inv20", "inv2024", false],
    ["inv", "inv2024", false],
    ["inv2024", "inv2024", true],
    ["京タ", "東京タワー", true],
    ["東", "東京", false],
    ["東", "東", true]
  ])("by its beginning: %s in %s is %s", (asked, text, isFound) => {
    assert.strictEqual(found(asked, text, "beginning"), isFound)
  })

  it.each([
    ["nny", "jenny", true],
    ["675", "3675", true],
    ["ny", "jenny", false],
    ["ny", "ny", true]
  ])("by any part: %s in %s is %s", (asked, text, isFound) => {
    assert.strictEqual(found(asked, text, "part"), isFound)
  })

  it("in full only, as far as it counts", () => {
    assert.isTrue(found("reference", "reference", "whole"))
    assert.isTrue(found("references", "reference", "whole"))
    assert.isFalse(found("refer", "reference", "whole"))
    assert.isTrue(found("号番", "注文号番", "whole"))
  })

  it.prop("by searches whose terms it has, of beginnings by no others", [Seed], ([seed]) => {
    const random = new Random(seed)
    const letters = random.pick(["ab", "a1", "東京a", "abcdefgh", "1234567890"])
    const word = () =>
      wordsIn(Array.from({ length: random.integer(1, 12) }, () => random.pick([...letters])).join(""))[0]!
    for (const kind of ["beginning", "part"] as const) {
      const one: Word = { text: word(), reach: kind === "beginning" && random.chance(0.3) ? "whole" : kind }
      const start = random.below(one.text.length)
      const part = one.text.slice(random.chance(0.5) ? 0 : start, start + 1 + random.below(8))
      for (const asked of [part, one.text, word()]) {
        if (asked === "") continue
        const terms: Array<string> = []
        addTermsOf(one, terms)
        const hasTerms = termsToFind(asked, kind).every((term) => terms.includes(term))
        const isExact = kind === "beginning" && !/[東京]/u.test(asked)
        if (isExact || finds(asked, one)) {
          assert.strictEqual(hasTerms, finds(asked, one), `${asked} in ${one.text}, ${one.reach}`)
        }
      }
    }
  })
})
