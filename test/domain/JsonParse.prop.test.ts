/** JSON is read as it was written, whatever its names and whatever was read before. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { isMistaken, repaired } from "../../src/domain/JsonParse.ts"

const character = Schema.Literals(["\\", "\n", '"', "\u0000", "a", "b", "/", "\ue000", "é", ":", "{"])
const name = Schema.Array(character).check(Schema.isMaxLength(4))
const value = Schema.Union([Schema.Literals(["\\", 'a"', '\\":', "x\n", ""]), Schema.Int, Schema.Null])
const members = Schema.Array(Schema.Tuple([name, value])).check(Schema.isMaxLength(4))
const objects = Schema.Array(members).check(Schema.isMaxLength(20))

type Members = typeof members.Type

const textOf = (members: Members, inner: string): string =>
  `{${members.map(([name, value]) => `${JSON.stringify(name.join(""))} : ${JSON.stringify(value)}`).join(",")}${
    members.length > 0 ? "," : ""
  }"inner":[${inner}]}`

/** What was read, with the names in their order. */
const entriesOf = (read: unknown): unknown =>
  typeof read === "object" && read !== null
    ? Object.entries(read).map(([name, member]) => [name, entriesOf(member)])
    : read

const objectOf = (members: Members, inner: unknown): object => {
  // JSON has one zero.
  const named = members.map(([name, value]): [string, unknown] => [name.join(""), value === 0 ? 0 : value])
  return Object.fromEntries(new Map([...named, ["inner", [inner]]]))
}

describe("JSON.parse", () => {
  it("is right in this process", () => {
    assert.isFalse(isMistaken(JSON.parse))
  })

  it.prop("reads names as they were written, also inside, with a reviver or without", [objects], ([objects]) => {
    const parse = repaired(JSON.parse)
    for (const [i, members] of objects.entries()) {
      const inner = objects[i + 1] ?? []
      const text = textOf(members, textOf(inner, "1"))
      const expected = entriesOf(objectOf(members, objectOf(inner, 1)))
      assert.deepStrictEqual(entriesOf(parse(text)), expected, text)
      assert.deepStrictEqual(entriesOf(parse(text, (_, value) => value)), expected, text)
    }
  })

  it("fails where the text is no JSON, and gives revivers the names that were written", () => {
    for (const text of [String.raw`{"a\n":}`, String.raw`{"a\n":1`, String.raw`"a\n": 1`]) {
      assert.throws(() => JSON.parse(text), SyntaxError)
    }
    const names: Array<string> = []
    const read: unknown = JSON.parse(String.raw`{"a\n":{"\"":1,"__proto__":2}}`, function (name, value: unknown) {
      names.push(name)
      return name === '"' ? undefined : value
    })
    assert.deepStrictEqual(names, ['"', "__proto__", "a\n", ""])
    assert.strictEqual(JSON.stringify(read), String.raw`{"a\n":{"__proto__":2}}`)
  })
})
