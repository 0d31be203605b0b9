/**
 * Fingerprints are equal for every spelling of a request, different for every other request, and do not reveal a card.
 */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { hash } from "node:crypto"
import { fingerprint } from "../../src/http/RequestFingerprint.ts"
import { parseJson } from "../../src/json/JsonParse.ts"

const KEY = new Uint8Array(32).fill(1)
const OTHER_KEY = new Uint8Array(32).fill(2)

/** JSON text built by hand, so that `__proto__` is an ordinary key. */
type Node =
  | { readonly kind: "leaf"; readonly text: string }
  | { readonly kind: "array"; readonly items: ReadonlyArray<Node> }
  | { readonly kind: "object"; readonly entries: ReadonlyArray<{ readonly key: string; readonly value: Node }> }

const Leaf = Schema.Struct({
  kind: Schema.Literal("leaf"),
  text: Schema.Literals([
    "null",
    "true",
    "0",
    "1",
    "-1",
    "2.5",
    "1e400",
    '""',
    '"a"',
    '"1"',
    '"null"',
    '"\\ud800"',
    '"ä"'
  ])
})
const key = Schema.Literals(["a", "b", "card", "number", "cvc", "__proto__", "constructor", "", "ä", "a,b", '"'])
const hasUniqueKeys = (entries: ReadonlyArray<{ readonly key: string }>): boolean =>
  new Set(entries.map(({ key }) => key)).size === entries.length

const nest = (inner: Schema.Schema<Node>): Schema.Schema<Node> =>
  Schema.Union([
    Leaf,
    Schema.Struct({ kind: Schema.Literal("array"), items: Schema.Array(inner).check(Schema.isMaxLength(3)) }),
    Schema.Struct({
      kind: Schema.Literal("object"),
      entries: Schema.UniqueArray(Schema.Struct({ key, value: inner }))
        .check(Schema.isMaxLength(4))
        .check(Schema.makeFilter(hasUniqueKeys))
    })
  ])
const Tree = nest(nest(nest(Leaf)))

interface Spelling {
  readonly space: string
  readonly reverse: boolean
}

const spell = (node: Node, { reverse, space }: Spelling): string => {
  if (node.kind === "leaf") return node.text
  if (node.kind === "array")
    return `[${space}${node.items.map((item) => spell(item, { reverse, space })).join(`,${space}`)}]`
  const entries = reverse ? node.entries.toReversed() : node.entries
  const members = entries.map(({ key, value }) => `${JSON.stringify(key)}${space}:${spell(value, { reverse, space })}`)
  return `{${members.join(`${space},`)}${space}}`
}

/**
 * A canonical form, equal for two trees exactly if they mean the same: with sorted keys, with 1e400 unlike any other
 * value, and with only the presence of a card's security code.
 */
const meaning = (node: Node, inCard = false): unknown => {
  if (node.kind === "leaf") return node.text === "1e400" ? ["infinity"] : ["leaf", node.text]
  if (node.kind === "array") return ["array", node.items.map((item) => meaning(item, inCard))]
  const entries = node.entries.toSorted((a, b) => (a.key < b.key ? -1 : 1))
  return [
    "object",
    entries.map(({ key, value }) =>
      inCard && key === "cvc"
        ? [key, value.kind === "leaf" && value.text === "null"]
        : [key, meaning(value, key === "card")]
    )
  ]
}

const of = (node: Node, spelling: Spelling, secret = KEY) =>
  fingerprint("POST", "/v1/customers", parseJson(spell(node, spelling)), secret)

describe("fingerprint", () => {
  it.prop(
    "does not depend on the order of keys and on white space",
    { tree: Tree, space: Schema.Literals(["", " ", "\n\t "]), reverse: Schema.Boolean },
    ({ reverse, space, tree }) => of(tree, { space: "", reverse: false }) === of(tree, { space, reverse }),
    { arbitrary: { runs: 500 } }
  )

  it.prop(
    "depends on everything else",
    { one: Tree, other: Tree },
    ({ one, other }) =>
      (of(one, { space: "", reverse: false }) === of(other, { space: "", reverse: false })) ===
      (JSON.stringify(meaning(one)) === JSON.stringify(meaning(other))),
    { arbitrary: { runs: 1000 } }
  )

  it("depends on the method and the path", () => {
    const prints = [
      fingerprint("POST", "/v1/customers", {}, KEY),
      fingerprint("PUT", "/v1/customers", {}, KEY),
      fingerprint("POST", "/v1/customers/x", {}, KEY)
    ]
    assert.strictEqual(new Set(prints).size, 3)
  })

  it("distinguishes card numbers only with the installation's secret", () => {
    const body = (number: string) => ({ payment_method_data: { card: { number } } })
    const print = (number: string, key = KEY) => fingerprint("POST", "/v1/payment_intents", body(number), key)
    assert.strictEqual(print("4242424242424242"), print("4242424242424242"))
    assert.notStrictEqual(print("4242424242424242"), print("4000000000000002"))
    assert.notStrictEqual(print("4242424242424242"), print("4242424242424242", OTHER_KEY))
    const plain = `POST /v1/payment_intents\n${JSON.stringify(body("4242424242424242"))}`
    assert.notStrictEqual(print("4242424242424242"), hash("sha256", plain, "base64url"))
    for (const number of ["4242424242424242", 4242424242424242, ["4242424242424242"], { digits: "4242424242424242" }]) {
      const of = (key: Uint8Array) => fingerprint("POST", "/", { card: { number } }, key)
      assert.notStrictEqual(of(KEY), of(OTHER_KEY), JSON.stringify(number))
    }
  })

  it("depends only on the presence of a security code, in any form", () => {
    const of = (card: object) => fingerprint("POST", "/v1/payment_methods", { type: "card", card }, KEY)
    for (const cvc of ["123", "1234", "", 123, true, ["123"], { digits: "123" }]) {
      assert.strictEqual(of({ number: "4242424242424242", cvc }), of({ number: "4242424242424242", cvc: "987" }))
    }
    assert.notStrictEqual(of({ number: "4242424242424242", cvc: "123" }), of({ number: "4242424242424242" }))
    assert.notStrictEqual(of({ number: "4242424242424242", cvc: "123" }), of({ number: "4242424242424242", cvc: null }))
  })

  it("needs the secret only for a card", () => {
    assert.strictEqual(
      fingerprint("POST", "/", { number: "1", a: { cvc: "2" } }, KEY),
      fingerprint("POST", "/", { number: "1", a: { cvc: "2" } }, OTHER_KEY)
    )
  })
})
