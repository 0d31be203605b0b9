/** Which payments an address asks for: by filters, and by a query in the API's own language (semantics 9.19, 9.70). */
import { Effect, Result, Schema } from "effect"
import { DeclineCode } from "../domain/Cards.ts"
import { Currency } from "../domain/Money.ts"
import type { Clause, SearchQuery } from "../domain/SearchQuery.ts"
import { CLAUSES_MAX, parse } from "../domain/SearchQuery.ts"
import type { AccountId } from "../engine/Document.ts"
import { moneyOf } from "../pages/Money.ts"
import * as Amounts from "../pages/assets/amount.js"
import { CUSTOMER, PAYMENT_INTENT } from "../payments/Documents.ts"
import { FILTERED_PAYMENT_INTENT, SEARCHED_PAYMENT_INTENT } from "../payments/Search.ts"
import { DAY_SECONDS, dayIn } from "./components/Form.ts"
import type { Cursor } from "./components/Table.ts"
import { list, search } from "./Reading.ts"
import type { Visit } from "./Visit.ts"

const clause = (
  field: string,
  operator: Clause["operator"],
  value: Clause["value"],
  key?: string
): Clause & { readonly negated: false } => ({
  negated: false,
  field,
  operator,
  value,
  ...(key !== undefined && { key })
})

const givenIn = (query: URLSearchParams) => (name: string) => query.get(name)?.trim() ?? ""

/** One amount, or a range such as `10-50`. */
const amountClauses = (text: string, given: string): ReadonlyArray<Clause> => {
  if (text === "") return []
  const currency = Schema.is(Currency)(given) ? given.toLowerCase() : "usd"
  const [from = "", to = from] = text.split(/\s*[-–]\s*/u)
  const [least, most] = [from, to].map((amount) => Amounts.readAmount(amount, moneyOf(currency, "en")).minor)
  if (least === undefined || most === undefined) return []
  return from === to ? [clause("amount", ":", least)] : [clause("amount", ">=", least), clause("amount", "<=", most)]
}

/** What the filters ask for. What cannot be meant is left out: an address may have been typed. */
export const clausesOf = (query: URLSearchParams): ReadonlyArray<Clause> => {
  const given = givenIn(query)
  const clauses: Array<Clause> = []
  for (const field of ["status", "currency", "customer", "last4"]) {
    if (given(field) !== "" && !isEmail(given(field))) clauses.push(clause(field, ":", given(field)))
  }
  if (Schema.is(DeclineCode)(given("decline"))) clauses.push(clause("decline_code", ":", given("decline")))
  clauses.push(...amountClauses(given("amount"), given("currency")))
  const [from, until] = [dayIn(given("from")), dayIn(given("until"))]
  if (from !== undefined) clauses.push(clause("created", ">=", from))
  if (until !== undefined) clauses.push(clause("created", "<", until + DAY_SECONDS))
  const [key = "", value = ""] = given("metadata").split(/[:=](.*)/s, 2)
  if (key.trim() !== "" && value.trim() !== "") clauses.push(clause("metadata", ":", value.trim(), key.trim()))
  return clauses
}

export const isEmail = (text: string): boolean => /^[^\s"'@]+@[^\s"'@]+$/.test(text)

/** Of a payer's customers with the same email so many are asked for: with the email itself, as many as a query has. */
const CUSTOMERS_MAX = CLAUSES_MAX - 1

/** The customers that have an email, whatever its case. */
export const customersWith = (account: AccountId, email: string) =>
  list(account, CUSTOMER, { labels: { email: email.toLowerCase() }, limit: CUSTOMERS_MAX })

/** Whoever has this email has paid: a guest, or a customer. */
const paidBy = (account: AccountId, email: string) =>
  Effect.map(customersWith(account, email), ({ rows }): SearchQuery => ({
    connective: "OR",
    clauses: [clause("payer_email", ":", email), ...rows.map(({ id }) => clause("customer", ":", id))]
  }))

/** Fits a query, which is a text in quotes; an id alone, the end of a card's number or an email are meant as such. */
const queryOf = Effect.fnUntraced(function* (account: AccountId, text: string) {
  const only = (...clauses: ReadonlyArray<Clause>) => Result.succeed<SearchQuery>({ connective: "OR", clauses })
  if (/^pi_\w+$/.test(text)) return only(clause("id", ":", text))
  if (/^cus_\w+$/.test(text)) return only(clause("customer", ":", text))
  if (/^\d{4}$/.test(text)) return only(clause("last4", ":", text))
  if (isEmail(text)) return Result.succeed(yield* paidBy(account, text))
  return parse(text, SEARCHED_PAYMENT_INTENT.fields)
})

/** What an address asks for. */
export interface Asked {
  /** What is wrong with its query, in the API's words; null if nothing is. */
  readonly problem: string | null
  /** All must hold; none asks for every payment. */
  readonly queries: ReadonlyArray<SearchQuery>
}

export const askedBy = Effect.fnUntraced(function* ({ account, query }: Pick<Visit, "account" | "query">) {
  const clauses = clausesOf(query)
  const [text, customer] = [givenIn(query)("query"), givenIn(query)("customer")]
  const filtered: ReadonlyArray<SearchQuery> = [
    ...(clauses.length === 0 ? [] : [{ connective: "AND" as const, clauses }]),
    ...(isEmail(customer) ? [yield* paidBy(account, customer)] : [])
  ]
  if (text === "") return { problem: null, queries: filtered } satisfies Asked as Asked
  const parsed = yield* queryOf(account, text)
  if (Result.isFailure(parsed)) {
    const { position, problem } = parsed.failure
    return { problem: `At character ${position}, ${problem}.`, queries: [] } satisfies Asked as Asked
  }
  const { clauses: more, connective } = parsed.success
  const queries: ReadonlyArray<SearchQuery> = [{ clauses: more, connective }, ...filtered]
  return { problem: null, queries } satisfies Asked as Asked
})

/** A page of the payments that were asked for, newest first. */
export const payments = (
  account: AccountId,
  { queries: [first, ...others] }: Asked,
  page: { readonly cursor: Cursor; readonly limit: number }
) =>
  first === undefined
    ? list(account, PAYMENT_INTENT, page)
    : search(account, PAYMENT_INTENT, FILTERED_PAYMENT_INTENT, [first, ...others], page)
