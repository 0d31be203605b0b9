/** `--override path=value` can express any body, and changes only the named fields. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { applyOverrides, overrideOf } from "../../src/cli/Overrides.ts"

const name = Schema.Literals(["amount", "line_items", "price_data", "a1", "toString", "constructor"])
const leaf = Schema.Union([Schema.Int, Schema.Boolean, Schema.Null, Schema.String])
const inner = Schema.Record(name, leaf)
const body = Schema.Record(name, Schema.Union([leaf, inner, Schema.NonEmptyArray(inner), Schema.NonEmptyArray(leaf)]))

/** The `--override` arguments that a developer would type, one for each leaf. */
const typedFor = (value: unknown, path: string): ReadonlyArray<string> => {
  if (Array.isArray(value)) return value.flatMap((item, index) => typedFor(item, `${path}[${index}]`))
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).flatMap(([key, item]) => typedFor(item, path === "" ? key : `${path}[${key}]`))
  }
  return [`${path}=${JSON.stringify(value)}`]
}

const apply = (base: object, typed: ReadonlyArray<string>) =>
  applyOverrides(
    base,
    typed.map((text) => overrideOf(text)!)
  )

describe("overrides", () => {
  it.prop("set any body", [body], ([wanted]) => {
    // Compares the JSON that is sent, which has no -0.
    assert.strictEqual(JSON.stringify(apply({}, typedFor(wanted, ""))), JSON.stringify(wanted))
  })

  it.prop("read metadata as text", [Schema.Record(name, Schema.Union([Schema.Int, Schema.String]))], ([metadata]) => {
    const typed = Object.entries(metadata).map(([key, value]) => `metadata[${key}]=${value}`)
    const texts = Object.fromEntries(Object.entries(metadata).map(([key, value]) => [key, String(value)]))
    assert.deepStrictEqual<unknown>(apply({ metadata: { amount: "before" } }, typed), { metadata: texts })
    const nested = typed.map((text) => `payment_intent_data[metadata]${text.replace(/^metadata/u, "")}`)
    assert.deepStrictEqual<unknown>(apply({}, nested), { payment_intent_data: { metadata: texts } })
  })

  it.prop("change no other field", [body, Schema.Int], ([base, amount]) => {
    const before = structuredClone(base)
    const { amount: changed, ...rest } = apply(base, [`amount=${amount}`]) as Record<string, unknown>
    assert.strictEqual(changed, amount)
    const { amount: _, ...others } = base as Record<string, unknown>
    assert.deepStrictEqual(rest, others)
    assert.deepStrictEqual(base, before)
  })

  it("parse values as JSON if possible, except in metadata", () => {
    const typed = ["amount=5000", "confirm=true", "customer=null", "description=Tea & more", 'note="7"', "empty="]
    assert.deepStrictEqual<unknown>(apply({ amount: 1 }, [...typed, "metadata[order]=7", "metadata[more]=a=b"]), {
      amount: 5000,
      confirm: true,
      customer: null,
      description: "Tea & more",
      note: "7",
      empty: "",
      metadata: { order: "7", more: "a=b" }
    })
    const lines = { line_items: [{ price: "price_1", quantity: 1 }] }
    assert.deepStrictEqual<unknown>(apply(lines, ["line_items[0][quantity]=3", "line_items[7][price]=price_2"]), {
      line_items: [{ price: "price_1", quantity: 3 }, { price: "price_2" }]
    })
    const odd = apply({}, ["__proto__[amount]=1"])
    assert.strictEqual(JSON.stringify(odd), '{"__proto__":{"amount":1}}')
    assert.isUndefined((odd as { readonly amount?: unknown }).amount)
    assert.deepStrictEqual<unknown>(apply({ metadata: { a: "b" } }, ['metadata={"c":"d"}']), { metadata: { c: "d" } })
  })

  it("have the form path=value", () => {
    for (const text of ["", "amount", "=5", "a b=1", "a[=1", "a[]=1", "a[b=1", "a.b=1", "[a]=1", "a]b=1"]) {
      assert.isUndefined(overrideOf(text), text)
    }
  })
})
