/** The languages of payers' pages: their choice, and their catalogues (semantics pages.languages). */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import { PAGE_LANGUAGES } from "../../src/domain/CheckoutSession.ts"
import { html } from "../../src/html/Html.ts"
import type { TextKey } from "../../src/html/texts/Catalogue.ts"
import { CATALOGUES, countryFor, Translation, translationFor } from "../../src/html/Translation.ts"

const KEYS = Object.keys(CATALOGUES.en) as ReadonlyArray<TextKey>
const TRANSLATED = PAGE_LANGUAGES.filter((language) => language !== "en")

const placesIn = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/\{\w+\}/g)].map(([place]) => place).toSorted()

/** Texts that are the same as in English: names, words that both languages have, and forms of dates. */
const SAME = new Set([
  "Problem: {title}",
  "optional",
  "Eircode",
  "Total",
  "Date",
  "district",
  "oblast",
  "province",
  "Subtotal",
  "area",
  "Privacy",
  "region",
  "MM / YY"
])

describe("a catalogue", () => {
  it.each(TRANSLATED)("in %s has each text of the English one, with the same places for values", (language) => {
    const catalogue = CATALOGUES[language]
    assert.sameMembers(Object.keys(catalogue), [...KEYS])
    for (const key of KEYS) {
      const text = catalogue[key]
      assert.strictEqual(text, text.trim(), key)
      assert.isAbove(text.length, 0, key)
      assert.deepStrictEqual(placesIn(text), placesIn(CATALOGUES.en[key]), key)
      assert.isTrue(text !== CATALOGUES.en[key] || SAME.has(text), `${key} is not translated`)
    }
  })

  it.each(TRANSLATED)("in %s ends its sentences where the English one does", (language) => {
    for (const key of KEYS) {
      // Ends in "etc.".
      if (key === "address.line2") continue
      const isSentence = CATALOGUES.en[key].endsWith(".")
      assert.strictEqual(/[.。]$/.test(CATALOGUES[language][key]), isSentence, key)
    }
  })

  it("is in one file for each language that a session can name", () => {
    const files = fs.readdirSync(new URL("../../src/html/texts/", import.meta.url))
    assert.sameMembers(files, [...PAGE_LANGUAGES.map((language) => `${language}.ts`), "Catalogue.ts"])
  })

  it("has only texts that a page or a mail shows", () => {
    const folders = ["../../src/html/", "../../src/pages/", "../../src/mail/"].map(
      (folder) => new URL(folder, import.meta.url)
    )
    const sources = folders
      .flatMap((folder) =>
        fs
          .readdirSync(folder, { recursive: true, encoding: "utf8" })
          .filter((name) => name.endsWith(".ts") && !name.startsWith("texts"))
          .map((name) => fs.readFileSync(new URL(name, folder), "utf8"))
      )
      .join("\n")
    const unused = KEYS.filter((key) => !sources.includes(`"${key}"`) && !/^(part|brand)\./.test(key))
    assert.deepStrictEqual(unused, [])
  })
})

describe("the language of a page", () => {
  it.each([
    ["de-AT,de;q=0.9,en;q=0.8", "de", "de-AT"],
    ["en;q=0.5, fr-CA;q=0.9", "fr", "fr-CA"],
    ["sv-SE,sv;q=0.9,nl;q=0.5", "nl", "nl"],
    ["sv-SE,sv", "en", "sv-SE"],
    ["JA", "ja", "ja"],
    ["pl;q=0, it", "it", "it"],
    ["ar-EG", "ar", "ar-EG"],
    ["pt-BR", "pt", "pt-BR"],
    ["*", "en", "en"],
    ["es-u-nu-arab", "en", "en"],
    ["", "en", "en"],
    [undefined, "en", "en"]
  ] as const)("for a browser that accepts %j is %s, with amounts as in %s", (accepted, language, locale) => {
    const found = translationFor(accepted)
    assert.deepStrictEqual([found.language, found.moneyLocale], [language, locale])
    assert.deepStrictEqual(translationFor(accepted, "auto"), found)
  })

  it.each([
    ["de-AT,en;q=0.8", "en", "en"],
    ["de-AT,en-GB;q=0.8", "en", "en-GB"],
    ["de-AT,en-GB;q=0.8", "ja", "ja"]
  ] as const)("for a browser that accepts %j and a session in %s is the session's", (accepted, wanted, locale) => {
    const found = translationFor(accepted, wanted)
    assert.deepStrictEqual([found.language, found.moneyLocale, found.locale], [wanted, locale, locale])
  })

  it("is written from right to left in Arabic only", () => {
    const directions = PAGE_LANGUAGES.map((language) => new Translation(language, language).direction)
    assert.deepStrictEqual(
      directions,
      PAGE_LANGUAGES.map((language) => (language === "ar" ? "rtl" : "ltr"))
    )
  })

  it("keeps a value together among text of the other direction", () => {
    const text = (language: "en" | "ar", merchant: string) =>
      new Translation(language, language).text("checkout.back", { merchant })
    assert.strictEqual(text("en", "Lumen {x} $& Coffee"), "Back to Lumen {x} $& Coffee")
    assert.strictEqual(text("en", "קפה"), "Back to \u2068קפה\u2069")
    assert.strictEqual(text("ar", "Lumen"), "العودة إلى \u2068Lumen\u2069")
  })

  it("puts HTML into a text, and escapes the text", () => {
    const merchant = html`<b>${"<Lumen>"}</b>`
    const shown = new Translation("fr", "fr").html("checkout.go_back", { merchant })
    assert.strictEqual(shown.text, "Retourner sur <b>&lt;Lumen&gt;</b>")
  })
})

describe("the country of a payer", () => {
  it.each([
    ["de-CH,de;q=0.9,en-US;q=0.8", "CH"],
    ["pl,en-US;q=0.7", "PL"],
    ["ja", "JP"],
    ["zh-Hant-TW", "TW"],
    ["en", undefined],
    ["es-419", undefined],
    ["pt", undefined],
    ["ar-001", undefined],
    ["en-UK", "GB"],
    ["*", undefined],
    [undefined, undefined]
  ] as const)("whose browser accepts %j is guessed as %s", (accepted, country) => {
    assert.strictEqual(countryFor(accepted), country)
  })
})
