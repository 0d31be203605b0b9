/** A body is accepted only if it is JSON and its strings can be stored. */
import { assert, describe, it } from "@effect/vitest"
import { Exit, Option, Schema } from "effect"
import { DEPTH_MAX, parseBody, pathOfUnstorableText } from "../../src/http/JsonBody.ts"

const parse = (text: string | Buffer, contentType: string | undefined = "application/json") =>
  parseBody(Buffer.from(text as string), contentType)

const tagOf = (exit: ReturnType<typeof parse>): string => {
  if (Exit.isSuccess(exit)) return "parsed"
  const [reason] = exit.cause.reasons
  return reason?._tag === "Fail" ? reason.error._tag : "defect"
}

/** The problem, and its byte. */
const errorOf = (exit: ReturnType<typeof parse>): object => {
  const error = Exit.findErrorOption(exit)
  if (Option.isNone(error) || error.value._tag !== "InvalidJson") return exit
  const { byte, problem } = error.value
  return { problem, ...(byte !== undefined && { byte }) }
}

/** Levels of nesting, by a walk over the parsed value. */
const depthOf = (value: unknown): number =>
  typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0

const brackets = Schema.Array(Schema.Literals(["{", "}", "[", "]", '"', "\\", '\\"', ":", ",", "a", "1", " "]))

describe("bodies", () => {
  it.prop(
    "are nested as deeply as their structure, with any contents of strings",
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

  it.prop(
    "that are not UTF-8 are refused with the first byte that belongs to no character",
    {
      before: Schema.Array(Schema.Literals(["a", '"', "é", "\ufffd", "☺", "\ud83d\ude00", "\0"])).check(
        Schema.isMaxLength(8)
      ),
      wrong: Schema.Literals(["fc", "80", "c3", "c0af", "edb080", "efbf", "f09f98", "f4908080", "ff"]),
      after: Schema.Literals(["", "a", '"', "\ufffd"])
    },
    ({ after, before, wrong }) => {
      const [start, end] = [Buffer.from(before.join("")), Buffer.from(after)]
      assert.deepStrictEqual(errorOf(parse(Buffer.concat([start, Buffer.from(wrong, "hex"), end]))), {
        problem: "encoding",
        byte: start.length
      })
    },
    { arbitrary: { runs: 300 } }
  )

  it.each([
    ['{"name":"Müller",}', { problem: "syntax", byte: 18 }],
    ['{"name":"Müller"', { problem: "syntax", byte: 17 }],
    ['{"☺":tru}', { problem: "syntax", byte: 10 }],
    ["{'a':1}", { problem: "syntax", byte: 1 }],
    ['{"a":"\n"}', { problem: "syntax", byte: 6 }],
    ['{"a\\n":1,}', { problem: "syntax", byte: 9 }],
    [`${"[".repeat(65)}${"]".repeat(65)}`, { problem: "depth" }],
    ["\ufeff{}", { problem: "byte_order_mark" }]
  ])("such as %j are refused with the problem and its place", (text, expected) =>
    assert.deepStrictEqual(errorOf(parse(text)), expected)
  )

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
    "contain no text that cannot be stored, at any place",
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
