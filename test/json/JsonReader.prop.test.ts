/** The plain parser accepts and rejects the same texts as JSON.parse, at the same position. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { JsonReader, JsonSyntaxError } from "../../src/json/JsonReader.ts"

/** Returns the text's value, or the index of the first invalid character. */
const read = (text: string): { readonly value: unknown } | { readonly index: number } => {
  try {
    return { value: new JsonReader(text).read() }
  } catch (error) {
    assert.instanceOf(error, JsonSyntaxError)
    return { index: error.index }
  }
}

/** Returns the result of JSON.parse; a null index if it reports none. */
const expectedOf = (text: string): { readonly value: unknown } | { readonly index: number | null } => {
  try {
    return { value: JSON.parse(text) }
  } catch (error) {
    const { message } = error as Error
    if (message === "Unexpected end of JSON input") return { index: text.length }
    const [, position] = /at position (\d+)(?: \(line \d+ column \d+\))?$/u.exec(message) ?? []
    return { index: position === undefined ? null : Number(position) }
  }
}

const assertSame = (text: string): void => {
  const [found, expected] = [read(text), expectedOf(text)]
  const isNamed = !("index" in expected && expected.index === null)
  assert.deepStrictEqual<unknown>("index" in found && !isNamed ? { index: null } : found, expected, text)
}

const space = Schema.Literals(["", "", "", " ", "\n", "\t\r", "  "])
const pieces = Schema.Array(
  Schema.Literals([
    ...Array.from('{}[]":,-+.eE0129 \n\t\r\u000b\u00a0\ufeff\u0000xé\ud83d/'),
    ...Array.from([
      "true",
      "false",
      "null",
      "tru",
      "nulll",
      '"',
      '""',
      '"a"',
      '"a":',
      '{"',
      "[[",
      "]]",
      "12",
      "-0",
      "1e5"
    ])
  ])
).check(Schema.isMaxLength(12))
/** Characters within a string. */
const characters = Schema.Array(
  Schema.Literals([
    ...Array.from('abnu0F/\\"\n\u001f\u007f\u2028é\udc00'),
    "\\u",
    "\\u00e9",
    "\\ud83d",
    '\\"',
    "\\\\",
    "\\/"
  ])
).check(Schema.isMaxLength(8))

/** Returns a value as JSON represents it: one zero, and every member an own property. `named` converts names. */
const asJson = (value: Schema.Json, named: (name: string) => string = (name) => name): Schema.Json => {
  if (typeof value !== "object" || value === null) return value === 0 ? 0 : value
  if (Array.isArray(value)) return value.map((member) => asJson(member, named))
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [named(name), asJson(member, named)]))
}

/** Returns a name without escapes, because V8 misreads others. */
const plain = (name: string): string => name.replaceAll(/["\\]|[^ -~]/gu, "_")

describe("the plain parser", () => {
  it.prop(
    "reads every JSON value, with white space between the tokens",
    { value: Schema.Json, indent: Schema.Literals(["", " ", "\t", "\n \r"]), space },
    ({ indent, space, value }) => {
      const text = `${space}${JSON.stringify(value, null, indent)}${space}`
      assert.deepStrictEqual<unknown>(read(text), { value: asJson(value) })
    },
    { arbitrary: { runs: 300 } }
  )

  it.prop("accepts and rejects any tokens like JSON.parse", { pieces }, ({ pieces }) => assertSame(pieces.join("")), {
    arbitrary: { runs: 3000 }
  })

  it.prop(
    "accepts and rejects any string like JSON.parse",
    { characters },
    ({ characters }) => {
      assertSame(`["${characters.join("")}"]`)
      assertSame(`["${characters.join("")}`)
    },
    { arbitrary: { runs: 2000 } }
  )

  it.prop(
    "finds the error in JSON that has lost or gained a part",
    {
      value: Schema.Json,
      at: Schema.Number.check(Schema.isBetween({ minimum: 0, maximum: 1 })),
      lost: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 })),
      gained: pieces
    },
    ({ at, gained, lost, value }) => {
      const text = JSON.stringify(asJson(value, plain))
      const index = Math.floor(at * text.length)
      assertSame(text.slice(0, index) + gained.slice(0, 2).join("") + text.slice(index + lost))
    },
    { arbitrary: { runs: 1000 } }
  )

  it("reads numbers like JSON.parse, at the limits of their range and beyond", () => {
    for (const text of [
      "0",
      "-0",
      "1e400",
      "-1e-400",
      "9007199254740993",
      "0.1e+1",
      "123456789012345678901234567890"
    ]) {
      assertSame(text)
    }
    assert.isTrue(Object.is(new JsonReader("-0").read(), -0))
  })

  it("reads any depth", () => {
    const DEPTH = 200_000
    for (const [open, close] of [
      ["[", "]"],
      ['{"a":', "}"]
    ] as const) {
      let inner = new JsonReader(`${open.repeat(DEPTH)}1${close.repeat(DEPTH)}`).read()
      let depth = 0
      for (; typeof inner === "object"; depth++) [inner] = Object.values(inner as object)
      assert.strictEqual(depth, DEPTH)
      assert.deepStrictEqual(read(open.repeat(DEPTH)), { index: DEPTH * open.length })
    }
  })
})
