import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as Budget from "../../bench/budget/Budget.ts"
import * as Costs from "../../bench/budget/Costs.ts"
import { type Kind, KINDS } from "../../bench/budget/Requests.ts"
import { ClientMessages } from "../../bench/budget/StatementProxy.ts"

const message = (type: string, ...parts: ReadonlyArray<string>): Buffer => {
  const body = Buffer.from(parts.map((part) => `${part}\0`).join(""))
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(4 + body.length, 1)
  return Buffer.concat([head, body])
}

/** A start-up message has no type; this one's parameters look like other messages. */
const startUp = message("x", "user", "E", "Q", "P").subarray(1)

const Sent = Schema.Union([
  Schema.Struct({ by: Schema.Literal("query"), text: Schema.Literals(["SELECT 1", "SELECT é"]) }),
  Schema.Struct({
    by: Schema.Literals(["unnamed", "named"]),
    text: Schema.Literals(["INSERT", "UPDATE"]),
    value: Schema.String
  })
])

describe("the statements of a connection", () => {
  it.prop(
    "are counted however their messages are cut",
    {
      sent: Schema.Array(Sent),
      cuts: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 40 })))
    },
    ({ cuts, sent }) => {
      const expected: Array<readonly [string, number]> = []
      const prepared = new Set<string>()
      const messages = [startUp]
      for (const one of sent) {
        if (one.by === "query") {
          messages.push(message("Q", one.text))
          expected.push([one.text, 0])
          continue
        }
        const name = one.by === "named" ? `s_${one.text}` : ""
        if (name === "" || !prepared.has(name)) messages.push(message("P", name, one.text))
        if (name !== "") prepared.add(name)
        const bound = message("B", "", name, one.value)
        messages.push(bound, message("D", "P"), message("E", ""), message("S"))
        expected.push([one.text, bound.length - 5])
      }
      const counted: Array<readonly [string, number]> = []
      const reader = new ClientMessages((text, bytes) => counted.push([text, bytes]))
      const bytes = Buffer.concat(messages)
      for (let at = 0, i = 0; at < bytes.length; i++) {
        const length = cuts.length === 0 ? bytes.length : cuts[i % cuts.length]!
        reader.push(bytes.subarray(at, at + length))
        at += length
      }
      assert.deepStrictEqual(counted, expected)
    }
  )
})

describe("the budget", () => {
  const costsOf = (create: Costs.Figures): Costs.Costs => {
    const others = Object.fromEntries(KINDS.map((kind): [Kind, Costs.Figures] => [kind, {}])) as Costs.Costs
    return { ...others, create }
  }
  const budget = costsOf({ "record bytes": 1000, "rows of journal": 1 })

  it("allows a figure three per cent on both sides", () => {
    const problems = (bytes: number) =>
      Budget.problemsOf(costsOf({ "record bytes": bytes, "rows of journal": 1 }), budget)
    for (const bytes of [970, 1000, 1030]) assert.deepStrictEqual(problems(bytes), [])
    assert.deepStrictEqual(problems(1031), ["create, record bytes: 1031 is over the budget of 1000"])
    assert.deepStrictEqual(problems(969), ["create, record bytes: 969 is below the budget of 1000: lower it"])
  })

  it("allows allocations ten per cent on both sides", () => {
    const allocated = (bytes: number) => costsOf({ "allocated bytes": bytes })
    for (const bytes of [900, 1100]) assert.deepStrictEqual(Budget.problemsOf(allocated(bytes), allocated(1000)), [])
    for (const bytes of [899, 1101]) assert.lengthOf(Budget.problemsOf(allocated(bytes), allocated(1000)), 1)
  })

  it("allows no figure that it does not name, and names none that is not there", () => {
    assert.deepStrictEqual(
      Budget.problemsOf(costsOf({ "record bytes": 1000, "rows of journal": 1, "rows of events": 1 }), budget),
      ["create, rows of events: 1 is over the budget of 0"]
    )
    assert.deepStrictEqual(Budget.problemsOf(costsOf({ "record bytes": 1000 }), budget), [
      "create, rows of journal: 0 is below the budget of 1: lower it"
    ])
  })

  it.live("holds for each kind of request: bytes, rows and statements", () =>
    Effect.gen(function* () {
      const { costs } = yield* Costs.measure
      assert.deepStrictEqual(Budget.problemsOf(costs, Budget.read()), [])
    })
  )
})
