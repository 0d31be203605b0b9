/** Metadata: merging, and keys with a meaning in JavaScript. */
import { assert, describe, it } from "@effect/vitest"
import { Exit, Effect, Schema } from "effect"
import {
  mergeMetadata,
  type Metadata,
  MetadataParameter,
  previousMetadata,
  updateMetadata
} from "../../src/domain/Metadata.ts"
import { violations } from "../../src/domain/Rule.ts"
import { parseJson } from "../../src/json/JsonParse.ts"

/** Few keys, so that updates hit existing ones; some are properties of every object. */
const key = Schema.Literals(["a", "b", "1", "__proto__", "constructor", "toString", "hasOwnProperty"])
const value = Schema.Literals(["x", "y"])
const entries = Schema.Array(Schema.Tuple([key, value]))
const changes = Schema.Array(Schema.Tuple([key, Schema.NullOr(Schema.Literals(["x", "y", ""]))]))

/** Returns an object as the parser creates it: every key an own property. */
const parsed = <V>(entries: ReadonlyArray<readonly [string, V]>): Record<string, V> =>
  parseJson(JSON.stringify(Object.fromEntries(entries))) as Record<string, V>

const decode = Schema.decodeUnknownExit(MetadataParameter, { errors: "all" })
const wrongs = (input: unknown) => {
  const exit = decode(input)
  if (Exit.isSuccess(exit)) return []
  return exit.cause.reasons.flatMap((reason) => (reason._tag === "Fail" ? violations(reason.error.issue) : []))
}

describe("Metadata", () => {
  // Semantics metadata.update.
  it.prop("merges key by key; null and the empty string remove", { entries, changes }, ({ changes, entries }) => {
    const current: Metadata = parsed(entries)
    const merged = mergeMetadata(current, parsed(changes))
    const expected = new Map(Object.entries(current))
    for (const [key, value] of Object.entries(parsed(changes))) {
      if (value) expected.set(key, value)
      else expected.delete(key)
    }
    assert.deepStrictEqual(new Map(Object.entries(merged)), expected)
    assert.strictEqual(Object.getPrototypeOf(merged), Object.prototype)
    assert.deepStrictEqual(Object.entries(parseJson(JSON.stringify(merged)) as object), Object.entries(merged))
  })

  it.prop("is the same object if, and only if, nothing changes", { entries, changes }, ({ changes, entries }) => {
    const current: Metadata = parsed(entries)
    const merged = mergeMetadata(current, parsed(changes))
    const same =
      JSON.stringify(Object.entries(current).toSorted()) === JSON.stringify(Object.entries(merged).toSorted())
    assert.strictEqual(merged === current, same)
    assert.strictEqual(Object.keys(previousMetadata(current, merged)).length === 0, same)
  })

  it.prop("can be restored from its previous attributes", { entries, changes }, ({ changes, entries }) => {
    const current: Metadata = parsed(entries)
    const merged = mergeMetadata(current, parsed(changes))
    const back = mergeMetadata(merged, previousMetadata(current, merged))
    assert.deepStrictEqual(new Map(Object.entries(back)), new Map(Object.entries(current)))
  })

  it("is cleared as a whole by null and by the empty string", () => {
    assert.deepStrictEqual(mergeMetadata({ a: "1" }, null), {})
    assert.deepStrictEqual(mergeMetadata({ a: "1" }, ""), {})
    const empty = {}
    assert.strictEqual(mergeMetadata(empty, null), empty)
  })

  it.effect("has at most 50 keys, counted after the merge (semantics metadata.limits)", () =>
    Effect.gen(function* () {
      const fifty = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`k${i}`, "v"]))
      assert.strictEqual(yield* updateMetadata(fifty, undefined), fifty)
      const error = yield* Effect.flip(updateMetadata(fifty, { more: "v" }))
      assert.strictEqual(error.param, "metadata")
      yield* updateMetadata(fifty, { more: "v", k0: null })
      // An entry that removes a key does not count.
      assert.deepStrictEqual(wrongs({ ...fifty, more: null, another: "" }), [])
      assert.lengthOf(wrongs({ ...fifty, more: "v" }), 1)
    })
  )

  it("decodes any key unchanged, and names the wrong part", () => {
    const text = '{"__proto__":"x","constructor":"y"}'
    const exit = decode(parseJson(text))
    assert.isTrue(Exit.isSuccess(exit) && JSON.stringify(exit.value) === text)
    const paths = (input: unknown) => wrongs(input).map(({ path }) => path.join("."))
    assert.deepStrictEqual(paths({ a: 1, b: "x".repeat(501), c: "𝒳".repeat(500), d: null, e: "" }), ["a", "b"])
    assert.deepStrictEqual(paths({ ["𝒳".repeat(40)]: "v" }), [])
    for (const key of ["", "a[b", "a]", "x".repeat(41)]) assert.deepStrictEqual(paths({ [key]: "v" }), [""], key)
    for (const input of [[], "text", 1, true]) assert.deepStrictEqual(paths(input), [""])
  })
})
