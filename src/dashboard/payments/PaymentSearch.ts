/** Which payments an address asks for: by filters, and by a query in the API's own language (semantics 9.19, 9.70). */
import { Effect, Result, Schema } from "effect"
import { DeclineCode } from "../../domain/Cards.ts"
import { Currency } from "../../domain/Money.ts"
import type { Clause, SearchQuery } from "../../domain/SearchQuery.ts"
import { CLAUSES_MAX, parse } from "../../domain/SearchQuery.ts"
import { hasBlank } from "../../domain/Text.ts"
import type { Accounts, Unavailable } from "../../engine/Accounts.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { moneyOf } from "../../html/Money.ts"
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

/** What a filter asks for, or what is wrong with it. */
type Read = ReadonlyArray<Clause> | string

/** One amount, or a range such as `10-50`. */
const amountClauses = (text: string, given: string): Read => {
  if (text === "") return []
  const currency = Schema.is(Currency)(given) ? given.toLowerCase() : "usd"
  const dash = text.search(/[-–]/u)
  const [from, to] = dash === -1 ? [text, text] : [text.slice(0, dash), text.slice(dash + 1)]
  const [least, most] = [from, to].map((amount) => Amounts.readAmount(amount, moneyOf(currency, "en"))) as [
    Amounts.Read,
    Amounts.Read
  ]
  const problem = least.problem ?? most.problem
  if (problem !== undefined) return problem
  if (from === to) return [clause("amount", ":", least.minor!)]
  return [clause("amount", ">=", least.minor!), clause("amount", "<=", most.minor!)]
}

/** What is wrong with an email that is looked for, where a plus was not encoded. */
export const BLANK = "This has a blank, and no email has one. In a link, + is written as %2B."

/** A customer's id. For an email, `paidBy` has the clauses. */
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
  /** By field. */
  readonly problems: Readonly<Record<string, string>>
}

/** What the filters ask for. */
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

/** Of a payer's customers with the same email so many are asked for: with the email itself, as many as a query has. */
const CUSTOMERS_MAX = CLAUSES_MAX - 1

/** The customers that have an email, whatever its case. */
export const customersWith = (account: AccountId, email: string) =>
  listObjects(account, CUSTOMER, { labels: { email: email.toLowerCase() }, limit: CUSTOMERS_MAX })

/** Whoever has this email has paid: a guest, or a customer. */
const payerQuery = (account: AccountId, email: string) =>
  Effect.map(customersWith(account, email), ({ rows }): SearchQuery => ({
    connective: "OR",
    clauses: [clause("payer_email", ":", email), ...rows.map(({ id }) => clause("customer", ":", id))]
  }))

/** A database's searches for one page: each alternative of one query, with each of the other, is a search. */
export const SEARCHES_MAX = 2 * CLAUSES_MAX

/** What is wrong with queries that together would take too long. */
const problemOf = (queries: ReadonlyArray<SearchQuery>): string | undefined => {
  const alternatives = queries.map(({ clauses, connective }) => (connective === "OR" ? clauses.length : 1))
  const searches = alternatives.reduce((product, count) => product * count, 1)
  return searches <= SEARCHES_MAX
    ? undefined
    : `With the email beside it, this is ${searches} searches, and ${SEARCHES_MAX} are the most. Leave out some of the ` +
        "alternatives (OR), or filter by the id of one customer."
}

/** Fits a query, which is a text in quotes; an id alone, the end of a card's number or an email are meant as such. */
const queryOf = Effect.fnUntraced(function* (account: AccountId, text: string) {
  const only = (...clauses: ReadonlyArray<Clause>) => Result.succeed<SearchQuery>({ connective: "OR", clauses })
  if (/^pi_\w+$/.test(text)) return only(clause("id", ":", text))
  if (/^cus_\w+$/.test(text)) return only(clause("customer", ":", text))
  if (/^\d{4}$/.test(text)) return only(clause("last4", ":", text))
  if (isEmail(text)) return Result.succeed(yield* payerQuery(account, text))
  return parse(text, SEARCHED_PAYMENT_INTENT.fields)
})

/** What an address asks for. */
export interface PaymentQuery {
  /** What is wrong with it, by field; of its query in the API's words. Null if nothing is. */
  readonly problems: Readonly<Record<string, string>> | null
  /** All must hold; none asks for every payment. */
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

/** A page of the payments that were asked for, newest first. */
export const findPayments = (
  account: AccountId,
  { queries: [first, ...others] }: Pick<PaymentQuery, "queries">,
  page: { readonly cursor: Cursor; readonly limit: number }
) =>
  first === undefined
    ? listObjects(account, PAYMENT_INTENT, page)
    : searchObjects(account, PAYMENT_INTENT, FILTERED_PAYMENT_INTENT, [first, ...others], page)
