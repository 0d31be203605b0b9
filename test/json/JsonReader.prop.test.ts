/** The plain parser reads what JSON.parse reads, and refuses what it refuses, at the same place. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { JsonReader, JsonSyntaxError } from "../../src/json/JsonReader.ts"

/** The text's value, or the index of the first character that does not fit. */
const read = (text: string): { readonly value: unknown } | { readonly index: number } => {
  try {
    return { value: new JsonReader(text).read() }
  } catch (error) {
    assert.instanceOf(error, JsonSyntaxError)
    return { index: error.index }
  }
}

/** What JSON.parse does. Of some texts it does not say where they are wrong: that is null. */
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
/** Inside a string. */
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

/** As JSON has it: one zero, and every member the object's own. Names are `named`. */
const asJson = (value: Schema.Json, named: (name: string) => string = (name) => name): Schema.Json => {
  if (typeof value !== "object" || value === null) return value === 0 ? 0 : value
  if (Array.isArray(value)) return value.map((member) => asJson(member, named))
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [named(name), asJson(member, named)]))
}

/** A name that is written without an escape: V8 reads others wrongly. */
const plain = (name: string): string => name.replaceAll(/["\\]|[^ -~]/gu, "_")

describe("the plain parser", () => {
  it.prop(
    "reads every value that is written as JSON, with white space between the tokens",
    { value: Schema.Json, indent: Schema.Literals(["", " ", "\t", "\n \r"]), space },
    ({ indent, space, value }) => {
      const text = `${space}${JSON.stringify(value, null, indent)}${space}`
      assert.deepStrictEqual<unknown>(read(text), { value: asJson(value) })
    },
    { arbitrary: { runs: 300 } }
  )

  it.prop("takes and refuses any tokens as JSON.parse does", { pieces }, ({ pieces }) => assertSame(pieces.join("")), {
    arbitrary: { runs: 3000 }
  })

  it.prop(
    "takes and refuses any string as JSON.parse does",
    { characters },
    ({ characters }) => {
      assertSame(`["${characters.join("")}"]`)
      assertSame(`["${characters.join("")}`)
    },
    { arbitrary: { runs: 2000 } }
  )

  it.prop(
    "finds what is wrong with JSON that has lost a part, or gained one",
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

  it("reads numbers as JSON.parse does, at the ends of their range and beyond", () => {
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
