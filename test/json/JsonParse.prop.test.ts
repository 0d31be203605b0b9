/** JSON is read as written, for all names and all texts read before. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { parseJson } from "../../src/json/JsonParse.ts"

const character = Schema.Literals([
  "\\",
  "\n",
  '"',
  "\u0000",
  "n",
  "u",
  "0",
  "a",
  "/",
  "\ue000",
  "é",
  "\ud83d",
  ":",
  "{"
])
const name = Schema.Array(character).check(Schema.isMaxLength(5))
const value = Schema.Union([Schema.Literals(["\\", 'a"', '\\":', "x\n", ""]), Schema.Int, Schema.Null])
const members = Schema.Array(Schema.Tuple([name, value])).check(Schema.isMaxLength(4))
const objects = Schema.Array(members).check(Schema.isMaxLength(20))

type Members = ReadonlyArray<readonly [name: string, value: typeof value.Type]>

const membersOf = (drawn: typeof members.Type): Members => drawn.map(([name, value]) => [name.join(""), value])

const textOf = (members: Members, inner: string): string =>
  `{${members.map(([name, value]) => `${JSON.stringify(name)} \t\r\n: ${JSON.stringify(value)}`).join(",")}${
    members.length > 0 ? "," : ""
  }"inner":[${inner}]}`

/** Returns the value with its names in order. */
const entriesOf = (read: unknown): unknown =>
  typeof read === "object" && read !== null
    ? Object.entries(read).map(([name, member]) => [name, entriesOf(member)])
    : read

const objectOf = (members: Members, inner: unknown): object => {
  // JSON has one zero.
  const named = members.map(([name, value]): [string, unknown] => [name, value === 0 ? 0 : value])
  return Object.fromEntries(new Map([...named, ["inner", [inner]]]))
}

/** Returns the name that V8 can confuse with this one: as many characters of its source as it has. */
const mistakenFor = (name: string): string => JSON.stringify(name).slice(1, 1 + name.length)

/** Makes V8 parse objects with the confusable names. Only objects with as many members mislead it. */
const misleadBy = (members: Members): void => {
  for (const misleading of members.keys()) {
    const named = members.map(([name], i): Members[number] => [i === misleading ? mistakenFor(name) : name, 0])
    JSON.parse(textOf(named, "1"))
  }
}

describe("JSON", () => {
  it.prop("has the written names, also in nested objects, after any other text", [objects], ([drawn]) => {
    const all = drawn.map(membersOf)
    for (const [i, members] of all.entries()) {
      const inner = all[i + 1] ?? []
      misleadBy(members)
      misleadBy(inner)
      const text = textOf(members, textOf(inner, "1"))
      assert.deepStrictEqual(entriesOf(parseJson(text)), entriesOf(objectOf(members, objectOf(inner, 1))), text)
    }
  })

  it("needs JsonReader: when this fails, V8 is correct and JsonReader can be removed", () => {
    for (const name of ["\n", "a\nb", '"', "é\u0000", "a\\nb\n"]) {
      const members: Members = [
        [`first member of ${mistakenFor(name)}`, 0],
        [name, 0]
      ]
      misleadBy(members)
      const text = textOf(members, "1")
      assert.include(Object.keys(JSON.parse(text)), mistakenFor(name))
      assert.deepStrictEqual(Object.keys(parseJson(text) as object), [members[0]![0], name, "inner"])
    }
  })

  it("is refused if invalid, also with escapes in names", () => {
    for (const text of [String.raw`{"a\n":}`, String.raw`{"a\n":1`, String.raw`"a\n": 1`, '{"a\\', '{"\n":1}']) {
      assert.throws(() => parseJson(text), SyntaxError)
    }
  })

  it("has the last of two values for a name, and __proto__ as a name", () => {
    const read = parseJson(String.raw`{"a\n":{"__proto__":{"x":1},"\"":1,"\"":2}}`)
    assert.strictEqual(JSON.stringify(read), String.raw`{"a\n":{"__proto__":{"x":1},"\"":2}}`)
  })
})
