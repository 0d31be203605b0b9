/** Addresses and headers of mails, and the operator's settings of mail (semantics mail.content, mail.server). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import addressParser from "nodemailer/lib/addressparser"
import { headerText, isMailable } from "../../src/domain/Mail.ts"
import { parseMailServer, parseSender } from "../../src/domain/MailServer.ts"

/** Texts in which the characters that matter to mail are frequent. */
const text = Schema.Array(
  Schema.Literals([
    "a",
    "b.c",
    "@",
    "@example.com",
    ",",
    ";",
    ":",
    "<",
    ">",
    '"',
    "(",
    ")",
    "\\",
    " ",
    "\r",
    "\n",
    "\0",
    "ü",
    "\u202e",
    "\ud800",
    "[",
    "]",
    "=",
    "?"
  ])
).check(Schema.isMaxLength(12))

describe("an address of a mail", () => {
  it.effect.prop("is one address to a mail program", { parts: text, local: text }, ({ local, parts }) =>
    Effect.sync(() => {
      for (const address of [parts.join(""), `${local.join("")}@example.com`]) {
        if (!isMailable(address)) continue
        const parsed = addressParser(address)
        assert.lengthOf(parsed, 1)
        assert.deepInclude(parsed[0], { address })
        assert.notMatch(address, /[\s<>,\p{Cc}]/u)
      }
    })
  )

  it("can be international, and has the lengths that mail servers accept", () => {
    for (const address of ["jörg@bücher.example", "o'brien+till@shop.example", `${"a".repeat(64)}@example.com`]) {
      assert.isTrue(isMailable(address), address)
    }
    for (const address of [`${"a".repeat(65)}@example.com`, `a@${"b".repeat(250)}.com`, "a@b,c.example", "a@b"]) {
      assert.isFalse(isMailable(address), address)
    }
  })
})

describe("the text of a header", () => {
  it.effect.prop("is one visible line of bounded length", { parts: text, other: Schema.String }, ({ other, parts }) =>
    Effect.sync(() => {
      for (const header of [headerText(parts.join("")), headerText(other), headerText(other.repeat(100))]) {
        assert.notMatch(header, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
        assert.isTrue(header.isWellFormed())
        assert.isAtMost(Array.from(header).length, 200)
        assert.strictEqual(headerText(header), header)
      }
    })
  )
})

describe("the settings of mail", () => {
  it.each([
    ["smtp://mail.example", ["mail.example", 587, false, null, ""]],
    ["smtps://mail.example", ["mail.example", 465, true, null, ""]],
    [
      "smtps://user%40shop.example:p%40ss%2F%3A@mail.example:2465/",
      ["mail.example", 2465, true, "user@shop.example", "p@ss/:"]
    ],
    ["SMTP://[::1]:25", ["::1", 25, false, null, ""]]
  ] as const)("read %s", (url, expected) => {
    const { host, isSecure, password, port, user } = parseMailServer(url)!
    assert.deepStrictEqual([host, port, isSecure, user, Redacted.value(password)], [...expected])
  })

  it.each([
    "http://mail.example",
    "smtp://",
    "smtp://user:p@ss@mail.example",
    "smtp://a:b/c@mail.example",
    "smtp://:pw@mail.example",
    "smtp://mail.example/path",
    "smtp://mail.example?tls=off",
    "smtp://%@mail.example",
    "mail.example:25"
  ])("refuse %s", (url) => assert.isUndefined(parseMailServer(url)))

  it("read a sender with a name and without", () => {
    assert.deepStrictEqual(parseSender("pay@shop.example"), { name: "Till", address: "pay@shop.example" })
    assert.deepStrictEqual(parseSender("Lumen Coffee <pay@shop.example>"), {
      name: "Lumen Coffee",
      address: "pay@shop.example"
    })
    assert.deepStrictEqual(parseSender('"Lumen, Inc." <pay@shop.example>')?.name, "Lumen, Inc.")
    for (const value of [
      "pay",
      "A <pay@shop.example>, B <b@shop.example>",
      "A\r\nB <pay@shop.example>",
      "<>",
      "A <>"
    ]) {
      assert.isUndefined(parseSender(value), value)
    }
  })
})
