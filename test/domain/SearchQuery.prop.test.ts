/**
 * Search queries (semantics search.syntax): every printed query parses to itself, every text is a query or is refused
 * at a position, and the operators of each field type are a closed table.
 */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import {
  type Clause,
  CLAUSES_MAX,
  type Fields,
  matches,
  parse,
  type SearchQuery
} from "../../src/domain/SearchQuery.ts"
import { Random, Seed } from "../support/Random.ts"
import { print } from "../support/SearchQueries.ts"

const FIELDS: Fields = {
  id: { type: "reference" },
  amount: { type: "number" },
  status: { type: "token" },
  customer: { type: "reference", nullable: true },
  email: { type: "text", nullable: true },
  metadata: { type: "token", keyed: true }
}

const TEXTS = ["abc", "", "a b", 'say "hi"', "it's", "back\\slash\\", "ünï→😀", "AND", "null", "-x", "\n\u0000", "]:["]

const clause = (random: Random): Clause => {
  const field = random.pick(Object.keys(FIELDS))
  const { keyed, nullable, type } = FIELDS[field]!
  const head = { negated: random.chance(0.3), field, ...(keyed && { key: random.pick(TEXTS) }) }
  if (type === "number") {
    return { ...head, operator: random.pick([":", ">", ">=", "<", "<="] as const), value: random.below(2 ** 53) }
  }
  if ((keyed || nullable) && random.chance(0.2)) return { ...head, operator: ":", value: null }
  const isPart = type === "text" && random.chance(0.5)
  const texts = isPart ? TEXTS.filter((text) => [...text].length >= 3) : TEXTS
  return { ...head, operator: isPart ? "~" : ":", value: random.pick(texts) }
}

const query = (random: Random): SearchQuery => {
  const clauses = Array.from({ length: random.integer(1, CLAUSES_MAX) }, () => clause(random))
  return { connective: clauses.length === 1 ? "AND" : random.pick(["AND", "OR"]), clauses }
}

const refused = (text: string) => {
  const parsed = parse(text, FIELDS)
  assert.isTrue(Result.isFailure(parsed), text)
  return Result.isFailure(parsed) ? [parsed.failure.position, parsed.failure.problem] : []
}
const accepted = (text: string): SearchQuery => Result.getOrThrow(parse(text, FIELDS))

describe("search.*: a search query", () => {
  it.prop("is the same after printing and parsing", [Seed], ([seed]) => {
    const one = query(new Random(seed))
    assert.deepStrictEqual(accepted(print(one)), one)
  })

  it.prop("is any text, unless the text is refused with a position in it", [Seed, Schema.String], ([seed, noise]) => {
    const random = new Random(seed)
    const printed = print(query(random))
    const [at, end] = [random.below(printed.length + 1), random.below(printed.length + 1)]
    for (const text of [noise, printed.slice(0, at), printed.slice(0, at) + noise + printed.slice(end)]) {
      const parsed = parse(text, FIELDS)
      if (Result.isSuccess(parsed)) assert.deepStrictEqual(accepted(print(parsed.success)), parsed.success)
      else {
        assert.isAtLeast(parsed.failure.position, 1)
        assert.isAtMost(parsed.failure.position, [...text].length + 1)
        assert.isNotEmpty(parsed.failure.problem)
      }
    }
  })

  it("can be written in other notations", () => {
    const one = accepted('status:"a" AND -amount>5')
    for (const text of [`status:'a' and -amount>5`, `  status:"a"\n-amount>"5" `]) {
      assert.deepStrictEqual(accepted(text), one)
    }
  })

  it("is refused with a position and the problem there", () => {
    const problems: ReadonlyArray<readonly [string, number, string]> = [
      ["", 1, "a field is missing"],
      ["phone:1", 1, "there is no field phone to search by"],
      ["😀", 1, "a field is missing"],
      ["status", 7, "an operator is missing: one of : ~ > >= < <="],
      ['status~"abc"', 7, "status cannot be searched with ~"],
      ['status>"abc"', 7, "status cannot be searched with >"],
      ["amount~123", 7, "amount cannot be searched with ~"],
      ['email>"abc"', 6, "email cannot be searched with >"],
      ['id~"abc"', 3, "id cannot be searched with ~"],
      ['metadata["a"]~"abc"', 14, "metadata cannot be searched with ~"],
      ['email~"ab"', 7, "~ needs at least 3 characters"],
      ['email~"😀😀" AND x', 7, "~ needs at least 3 characters"],
      ["status:succeeded", 8, "a value in quotes is missing"],
      ['status:"a', 8, "this quote has no end"],
      ['status:"a\\', 8, "this quote has no end"],
      ["status:null", 8, "this field is never null"],
      ["email~null", 7, "null goes with : alone"],
      ["amount:1.5", 9, "a space is missing"],
      ["amount:-1", 8, "an integer is missing"],
      ["amount:9007199254740992", 8, "an integer is missing"],
      ["metadata:1", 9, 'metadata needs a key: metadata["key"]'],
      ['metadata["a":1', 13, 'metadata needs a key: metadata["key"]'],
      ["amount>1 AND amount>2 OR amount>3", 23, "AND and OR cannot be mixed"],
      ["amount>1 OR amount>2 amount>3", 22, "AND and OR cannot be mixed"],
      ['status:"😀" AND x:1', 16, "there is no field x to search by"],
      ["amount>1 AND", 10, "there is no field AND to search by"],
      ["__proto__:1", 1, "there is no field __proto__ to search by"],
      [`${"amount>1 ".repeat(CLAUSES_MAX)}amount>1`, 9 * CLAUSES_MAX + 1, `there are more than ${CLAUSES_MAX} clauses`]
    ]
    for (const [text, position, problem] of problems) assert.deepStrictEqual(refused(text), [position, problem], text)
  })

  it("ignores case, except in ids; a negation matches absent fields", () => {
    const values = {
      id: "cus_A",
      amount: 5,
      status: "Open",
      customer: null,
      email: "Jenny@Example.com",
      metadata: { Plan: "Gold" }
    }
    const holds = (text: string) => matches(accepted(text), FIELDS, values)
    for (const text of [
      'id:"cus_A"',
      '-id:"cus_a"',
      'status:"oPEN"',
      'email~"Y@EX"',
      'metadata["Plan"]:"gold"',
      'metadata["plan"]:null',
      'metadata["__proto__"]:null',
      '-metadata["Plan"]:null',
      '-metadata["x"]:"y"',
      "customer:null",
      '-customer:"cus_1"',
      "amount:5 amount>4 amount>=5 amount<6 amount<=5 -amount>5",
      'amount:1 OR status:"open"'
    ]) {
      assert.isTrue(holds(text), text)
    }
    for (const text of ['id:"cus_a"', "amount>5", "amount<5", "-customer:null", 'email:"jenny"', 'customer:"x"']) {
      assert.isFalse(holds(text), text)
    }
  })
})
