/** The combination of versions' changes (semantics versions.changes): in order, each once, at the right places. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Result, Schema } from "effect"
import { API_VERSIONS, API_VERSION_NEWEST } from "../../src/domain/ApiVersion.ts"
import {
  type Change,
  type JsonObject,
  make,
  type Version,
  type VersionedAnswer,
  VERSIONS
} from "../../src/domain/ApiVersions.ts"
import { Command } from "../../src/payments/administration/Administration.ts"

const ROUTE = "POST /v1/things"

const append = (value: JsonObject, name: string): JsonObject => ({
  ...value,
  trail: [...((value["trail"] as ReadonlyArray<string> | undefined) ?? []), name]
})

/** A change that adds its name to everything that it converts. */
const named = (name: string): Change => ({
  description: name,
  objects: { thing: (newer) => append(newer, name) },
  requests: {
    [ROUTE]: ({ body, query }) => {
      const next = new URLSearchParams(query)
      next.append("trail", name)
      return Result.succeed({ query: next, body: append(body as JsonObject, name) })
    }
  },
  answers: { "*": (newer: VersionedAnswer) => ({ ...newer, status: newer.status + 1 }) }
})

/** Versions with these numbers of changes, after the first, which has none. */
const versionsOf = (counts: ReadonlyArray<number>): ReadonlyArray<Version> => [
  { date: "2026-03-09", changes: [] },
  ...counts.map((count, i) => ({
    date: `${2027 + i}-01-01`,
    changes: Array.from({ length: count }, (_, j) => named(`${i + 1}.${j}`))
  }))
]

const counts = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 })))
const Nested = Schema.Array(Schema.Literals(["list", "member", "metadata", "event", "previous_attributes"]))

/** Wraps a value in layers. */
const wrap = (thing: JsonObject, layers: typeof Nested.Type): JsonObject =>
  layers.reduce<JsonObject>(
    (inner, layer) =>
      layer === "list"
        ? { object: "list", data: [inner, { object: "other" }], has_more: false }
        : layer === "event"
          ? { object: "event", data: { object: inner } }
          : { object: "other", [layer]: inner },
    thing
  )

const unwrap = (value: JsonObject, layers: typeof Nested.Type): JsonObject =>
  layers.toReversed().reduce<JsonObject>((outer, layer) => {
    const inner = outer["data"] ?? outer[layer]
    return (
      layer === "list" ? (inner as [JsonObject])[0] : layer === "event" ? (inner as JsonObject)["object"] : inner
    ) as JsonObject
  }, value)

describe("versions", () => {
  it("published ones are those of headers, the client and the command line; the newest needs no conversion", () => {
    assert.deepStrictEqual(
      VERSIONS.map(({ date }) => date),
      [...API_VERSIONS]
    )
    assert.strictEqual(VERSIONS.at(-1)!.date, API_VERSION_NEWEST)
    assert.isUndefined(make(VERSIONS).older(API_VERSION_NEWEST))
    assert.deepStrictEqual(VERSIONS[0]!.changes, [])
    const decodes = (version: string) =>
      Exit.isSuccess(Schema.decodeUnknownExit(Command)({ _tag: "SetVersion", merchant: "mer_1", version }))
    assert.isTrue(API_VERSIONS.every(decodes))
    assert.isFalse(["2027-02-01", "", "2026-3-9"].some(decodes))
  })

  it("are refused out of order, twice, without a date, and if there are none", () => {
    for (const dates of [[], ["2027-01-01", "2026-01-01"], ["2026-01-01", "2026-01-01"], ["today"]]) {
      assert.throws(() => make(dates.map((date) => ({ date, changes: [] }))), "Versions are dates")
    }
  })

  it.effect.prop(
    "requests pass through the changes since their version oldest first, responses and objects newest first",
    { counts, layers: Nested },
    ({ counts, layers }) =>
      Effect.sync(() => {
        const versions = versionsOf(counts)
        const { known, newest, older } = make(versions)
        assert.strictEqual(newest, known.at(-1))
        assert.isUndefined(older(newest))
        assert.isUndefined(older("2025-01-01"))
        for (const [i, date] of known.slice(0, -1).entries()) {
          const names = versions.slice(i + 1).flatMap(({ changes }) => changes.map(({ description }) => description))
          const served = older(date)!
          const request = Result.getOrThrow(served.request(ROUTE, "a=1", { b: 2 }))
          assert.deepStrictEqual(new URLSearchParams(request.query).getAll("trail"), names)
          assert.deepStrictEqual((request.body as JsonObject)["trail"] ?? [], names)
          const other = Result.getOrThrow(served.request("GET /v1/things", "a=%20+", 7))
          assert.deepStrictEqual(other, { query: "a=%20+", body: 7 })

          const isClosed = layers.includes("metadata") || layers.includes("event")
          const back = isClosed ? [] : names.toReversed()
          const thing = wrap({ object: "thing" }, layers)
          const answer = served.answer(undefined, { status: 200, body: JSON.stringify(thing) })
          assert.strictEqual(answer.status, 200 + names.length)
          assert.deepStrictEqual(unwrap(JSON.parse(answer.body), layers)["trail"] ?? [], back)
          assert.deepStrictEqual(unwrap(served.object(thing), layers)["trail"] ?? [], back)
        }
      }),
    { arbitrary: { runs: 100 } }
  )

  it.effect.prop(
    "a response without a changed object stays the same text, unparsed",
    { counts },
    ({ counts }) =>
      Effect.sync(() => {
        const withoutAnswers = versionsOf(counts).map(({ changes, date }) => ({
          date,
          changes: changes.map(({ description, objects = {} }) => ({ description, objects }))
        }))
        const { known, older } = make(withoutAnswers)
        for (const date of known.slice(0, -1)) {
          const answer = { status: 200, body: '{"object":"other", not even JSON' }
          assert.strictEqual(older(date)!.answer(ROUTE, answer), answer)
        }
      }),
    { arbitrary: { runs: 30 } }
  )
})
