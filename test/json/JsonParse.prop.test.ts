/** JSON is read as it was written, whatever its names are and whatever was read before. */
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

/** What was read, with the names in their order. */
const entriesOf = (read: unknown): unknown =>
  typeof read === "object" && read !== null
    ? Object.entries(read).map(([name, member]) => [name, entriesOf(member)])
    : read

const objectOf = (members: Members, inner: unknown): object => {
  // JSON has one zero.
  const named = members.map(([name, value]): [string, unknown] => [name, value === 0 ? 0 : value])
  return Object.fromEntries(new Map([...named, ["inner", [inner]]]))
}

/** The name that V8 may take for this one: as many characters of its source as it has. */
const mistakenFor = (name: string): string => JSON.stringify(name).slice(1, 1 + name.length)

/** Has V8 see objects with the names that it may take for these ones. Only those of as many members mislead it. */
const misleadBy = (members: Members): void => {
  for (const misleading of members.keys()) {
    const named = members.map(([name], i): Members[number] => [i === misleading ? mistakenFor(name) : name, 0])
    JSON.parse(textOf(named, "1"))
  }
}

describe("JSON", () => {
  it.prop("has the names that were written, also inside, after any other text", [objects], ([drawn]) => {
    const all = drawn.map(membersOf)
    for (const [i, members] of all.entries()) {
      const inner = all[i + 1] ?? []
      misleadBy(members)
      misleadBy(inner)
      const text = textOf(members, textOf(inner, "1"))
      assert.deepStrictEqual(entriesOf(parseJson(text)), entriesOf(objectOf(members, objectOf(inner, 1))), text)
    }
  })

  it("is not left to JSON.parse without need: when this fails, V8 is right and JsonReader can go", () => {
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

  it("that is none is refused, also where names have escapes", () => {
    for (const text of [String.raw`{"a\n":}`, String.raw`{"a\n":1`, String.raw`"a\n": 1`, '{"a\\', '{"\n":1}']) {
      assert.throws(() => parseJson(text), SyntaxError)
    }
  })

  it("has its last of two values for a name, and __proto__ as a name", () => {
    const read = parseJson(String.raw`{"a\n":{"__proto__":{"x":1},"\"":1,"\"":2}}`)
    assert.strictEqual(JSON.stringify(read), String.raw`{"a\n":{"__proto__":{"x":1},"\"":2}}`)
  })
})
