/** The results of the search in the navigation: groups by kind, the best matches first (semantics dashboard.find). */
import { Effect } from "effect"
import type { Customer } from "../../domain/Customer.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import { finds, wordsIn } from "../../domain/SearchWords.ts"
import type { AccountId, Identified } from "../../engine/log/Document.ts"
import { html, type Html } from "../../html/Html.ts"
import { CUSTOMER, PAYMENT_INTENT, PAYMENT_LINK, PRODUCT, type Resource } from "../../payments/shared/Documents.ts"
import {
  hasWholeWords,
  queryCondition,
  SEARCHED_CUSTOMER,
  SEARCHED_PAYMENT_LINK,
  SEARCHED_PRODUCT,
  type SearchedBy,
  wordsCondition
} from "../../payments/shared/Search.ts"
import { productColumns } from "../catalog/Products.ts"
import { CUSTOMER_COLUMNS } from "../customers/Customers.ts"
import type { DashboardPath } from "../frame/Links.ts"
import { type Listed, searchObjects } from "../frame/Queries.ts"
import { type Column, table } from "../frame/Table.ts"
import { NOTHING, section } from "../frame/Values.ts"
import type { Visit } from "../frame/Visit.ts"
import { customersOf } from "../payments/Payers.ts"
import { linkColumns } from "../payments/PaymentLinks.ts"
import { paymentColumns } from "../payments/Payments.ts"
import { alternativesOf } from "../payments/PaymentText.ts"

/** Rows of a group; a list has the others. */
const GROUP_ROWS = 10
/** The newest matches, of which a group shows the best. */
const RANKED_ROWS = 25

interface Found<A> extends Listed<A> {
  /** The rank of each object, 0 for the best. */
  readonly rankOf: (value: A) => number
}

/** The best objects of several searches, those of the same rank newest first. */
const best = <A extends Identified>(found: ReadonlyArray<Found<A>>): Listed<A> => {
  const ranked = new Map<string, { readonly value: A; readonly rank: number }>()
  for (const { rankOf, rows } of found) {
    for (const value of rows) {
      const rank = Math.min(rankOf(value), ranked.get(value.id)?.rank ?? Infinity)
      ranked.set(value.id, { value, rank })
    }
  }
  const all = [...ranked.values()].toSorted((a, b) => a.rank - b.rank || (a.value.id < b.value.id ? 1 : -1))
  return {
    rows: all.slice(0, GROUP_ROWS).map(({ value }) => value),
    hasMore: all.length > GROUP_ROWS || found.some(({ hasMore }) => hasMore)
  }
}

/** The newest objects with the words of a text, ranked by whether they have the whole words. */
const withWords = Effect.fnUntraced(function* <A extends Identified, H>(
  account: AccountId,
  kind: Resource<A, H>,
  searched: SearchedBy<A>,
  text: string
) {
  const words = wordsIn(text)
  const listed = yield* searchObjects(account, kind, wordsCondition(words, searched), { limit: RANKED_ROWS })
  const found: Found<A> = { ...listed, rankOf: (value) => (hasWholeWords(words, searched, value) ? 1 : 2) }
  return found
})

/** Customers with a text as their email or name, before those with its words. */
const findCustomers = Effect.fnUntraced(function* (account: AccountId, text: string) {
  const clauses = ["email", "name"].map((field) => ({ negated: false, field, operator: ":" as const, value: text }))
  const exact = queryCondition({ connective: "OR", clauses }, SEARCHED_CUSTOMER)
  const found = yield* Effect.all(
    [
      Effect.map(searchObjects(account, CUSTOMER, exact, { limit: GROUP_ROWS }), (listed): Found<Customer> => ({
        ...listed,
        rankOf: () => 0
      })),
      withWords(account, CUSTOMER, SEARCHED_CUSTOMER, text)
    ],
    { concurrency: "unbounded" }
  )
  return best(found)
})

const findPayments = Effect.fnUntraced(function* (account: AccountId, text: string) {
  const found = yield* Effect.forEach(
    yield* alternativesOf(account, text),
    ({ condition, rankOf }) =>
      Effect.map(
        searchObjects(account, PAYMENT_INTENT, condition, { limit: RANKED_ROWS }),
        (listed): Found<PaymentIntent> => ({ ...listed, rankOf })
      ),
    { concurrency: "unbounded" }
  )
  return best(found)
})

/** A column with the metadata that has a word of the text, if some payments have it. */
const metadataColumn = (
  words: ReadonlyArray<string>,
  payments: ReadonlyArray<PaymentIntent>
): ReadonlyArray<Column<PaymentIntent>> => {
  const isFound = (text: string) => words.some((word) => finds(word, { text, reach: "beginning" }))
  const entryOf = ({ metadata }: PaymentIntent) =>
    Object.entries(metadata)
      .find(([, value]) => wordsIn(value).some(isFound))
      ?.join(": ")
  const isShown = payments.some((payment) => entryOf(payment) !== undefined)
  return isShown ? [{ name: "Metadata", long: true, wide: true, cell: (payment) => entryOf(payment) ?? NOTHING }] : []
}

/** A table of one kind, with a link to the list of all matches. */
const group = <A extends Identified>(
  visit: Visit,
  path: DashboardPath,
  name: string,
  { hasMore, rows }: Listed<A>,
  columns: ReadonlyArray<Column<A>>
): Html | false => {
  if (rows.length === 0) return false
  const href = ({ id }: A) => visit.to(`${path}/${id}`)
  // The list of products shows only active ones otherwise.
  const query = { query: visit.query.get("query")!.trim(), status: path === "/products" ? "all" : null }
  return section(
    name,
    table({ caption: `${name}, best matches first`, columns, rows, href, empty: null }),
    hasMore && html`<a href="${visit.to(path, query)}">All matching ${name.toLowerCase()}</a>`
  )
}

/** The groups that have results, each with its heading. */
export const groupsOf = Effect.fnUntraced(function* (visit: Visit, text: string) {
  const { account } = visit
  const [payments, customers, products, links] = yield* Effect.all(
    [
      findPayments(account, text),
      findCustomers(account, text),
      Effect.map(withWords(account, PRODUCT, SEARCHED_PRODUCT, text), (found) => best([found])),
      Effect.map(withWords(account, PAYMENT_LINK, SEARCHED_PAYMENT_LINK, text), (found) => best([found]))
    ],
    { concurrency: "unbounded" }
  )
  const payers = yield* customersOf(account, payments.rows)
  return [
    group(visit, "/payments", "Payments", payments, [
      ...paymentColumns(visit, payers),
      ...metadataColumn(wordsIn(text), payments.rows)
    ]),
    group(visit, "/customers", "Customers", customers, CUSTOMER_COLUMNS),
    group(visit, "/products", "Products", products, yield* productColumns(visit, products.rows)),
    group(visit, "/payment-links", "Payment links", links, yield* linkColumns(account, links.rows))
  ].filter((part) => part !== false)
})
