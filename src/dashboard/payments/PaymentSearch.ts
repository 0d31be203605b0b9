/** Finds payments by filters, a text or a query (semantics dashboard.payments, search.*). */
import { Effect, Result, Schema } from "effect"
import { DeclineCode } from "../../domain/Cards.ts"
import { Currency } from "../../domain/Money.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import { type Clause, parse } from "../../domain/SearchQuery.ts"
import { hasBlank } from "../../domain/Text.ts"
import type { Accounts, Unavailable } from "../../engine/Accounts.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { moneyOf, problemText } from "../../html/Money.ts"
import * as Amounts from "../../html/assets/amount.js"
import { PAYMENT_INTENT } from "../../payments/shared/Documents.ts"
import {
  allOf,
  anyOf,
  type Condition,
  FILTERED_PAYMENT_INTENT,
  queryCondition,
  SEARCHED_PAYMENT_INTENT
} from "../../payments/shared/Search.ts"
import { type Day, readDay } from "../frame/Form.ts"
import type { Cursor } from "../frame/Table.ts"
import { listObjects, searchObjects } from "../frame/Queries.ts"
import type { Visit } from "../frame/Visit.ts"
import { alternativesOf, isEmail, payerCondition } from "./PaymentText.ts"

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

/** Clauses for a customer id. An email is handled by `payerCondition`. */
const customerClauses = (text: string): Read => {
  if (text === "" || isEmail(text)) return []
  if (text.includes("@") && hasBlank(text)) return BLANK
  return [clause("customer", ":", text)]
}

const dayClauses = (text: string, zone: string, clauseOf: (day: Day) => Clause): Read => {
  const day = readDay(text, zone)
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

const filteredBy = ({ query, zone }: Pick<Visit, "query" | "zone">): Filtered => {
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
    from: dayClauses(given("from"), zone, ({ from }) => clause("created", ">=", from)),
    until: dayClauses(given("until"), zone, ({ until }) => clause("created", "<", until)),
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

/** The beginning of a clause in the query language. Other texts are searched as people type them. */
const CLAUSE = new RegExp(String.raw`(?:^|\s)-?(?:${Object.keys(SEARCHED_PAYMENT_INTENT.fields).join("|")})[[:~<>]`)

export const isQuery = (text: string): boolean => CLAUSE.test(text)

/** The condition of the search field, or the error about it. */
const textCondition = Effect.fnUntraced(function* (account: AccountId, text: string) {
  const only = (field: string) =>
    queryCondition({ connective: "AND", clauses: [clause(field, ":", text)] }, FILTERED_PAYMENT_INTENT)
  if (/^pi_\w+$/.test(text)) return only("id")
  if (/^cus_\w+$/.test(text)) return only("customer")
  if (!isQuery(text)) return anyOf((yield* alternativesOf(account, text)).map(({ condition }) => condition))
  const parsed = parse(text, SEARCHED_PAYMENT_INTENT.fields)
  if (Result.isSuccess(parsed)) return queryCondition(parsed.success, FILTERED_PAYMENT_INTENT)
  return `At character ${parsed.failure.position}, ${parsed.failure.problem}.`
})

export interface PaymentQuery {
  /** Errors by field. Null if there are none. */
  readonly problems: Readonly<Record<string, string>> | null
  /** Null if every payment matches. */
  readonly condition: Condition<PaymentIntent> | null
}

export const readPaymentQuery = Effect.fnUntraced(function* ({
  account,
  query,
  zone
}: Pick<Visit, "account" | "query" | "zone">): Effect.fn.Return<PaymentQuery, Unavailable, Accounts> {
  const { clauses, problems } = filteredBy({ query, zone })
  const [text, customer] = [givenIn(query)("query"), givenIn(query)("customer")]
  const found = text === "" ? undefined : yield* textCondition(account, text)
  if (typeof found === "string") return { problems: { ...problems, query: found }, condition: null }
  if (Object.keys(problems).length > 0) return { problems, condition: null }
  const [first, ...others] = [
    ...(found === undefined ? [] : [found]),
    ...(clauses.length === 0 ? [] : [queryCondition({ connective: "AND", clauses }, FILTERED_PAYMENT_INTENT)]),
    ...(isEmail(customer) ? [yield* payerCondition(account, customer)] : [])
  ]
  return { problems: null, condition: first === undefined ? null : allOf(first, ...others) }
})

/** A page of the payments that match, newest first. */
export const findPayments = (
  account: AccountId,
  { condition }: Pick<PaymentQuery, "condition">,
  page: { readonly cursor: Cursor; readonly limit: number }
) =>
  condition === null
    ? listObjects(account, PAYMENT_INTENT, page)
    : searchObjects(account, PAYMENT_INTENT, condition, page)
