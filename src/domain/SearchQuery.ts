/**
 * Queries of searches, in Stripe's syntax (semantics search.*): `status:"succeeded" AND amount>1000`.
 *
 * A query consists of clauses, all of which must hold, or one of which must (`OR`). A clause is a field, an operator
 * and a value, with `-` before it for the negation. The type of a field determines its operators:
 *
 * | Type        | `:` value | `:null`             | `~` value | `>` `>=` `<` `<=` |
 * | ----------- | --------- | ------------------- | --------- | ----------------- |
 * | `reference` | exactly   | if it can be absent |           |                   |
 * | `token`     | any case  | if it can be absent |           |                   |
 * | `text`      | any case  | if it can be absent | any case  |                   |
 * | `number`    | yes       |                     |           | yes               |
 *
 * Pure: parsing returns a query, or a problem with its position, and never throws.
 */
import { Result } from "effect"
import { BLANK_ADVICE, hasBlank } from "./Text.ts"

export type FieldType = "reference" | "token" | "text" | "number"

export interface Field {
  readonly type: FieldType
  /** Whether an object can lack the field. */
  readonly nullable?: boolean
  /** Whether the field has entries, each a token that may be absent: `metadata["key"]`. */
  readonly keyed?: boolean
  /** Whether the field holds email addresses, which contain no blanks. */
  readonly email?: boolean
}

export type Fields = Readonly<Record<string, Field>>

/** The values of an object's fields; null for an absent one. A keyed field is a record of texts. */
export type Values = Readonly<Record<string, string | number | null | Readonly<Record<string, string>>>>

export type Operator = ":" | "~" | ">" | ">=" | "<" | "<="

export interface Clause {
  readonly negated: boolean
  readonly field: string
  readonly key?: string
  readonly operator: Operator
  /** Null searches for an absent field. */
  readonly value: string | number | null
}

export interface SearchQuery {
  readonly connective: "AND" | "OR"
  readonly clauses: ReadonlyArray<Clause>
}

/** `position` counts characters from 1; `problem` describes the error there. */
export interface Malformed {
  readonly position: number
  readonly problem: string
}

export const CLAUSES_MAX = 20
/** The minimum length for `~`; a shorter text is part of too many values. */
export const SUBSTRING_LENGTH_MIN = 3

/** Returns a token or text in the form in which case is ignored. */
export const folded = (text: string): string => text.toLowerCase()

export const parse = (text: string, fields: Fields): Result.Result<SearchQuery, Malformed> => {
  const parser = new Parser(text, fields)
  try {
    return Result.succeed(parser.query())
  } catch (problem) {
    if (problem instanceof Problem) return Result.fail(malformed(text, problem))
    throw problem
  }
}

/** Converts a problem; a character of two code units counts once. */
const malformed = (text: string, { at, message }: Problem): Malformed => ({
  position: Array.from(text.slice(0, at)).length + 1,
  problem: message
})

/** Thrown to end the parsing; never leaves this file. */
class Problem extends Error {
  readonly at: number
  constructor(at: number, message: string) {
    super(message)
    this.at = at
  }
}

const COMPARISONS: ReadonlySet<string> = new Set([">", ">=", "<", "<="])

class Parser {
  readonly #text: string
  readonly #fields: Fields
  #at = 0

  constructor(text: string, fields: Fields) {
    this.#text = text
    this.#fields = fields
  }

  query(): SearchQuery {
    const clauses: Array<Clause> = []
    let connective: SearchQuery["connective"] | undefined
    for (;;) {
      this.#skipSpace()
      if (clauses.length === CLAUSES_MAX) this.#fail(`there are more than ${CLAUSES_MAX} clauses`)
      clauses.push(this.#clause())
      const end = this.#at
      this.#skipSpace()
      if (this.#at === this.#text.length) break
      if (this.#at === end) this.#fail("a space is missing")
      const at = this.#at
      const [word] = this.#match(/(?:AND|OR)(?=\s)/iuy) ?? []
      // Clauses without a connective are joined by AND.
      const next = word === undefined ? "AND" : (word.toUpperCase() as SearchQuery["connective"])
      if (connective !== undefined && connective !== next) this.#fail("AND and OR cannot be mixed", at)
      connective = next
    }
    return { connective: connective ?? "AND", clauses }
  }

  #clause(): Clause {
    const negated = this.#match(/-/uy) !== undefined
    const start = this.#at
    const [field] = this.#match(/\w+/uy) ?? this.#fail("a field is missing")
    if (!Object.hasOwn(this.#fields, field)) this.#fail(`there is no field ${field} to search by`, start)
    const { email, keyed, nullable, type } = this.#fields[field]!
    const key = keyed ? this.#key(field) : undefined
    const operator = this.#operator(type, field)
    const at = this.#at
    const value = this.#value(type, operator, nullable === true || keyed === true)
    if (email === true && hasBlank(String(value))) this.#fail(BLANK_ADVICE, at)
    return { negated, field, ...(key !== undefined && { key }), operator, value }
  }

  /** `["key"]` */
  #key(field: string): string {
    const [open] = this.#match(/\[/uy) ?? []
    const key = open === undefined ? undefined : this.#quoted()
    if (key === undefined || this.#match(/\]/uy) === undefined) this.#fail(`${field} needs a key: ${field}["key"]`)
    return key
  }

  #operator(type: FieldType, field: string): Operator {
    const start = this.#at
    const [operator] = this.#match(/[:~]|[<>]=?/uy) ?? this.#fail("an operator is missing: one of : ~ > >= < <=")
    const fits = operator === ":" || (operator === "~" ? type === "text" : type === "number")
    if (!fits) this.#fail(`${field} cannot be searched with ${operator}`, start)
    return operator as Operator
  }

  #value(type: FieldType, operator: Operator, nullable: boolean): Clause["value"] {
    const start = this.#at
    if (this.#match(/null(?!\w)/uy) !== undefined) {
      if (nullable && operator === ":") return null
      this.#fail(operator === ":" ? "this field is never null" : `null goes with : alone`, start)
    }
    if (type === "number") {
      const digits = this.#quoted() ?? this.#match(/\d+/uy)?.[0] ?? ""
      const number = Number(digits)
      if (!/^\d+$/u.test(digits) || !Number.isSafeInteger(number)) this.#fail("an integer is missing", start)
      return number
    }
    const value = this.#quoted() ?? this.#fail("a value in quotes is missing")
    if (operator === "~" && [...value].length < SUBSTRING_LENGTH_MIN) {
      this.#fail(`~ needs at least ${SUBSTRING_LENGTH_MIN} characters`, start)
    }
    return value
  }

  #quoted(): string | undefined {
    const start = this.#at
    const [quote] = this.#match(/["']/uy) ?? []
    if (quote === undefined) return undefined
    let value = ""
    for (;;) {
      const [part] = this.#match(quote === '"' ? /[^"\\]*/uy : /[^'\\]*/uy) ?? [""]
      value += part
      if (this.#match(quote === '"' ? /"/uy : /'/uy) !== undefined) return value
      const [escaped] = this.#match(/\\[^]/uy) ?? this.#fail("this quote has no end", start)
      value += escaped.slice(1)
    }
  }

  #skipSpace(): void {
    this.#match(/\s+/uy)
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)
    if (found === null) return undefined
    this.#at += found[0].length
    return found
  }

  #fail(problem: string, at: number = this.#at): never {
    throw new Problem(at, problem)
  }
}

/** Returns whether an object with these values matches a query. */
export const matches = ({ clauses, connective }: SearchQuery, fields: Fields, values: Values): boolean => {
  const holds = (clause: Clause) => holdsFor(clause, fields[clause.field]!.type, values) !== clause.negated
  return connective === "AND" ? clauses.every(holds) : clauses.some(holds)
}

const holdsFor = ({ field, key, operator, value }: Clause, type: FieldType, values: Values): boolean => {
  const found = key === undefined ? values[field]! : entryOf(values[field]!, key)
  if (value === null || found === null) return value === found
  if (COMPARISONS.has(operator)) return compares(found as number, operator, value as number)
  if (type === "reference" || type === "number") return found === value
  const text = folded(found as string)
  return operator === "~" ? text.includes(folded(value as string)) : text === folded(value as string)
}

/** Returns an entry by its key, which the merchant chooses, `__proto__` included. */
const entryOf = (record: Values[string], key: string): string | null =>
  Object.hasOwn(record as object, key) ? (record as Readonly<Record<string, string>>)[key]! : null

const compares = (found: number, operator: Operator, value: number): boolean => {
  switch (operator) {
    case ">":
      return found > value
    case ">=":
      return found >= value
    case "<":
      return found < value
    default:
      return found <= value
  }
}
