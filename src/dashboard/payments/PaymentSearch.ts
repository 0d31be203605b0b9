/** Finds payments by filters and by a query in the API's query language (semantics search.*, dashboard.payments). */
import { Effect, Result, Schema } from "effect"
import { DeclineCode } from "../../domain/Cards.ts"
import { Currency } from "../../domain/Money.ts"
import { type Clause, CLAUSES_MAX, parse, type SearchQuery } from "../../domain/SearchQuery.ts"
import { hasBlank } from "../../domain/Text.ts"
import type { Accounts, Unavailable } from "../../engine/Accounts.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { moneyOf, problemText } from "../../html/Money.ts"
import * as Amounts from "../../html/assets/amount.js"
import { CUSTOMER, PAYMENT_INTENT } from "../../payments/Documents.ts"
import { FILTERED_PAYMENT_INTENT, SEARCHED_PAYMENT_INTENT } from "../../payments/Search.ts"
import { DAY_SECONDS, readDay } from "../frame/Form.ts"
import type { Cursor } from "../frame/Table.ts"
import { listObjects, searchObjects } from "../frame/Queries.ts"
import type { Visit } from "../frame/Visit.ts"

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

/** The clauses of a filter, or the error about it. */
type Read = ReadonlyArray<Clause> | string

/** Parses one amount, or a range such as `10-50`. */
const amountClauses = (text: string, given: string): Read => {
  if (text === "") return []
  const currency = Schema.is(Currency)(given) ? given.toLowerCase() : "usd"
  const dash = text.search(/[-–]/u)
  const [from, to] = dash === -1 ? [text, text] : [text.slice(0, dash), text.slice(dash + 1)]
  const [least, most] = [from, to].map((amount) => Amounts.readAmount(amount, moneyOf(currency, "en"))) as [
    Amounts.Read,
    Amounts.Read
  ]
  if (least.problem !== undefined) return problemText(least)
  if (most.problem !== undefined) return problemText(most)
  if (from === to) return [clause("amount", ":", least.minor)]
  return [clause("amount", ">=", least.minor), clause("amount", "<=", most.minor)]
}

/** The error about an email with a blank: usually a plus sign that was not encoded in a link. */
export const BLANK = "An email cannot contain a blank. In a link, write + as %2B."

/** Clauses for a customer id. An email is handled by `payerQuery`. */
const customerClauses = (text: string): Read => {
  if (text === "" || isEmail(text)) return []
  if (text.includes("@") && hasBlank(text)) return BLANK
  return [clause("customer", ":", text)]
}

const dayClauses = (text: string, clauseOf: (day: number) => Clause): Read => {
  const day = readDay(text)
  if (text === "") return []
  return day === undefined ? "Enter a day such as 2026-03-09." : [clauseOf(day)]
}

const metadataClauses = (text: string): Read => {
  const [key = "", value = ""] = text.split(/[:=](.*)/s, 2)
  if (text === "") return []
  return key.trim() === "" || value.trim() === ""
    ? "Enter a key and a value, such as order:6735."
    : [clause("metadata", ":", value.trim(), key.trim())]
}

interface Filtered {
  readonly clauses: ReadonlyArray<Clause>
  readonly problems: Readonly<Record<string, string>>
}

const filteredBy = (query: URLSearchParams): Filtered => {
  const given = givenIn(query)
  const decline = given("decline")
  const read = {
    ...Object.fromEntries(
      ["status", "currency", "last4"]
        .filter((field) => given(field) !== "")
        .map((field) => [field, [clause(field, ":", given(field))]])
    ),
    customer: customerClauses(given("customer")),
    decline: Schema.is(DeclineCode)(decline) ? [clause("decline_code", ":", decline)] : [],
    amount: amountClauses(given("amount"), given("currency")),
    from: dayClauses(given("from"), (day) => clause("created", ">=", day)),
    until: dayClauses(given("until"), (day) => clause("created", "<", day + DAY_SECONDS)),
    metadata: metadataClauses(given("metadata"))
  } satisfies Record<string, Read>
  const entries = Object.entries<Read>(read)
  return {
    clauses: entries.flatMap(([, clauses]) => (typeof clauses === "string" ? [] : clauses)),
    problems: Object.fromEntries(
      entries.flatMap(([field, wrong]) => (typeof wrong === "string" ? [[field, wrong]] : []))
    )
  }
}

export const isEmail = (text: string): boolean => /^[^\s"'@]+@[^\s"'@]+$/.test(text)

/** Customers of one email that a query covers: with the email itself they fill the clauses of a query. */
const CUSTOMERS_MAX = CLAUSES_MAX - 1

/** Customers with an email, ignoring case. */
export const customersWith = (account: AccountId, email: string) =>
  listObjects(account, CUSTOMER, { labels: { email: email.toLowerCase() }, limit: CUSTOMERS_MAX })

const payerQuery = (account: AccountId, email: string) =>
  Effect.map(customersWith(account, email), ({ rows }): SearchQuery => ({
    connective: "OR",
    clauses: [clause("payer_email", ":", email), ...rows.map(({ id }) => clause("customer", ":", id))]
  }))

/** Database searches per page at most: each alternative of one query is combined with each alternative of the other. */
export const SEARCHES_MAX = 2 * CLAUSES_MAX

/** The error about queries that would take too long together. */
const problemOf = (queries: ReadonlyArray<SearchQuery>): string | undefined => {
  const alternatives = queries.map(({ clauses, connective }) => (connective === "OR" ? clauses.length : 1))
  const searches = alternatives.reduce((product, count) => product * count, 1)
  return searches <= SEARCHES_MAX
    ? undefined
    : `Together with the email, this takes ${searches} searches; the maximum is ${SEARCHES_MAX}. Remove some ` +
        "alternatives (OR), or filter by a customer ID."
}

/** Parses a query. A bare id, card ending or email is a query of its own; in the query language, a text has quotes. */
const queryOf = Effect.fnUntraced(function* (account: AccountId, text: string) {
  const only = (...clauses: ReadonlyArray<Clause>) => Result.succeed<SearchQuery>({ connective: "OR", clauses })
  if (/^pi_\w+$/.test(text)) return only(clause("id", ":", text))
  if (/^cus_\w+$/.test(text)) return only(clause("customer", ":", text))
  if (/^\d{4}$/.test(text)) return only(clause("last4", ":", text))
  if (isEmail(text)) return Result.succeed(yield* payerQuery(account, text))
  return parse(text, SEARCHED_PAYMENT_INTENT.fields)
})

export interface PaymentQuery {
  /** Errors by field; the query's error is in the API's words. Null if there are none. */
  readonly problems: Readonly<Record<string, string>> | null
  /** All of them must match; an empty list matches every payment. */
  readonly queries: ReadonlyArray<SearchQuery>
}

export const readPaymentQuery = Effect.fnUntraced(function* ({
  account,
  query
}: Pick<Visit, "account" | "query">): Effect.fn.Return<PaymentQuery, Unavailable, Accounts> {
  const { clauses, problems } = filteredBy(query)
  const [text, customer] = [givenIn(query)("query"), givenIn(query)("customer")]
  const parsed = text === "" ? undefined : yield* queryOf(account, text)
  if (parsed !== undefined && Result.isFailure(parsed)) {
    const { position, problem } = parsed.failure
    return { problems: { ...problems, query: `At character ${position}, ${problem}.` }, queries: [] }
  }
  if (Object.keys(problems).length > 0) return { problems, queries: [] }
  const queries: ReadonlyArray<SearchQuery> = [
    ...(parsed === undefined ? [] : [parsed.success]),
    ...(clauses.length === 0 ? [] : [{ connective: "AND" as const, clauses }]),
    ...(isEmail(customer) ? [yield* payerQuery(account, customer)] : [])
  ]
  const problem = problemOf(queries)
  if (problem !== undefined) return { problems: { query: problem }, queries: [] }
  return { problems: null, queries }
})

/** A page of the payments that match, newest first. */
export const findPayments = (
  account: AccountId,
  { queries: [first, ...others] }: Pick<PaymentQuery, "queries">,
  page: { readonly cursor: Cursor; readonly limit: number }
) =>
  first === undefined
    ? listObjects(account, PAYMENT_INTENT, page)
    : searchObjects(account, PAYMENT_INTENT, FILTERED_PAYMENT_INTENT, [first, ...others], page)
