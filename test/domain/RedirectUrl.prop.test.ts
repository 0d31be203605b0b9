/**
 * Parameters and ids are added to a merchant's URL without changing its other bytes (semantics
 * parameters.urls.redirect, pages.redirects): for URLs made of everything that a path or a query can contain, including
 * signed and unusual ones.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import { locationOf, RedirectUrl, withParameters, withSessionId } from "../../src/domain/RedirectUrl.ts"

const isTaken = (url: string): boolean => Exit.isSuccess(Schema.decodeUnknownExit(RedirectUrl)(url))

const oneOf = (...texts: ReadonlyArray<string>) => Schema.Literals(texts as [string, ...Array<string>])
const BASES = [
  "https://shop.example",
  "http://127.0.0.1:8080",
  "HTTPS://Shop.Example:443",
  "app://back",
  "com.shop.app:/back"
]
const PIECES = [
  "/",
  "/a",
  "=",
  "&",
  "&&",
  "+",
  "%20",
  "%2f",
  "%zz",
  "~",
  "*",
  "~acl=/live/*",
  "flag",
  "é",
  "ключ",
  "🔑"
].concat([
  " ",
  "'",
  '"',
  "<b>",
  "|",
  "^",
  "`",
  "{",
  "}",
  "[]",
  "\\",
  ";",
  ":",
  "@",
  "?",
  "..",
  "/../",
  "payment_intent=old",
  "$&"
])
const pieces = Schema.Array(oneOf(...PIECES)).check(Schema.isMaxLength(8))
const url = {
  base: oneOf(...BASES),
  path: pieces,
  query: Schema.NullOr(pieces),
  fragment: Schema.NullOr(pieces)
}
interface Parts {
  readonly base: string
  readonly path: ReadonlyArray<string>
  readonly query: ReadonlyArray<string> | null
  readonly fragment: ReadonlyArray<string> | null
}
const textOf = ({ base, fragment, path, query }: Parts): string => {
  const own = (parts: ReadonlyArray<string>, without: RegExp) => parts.join("").replaceAll(without, "")
  return (
    `${base}/${own(path, /[?#]/g)}` +
    (query === null ? "" : `?${own(query, /#/g)}`) +
    (fragment === null ? "" : `#${own(fragment, /#/g)}`)
  )
}

const ADDED = {
  payment_intent: "pi_1",
  payment_intent_client_secret: "pi_1_secret_+/ &=",
  redirect_status: "succeeded"
}

describe("adding to a URL", () => {
  it.effect.prop("keeps its bytes, and a parser reads what was added", url, (parts) =>
    Effect.sync(() => {
      const given = textOf(parts)
      const result = withParameters(given, ADDED)
      const appended = new URLSearchParams(ADDED).toString()
      const at = result.indexOf(appended)
      const behind = result.slice(at + appended.length)
      const before = result.slice(0, at)
      // One separator can precede the added parameters.
      assert.strictEqual(before.slice(0, given.length - behind.length) + behind, given)
      assert.match(before.slice(given.length - behind.length), /^[?&]?$/)
      const { hash, searchParams } = new URL(result)
      for (const [name, value] of Object.entries(ADDED)) assert.strictEqual(searchParams.getAll(name).at(-1), value)
      assert.strictEqual(hash, new URL(given).hash)
      // The query still contains all its parameters, in order. Only at a URL's end, a parser removes blanks.
      const held = [...new URL(given.replace(/ +$/, (blanks) => "%20".repeat(blanks.length))).searchParams]
      assert.deepStrictEqual([...searchParams].slice(0, held.length), held)
    })
  )

  it.effect.prop("fits into a header in printable ASCII, and leads to the same page", url, (parts) =>
    Effect.sync(() => {
      const given = textOf(parts)
      const location = locationOf(given)
      assert.match(location, /^[\x21-\x7e]+$/)
      assert.strictEqual(
        new URL(location).href,
        new URL(given.replace(/ +$/, (blanks) => "%20".repeat(blanks.length))).href
      )
      if (/^[\x21-\x7e]+$/.test(given)) assert.strictEqual(location, given)
      assert.strictEqual(locationOf(location), location)
    })
  )

  it("spells the host of a web page as browsers do", () => {
    assert.strictEqual(
      locationOf("https://müller.example:8443/ü?ü#ü"),
      "https://xn--mller-kva.example:8443/%C3%BC?%C3%BC#%C3%BC"
    )
    assert.strictEqual(locationOf("app://müller/a b"), "app://m%C3%BCller/a%20b")
  })

  it("keeps a signed URL, a flag and a blank unchanged", () => {
    const signed = "https://shop.example/r?next=/orders/7&token=exp=16~acl=/live/*&q=a%20b&flag"
    assert.strictEqual(withParameters(signed, { a: "b" }), `${signed}&a=b`)
    assert.strictEqual(withParameters(`${signed}#top`, { a: "b" }), `${signed}&a=b#top`)
    assert.strictEqual(withParameters("https://shop.example", { a: "b" }), "https://shop.example?a=b")
    assert.strictEqual(withParameters("https://shop.example/?", { a: "b" }), "https://shop.example/?a=b")
    assert.strictEqual(withParameters("https://shop.example/?x=?", { a: "b" }), "https://shop.example/?x=?&a=b")
  })

  it("fills in the session's id at every placeholder, encoded or not", () => {
    const given = "https://a.b/{CHECKOUT_SESSION_ID}?x=%7BCHECKOUT_SESSION_ID%7d&y={checkout}#{CHECKOUT_SESSION_ID}"
    assert.strictEqual(withSessionId(given, "cs_1"), "https://a.b/cs_1?x=cs_1&y={checkout}#cs_1")
  })
})

describe("a URL that a browser is redirected to", () => {
  it("is a web page, or an app by its own scheme", () => {
    for (const url of [
      "https://a.b",
      "HTTP://a.b/c",
      "http://localhost:3000/{CHECKOUT_SESSION_ID}",
      "https://[::1]/",
      "https://a.b/c d?ü",
      "shop-app://paid/{CHECKOUT_SESSION_ID}",
      "shop.app://back",
      "com.example.shop:/back",
      "myapp:///paid"
    ]) {
      assert.isTrue(isTaken(url), url)
    }
  })

  it("is none that runs code, reads files or opens another program", () => {
    const schemes =
      "javascript data vbscript file about blob view-source filesystem feed jar intent ms-msdt ms-settings search-ms " +
      "chrome chrome-extension moz-extension mailto tel sms ftp ssh git+ssh ws wss mhtml res resource content market"
    for (const scheme of schemes.split(" ")) {
      for (const rest of [":x", ":/x", "://x", ":https://a.b/", ":///x"])
        assert.isFalse(isTaken(scheme + rest), scheme + rest)
    }
  })

  it("is absolute, without a username, and without characters that a parser would remove", () => {
    for (const url of [
      "https:a.b",
      "https:/a.b",
      "https:///a.b",
      "https:\\\\a.b",
      "https://",
      "//a.b",
      "/a",
      "a.b",
      "app:back",
      "https://me@a.b/",
      "https://me:pw@a.b/",
      "https://shop.example@evil.example/",
      "app://me@back",
      " https://a.b",
      "https://a.b ",
      "https://a.b/\n",
      "ht\ntps://a.b/",
      "https://a.b/\u0000"
    ]) {
      assert.isFalse(isTaken(url), url)
    }
  })
})
