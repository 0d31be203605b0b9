/** Which payments an address asks for: by filters, and by a query in the API's own language (semantics 9.19, 9.70). */
import { Effect, Result, Schema } from "effect"
import { DeclineCode } from "../domain/Cards.ts"
import { Currency } from "../domain/Money.ts"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import type { Clause, SearchQuery } from "../domain/SearchQuery.ts"
import { CLAUSES_MAX, parse } from "../domain/SearchQuery.ts"
import type { AccountId } from "../engine/Document.ts"
import { moneyOf } from "../pages/Money.ts"
import * as Amounts from "../pages/assets/amount.js"
import { CUSTOMER, PAYMENT_INTENT } from "../payments/Documents.ts"
import { SEARCHED_PAYMENT_INTENT } from "../payments/Search.ts"
import { DAY_SECONDS, dayIn } from "./components/Form.ts"
import type { Cursor } from "./components/Table.ts"
import type { Listed } from "./Reading.ts"
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

const not = (clause: Clause): Clause => ({ ...clause, negated: true })

/**
 * What else holds for a payment whose last attempt was declined: somebody has tried, and it was not paid since. Nothing
 * is indexed by the reason, so this is what finds those that are looked into.
 */
const DECLINED: ReadonlyArray<Clause> = [
  not(clause("last4", ":", null)),
  not(clause("status", ":", "succeeded")),
  not(clause("status", ":", "requires_capture"))
]

/** What the filters ask for. What cannot be meant is left out: an address may have been typed. */
export const clausesOf = (query: URLSearchParams): ReadonlyArray<Clause> => {
  const given = givenIn(query)
  const clauses: Array<Clause> = []
  for (const field of ["status", "currency", "customer", "last4"]) {
    if (given(field) !== "") clauses.push(clause(field, ":", given(field)))
  }
  const currency = Schema.is(Currency)(given("currency")) ? given("currency").toLowerCase() : "usd"
  const amount = Amounts.readAmount(given("amount"), moneyOf(currency, "en"))
  if (amount.minor !== undefined) clauses.push(clause("amount", ":", amount.minor))
  const [from, until] = [dayIn(given("from")), dayIn(given("until"))]
  if (from !== undefined) clauses.push(clause("created", ">=", from))
  if (until !== undefined) clauses.push(clause("created", "<", until + DAY_SECONDS))
  const [key = "", value = ""] = given("metadata").split(/[:=](.*)/s, 2)
  if (key.trim() !== "" && value.trim() !== "") clauses.push(clause("metadata", ":", value.trim(), key.trim()))
  return declineIn(query) === undefined ? clauses : [...clauses, ...DECLINED]
}

const declineIn = (query: URLSearchParams): DeclineCode | undefined => {
  const decline = query.get("decline")
  return Schema.is(DeclineCode)(decline) ? decline : undefined
}

/** Of a payer's customers with the same email so many are asked for; a query has no more clauses. */
const CUSTOMERS_MAX = CLAUSES_MAX

const EMAIL = /^[^\s"'@]+@[^\s"'@]+$/

/** Fits a query, which is a text in quotes; an id alone, the end of a card's number or an email are meant as such. */
const queryOf = Effect.fnUntraced(function* (account: AccountId, text: string) {
  const only = (...clauses: ReadonlyArray<Clause>) => Result.succeed<SearchQuery>({ connective: "OR", clauses })
  if (/^pi_\w+$/.test(text)) return only(clause("id", ":", text))
  if (/^cus_\w+$/.test(text)) return only(clause("customer", ":", text))
  if (/^\d{4}$/.test(text)) return only(clause("last4", ":", text))
  if (EMAIL.test(text)) {
    const labels = { email: text.toLowerCase() }
    const { rows } = yield* list(account, CUSTOMER, { labels, limit: CUSTOMERS_MAX })
    return only(...rows.map(({ id }) => clause("customer", ":", id)))
  }
  return parse(text, SEARCHED_PAYMENT_INTENT.fields)
})

/** What an address asks for. */
export interface Asked {
  /** What is wrong with its query, in the API's words; null if nothing is. */
  readonly problem: string | null
  /** All must hold; none asks for every payment. */
  readonly queries: ReadonlyArray<SearchQuery>
  /** Why the last attempt must have been declined. */
  readonly decline?: DeclineCode | undefined
}

export const askedBy = Effect.fnUntraced(function* ({ account, query }: Pick<Visit, "account" | "query">) {
  const clauses = clausesOf(query)
  const decline = declineIn(query)
  const filtered: ReadonlyArray<SearchQuery> = clauses.length === 0 ? [] : [{ connective: "AND", clauses }]
  const text = givenIn(query)("query")
  if (text === "") return { problem: null, queries: filtered, decline } satisfies Asked as Asked
  const parsed = yield* queryOf(account, text)
  if (Result.isFailure(parsed)) {
    const { position, problem } = parsed.failure
    return { problem: `At character ${position}, ${problem}.`, queries: [] } satisfies Asked as Asked
  }
  const { clauses: more, connective } = parsed.success
  const queries: ReadonlyArray<SearchQuery> =
    connective === "AND" ? [{ connective, clauses: [...more, ...clauses] }] : [parsed.success, ...filtered]
  return { problem: null, queries, decline } satisfies Asked as Asked
})

/** A page of payments. */
export interface Found extends Listed<PaymentIntent> {
  /** What was looked through ends with this one, which is where the next page begins; undefined if nothing was. */
  readonly end: string | undefined
}

/** A page of the payments that were asked for, newest first. */
export const payments = Effect.fnUntraced(function* (
  account: AccountId,
  { decline, queries }: Asked,
  { cursor, limit }: { readonly cursor: Cursor; readonly limit: number }
) {
  const [first, ...others] = queries
  const page = (page: { readonly cursor: Cursor; readonly limit: number }) =>
    first === undefined
      ? list(account, PAYMENT_INTENT, page)
      : search(account, PAYMENT_INTENT, SEARCHED_PAYMENT_INTENT, [first, ...others], page)
  if (decline !== undefined) return yield* lookThrough(page, decline, cursor, limit)
  const listed = yield* page({ cursor, limit })
  return { ...listed, end: listed.rows.at(-1)?.id } satisfies Found as Found
})

/** So many payments are looked into at first, and then if they do not fill the page: asking is what takes long. */
const LOOKS = [100, 1900]
/** So many for a page, which may stay short by that. */
export const LOOKED_THROUGH_MAX = LOOKS.reduce((sum, look) => sum + look)

/** Looks through a list for those that were declined for a reason. */
const lookThrough = Effect.fnUntraced(function* <E, R>(
  page: (page: { cursor: Cursor; limit: number }) => Effect.Effect<Listed<PaymentIntent>, E, R>,
  decline: DeclineCode,
  { olderThan }: Cursor,
  limit: number
) {
  const rows: Array<PaymentIntent> = []
  let end = olderThan
  for (const look of LOOKS) {
    const looking = yield* page({ cursor: end === undefined ? {} : { olderThan: end }, limit: look })
    for (const payment of looking.rows) {
      if (payment.last_payment_error?.decline_code === decline) {
        if (rows.length === limit) return { rows, hasMore: true, end } satisfies Found as Found
        rows.push(payment)
      }
      end = payment.id
    }
    if (!looking.hasMore) return { rows, hasMore: false, end } satisfies Found as Found
  }
  return { rows, hasMore: true, end } satisfies Found as Found
})
