/** A body is taken only if it is JSON, and its texts can be kept. */
import { assert, describe, it } from "@effect/vitest"
import { Exit, Schema } from "effect"
import { DEPTH_MAX, parseBody, pathOfUnstorableText } from "../../src/http/JsonBody.ts"

const parse = (text: string | Buffer, contentType: string | undefined = "application/json") =>
  parseBody(Buffer.from(text as string), contentType)

const tagOf = (exit: ReturnType<typeof parse>): string => {
  if (Exit.isSuccess(exit)) return "parsed"
  const [reason] = exit.cause.reasons
  return reason?._tag === "Fail" ? reason.error._tag : "defect"
}

/** Levels of nesting, by a walk over the parsed value. */
const depthOf = (value: unknown): number =>
  typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0

const brackets = Schema.Array(Schema.Literals(["{", "}", "[", "]", '"', "\\", '\\"', ":", ",", "a", "1", " "]))

describe("bodies", () => {
  it.prop(
    "are nested as deeply as they seem, whatever their strings hold",
    {
      depth: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2 * DEPTH_MAX })),
      noise: brackets,
      array: Schema.Boolean
    },
    ({ array, depth, noise }) => {
      const text = JSON.stringify(noise.join("").repeat(100))
      const [open, close] = array ? ["[", "]"] : ['{"a":', "}"]
      const json = `${open!.repeat(depth)}${text}${close!.repeat(depth)}`
      const parsed = parse(json)
      assert.strictEqual(depthOf(JSON.parse(json)), depth)
      assert.strictEqual(tagOf(parsed), depth <= DEPTH_MAX ? "parsed" : "InvalidJson")
    },
    { arbitrary: { runs: 300 } }
  )

  it.prop(
    "are refused exactly where JSON.parse refuses them",
    { pieces: brackets },
    ({ pieces }) => {
      const text = pieces.join("")
      let expected = "parsed"
      try {
        if (text !== "") JSON.parse(text)
      } catch {
        expected = "InvalidJson"
      }
      assert.strictEqual(tagOf(parse(text)), expected)
    },
    { arbitrary: { runs: 500 } }
  )

  it.each([
    ["a byte-order mark", Buffer.from("\ufeff{}")],
    ["a NUL byte", Buffer.from('{"a":"\0"}')],
    ["a NUL byte after the end", Buffer.from("{}\0")],
    ["a byte that is not UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])],
    ["a surrogate in UTF-8", Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ["UTF-16", Buffer.from("{}", "utf16le")],
    ["a million brackets", Buffer.from("[".repeat(1_000_000))],
    ["white space only", Buffer.from(" ")]
  ])("with %s are not JSON", (_, body) => assert.strictEqual(tagOf(parse(body)), "InvalidJson"))

  it.each([
    ["application/json", "parsed"],
    ["Application/JSON; Charset=UTF-8", "parsed"],
    ["application/json;charset=utf-8", "parsed"],
    ["application/json ; a=b", "parsed"],
    ["application/jsonp", "UnsupportedMediaType"],
    ["application/json, text/plain", "UnsupportedMediaType"],
    ["text/plain", "UnsupportedMediaType"],
    ["", "UnsupportedMediaType"]
  ])("of type %j: %s", (contentType, expected) => assert.strictEqual(tagOf(parse("{}", contentType)), expected))

  it("that are empty need no type", () => {
    assert.strictEqual(tagOf(parseBody(Buffer.alloc(0), undefined)), "parsed")
    assert.strictEqual(tagOf(parse("", "text/plain")), "parsed")
  })

  it.prop(
    "hold no text that cannot be stored, wherever it hides",
    { path: Schema.Array(Schema.Literals(["a", "b", "__proto__"])).check(Schema.isMaxLength(4)), bad: Schema.Boolean },
    ({ bad, path }) => {
      const text = bad ? '"x\\u0000"' : '"\\ud83d\\ude00"'
      const json = path.reduceRight((inner, key) => `{"first":"\\n","${key}":${inner}}`, text)
      assert.deepStrictEqual(pathOfUnstorableText(JSON.parse(json)), bad ? path : undefined)
    },
    { arbitrary: { runs: 200 } }
  )

  it.each([
    '{"a":"\\ud800"}',
    '{"a":"\\udc00\\ud800"}',
    '{"\\ud800":1}',
    '{"a":["b",{"c":"\\u0000"}]}',
    '{"\\u0000":1}'
  ])("find it in %s", (json) => assert.isDefined(pathOfUnstorableText(JSON.parse(json))))
})
