/** The measured pages with their required content: a fast wrong page is not a result. */
import { DAYS, PER_RECORD, type Shop } from "./Shop.ts"
import { amountOf, emailOf, wasCharged, last4Of, RARE, RARE_DECLINE, spread, UNKNOWN_DECLINE } from "./History.ts"

export interface Page {
  readonly title: string
  /** Path of a load; it differs from load to load where people would open different objects. */
  readonly pathOf: (i: number) => string
  /** Least number of rows in the page's table; 0 requires none, undefined requires nothing. */
  readonly rows?: number
}

/** Rows of a full page. */
const FULL = 25
/** Payments before a page far back in the list. */
const FAR = 100_000

const DAY_MILLIS = 86_400_000

const at = (path: string, query: Readonly<Record<string, string>>) => `${path}?${new URLSearchParams(query)}`

/** Returns a number below a bound that depends on the load. */
const drawn = (i: number, salt: number, below: number): number => spread(i, 100 + salt, below)

/** Returns the number of a past payment with a charge. */
const triedOf = (i: number, count: number): number => {
  for (let salt = 0; ; salt++) {
    const number = drawn(i, salt, count)
    if (wasCharged(number)) return number
  }
}

/** Searches for texts as people type them. */
const searches = (customers: number, count: number): ReadonlyArray<Page> => {
  const ofSearch = (title: string, rows: number, textOf: (i: number) => string): Page => ({
    title: `search, ${title}`,
    rows,
    pathOf: (i) => at("/find", { query: textOf(i) })
  })
  return [
    ofSearch("a name", 2, () => "müller"),
    ofSearch("a first name that many have", 2, () => "anna"),
    ofSearch("the beginning of a name", 2, (i) => ["bjö", "fat", "okaf", "kowals"][i % 4]!),
    ofSearch("an order", 1, (i) => `Order ${drawn(i, 6, count)}`),
    ofSearch("a word that all have", 10, () => "order"),
    ofSearch("an amount", 1, (i) => (amountOf(drawn(i, 7, count)) / 100).toFixed(2)),
    ofSearch("an amount in a currency", 0, (i) => `${(amountOf(drawn(i, 8, count)) / 100).toFixed(2)} nok`),
    ofSearch("a name and an amount", 0, (i) => `kowalski ${(amountOf(drawn(i, 9, count)) / 100).toFixed(2)} nok`),
    ofSearch("four digits", 1, (i) => last4Of(triedOf(i, count))),
    ofSearch("an email", 1, (i) => emailOf(i % customers)),
    ofSearch("words that nothing has", 0, (i) => `nothing of ${i}`)
  ]
}

/** Returns the pages that people open in a shop with payments of ninety days and of today. */
export const pagesOf = (shop: Shop, today: ReadonlyArray<string>, count: number): ReadonlyArray<Page> => {
  const { customers, openedAt, payments } = shop
  const day = (since: number) => new Date(openedAt + since * DAY_MILLIS).toISOString().slice(0, 10)
  const days = (i: number, length: number, first = 1, last = DAYS - 1) => {
    const from = first + drawn(i, 0, last - first - length + 1)
    return { from: day(from), until: day(from + length - 1) }
  }
  const far = payments[Math.floor(Math.max(count - FAR, count / 2) / PER_RECORD)]!
  const ofPayments = (title: string, rows: number, queryOf: (i: number) => Readonly<Record<string, string>>): Page => ({
    title: `payments, ${title}`,
    rows,
    pathOf: (i) => at("/payments", queryOf(i))
  })
  return [
    ...["24h", "7d", "30d", "90d"].map((range) => ({ title: `home, ${range}`, pathOf: () => at("", { range }) })),
    { title: "payments", rows: FULL, pathOf: () => "/payments" },
    ofPayments("a page far back", FULL, () => ({ after: far })),
    ofPayments("by status", FULL, () => ({ status: "requires_capture" })),
    ofPayments("by status and days", FULL, (i) => ({ status: "canceled", ...days(i, 7) })),
    ofPayments("by status and days that have none", 0, (i) => ({ status: "requires_capture", ...days(i, 7, 10, 70) })),
    ofPayments("by a day", FULL, (i) => days(i, 1)),
    ofPayments("by thirty days", FULL, (i) => days(i, 30)),
    ofPayments("by amount", 1, (i) => ({ amount: (amountOf(drawn(i, 1, count)) / 100).toFixed(2) })),
    ofPayments("by currency", FULL, () => ({ currency: "jpy" })),
    ofPayments("by last4", 1, (i) => ({ last4: last4Of(triedOf(i, count)) })),
    ofPayments("by customer", 1, (i) => ({ customer: customers[i % customers.length]! })),
    ofPayments("by metadata", 1, (i) => ({ metadata: `order_id:${drawn(i, 2, count)}` })),
    ofPayments("by metadata that many have", FULL, () => ({ metadata: "channel:app" })),
    ofPayments("by decline", FULL, () => ({ decline: "insufficient_funds" })),
    ofPayments("by a rare decline", Math.min(FULL, Math.floor(count / RARE)), () => ({ decline: RARE_DECLINE })),
    ofPayments("by a decline that no payment has", 0, () => ({ decline: UNKNOWN_DECLINE })),
    ofPayments("searched by email", 1, (i) => ({ query: emailOf(i % customers.length) })),
    ofPayments("searched by a query", FULL, (i) => ({ query: `amount>${90_000 + i} AND currency:"eur"` })),
    ofPayments("searched by a query that finds little", 1, (i) => ({
      query: `metadata["order_id"]:"${drawn(i, 3, count)}" OR metadata["order_id"]:"${drawn(i, 4, count)}"`
    })),
    ...searches(customers.length, count),
    { title: "a payment", pathOf: (i) => `/payments/${payments[drawn(i, 5, payments.length)]!}` },
    { title: "a payment of today", pathOf: (i) => `/payments/${today[i % today.length]!}` },
    { title: "a payment with many refunds and deliveries", rows: FULL, pathOf: () => `/payments/${today[0]!}` },
    { title: "customers", rows: FULL, pathOf: () => "/customers" },
    { title: "customers, by a part of their name", rows: 1, pathOf: () => at("/customers", { name: "müller" }) },
    {
      title: "customers, by email",
      rows: 1,
      pathOf: (i) => at("/customers", { email: emailOf(i % customers.length) })
    },
    { title: "a customer", rows: 1, pathOf: (i) => `/customers/${customers[i % customers.length]!}` },
    { title: "products", rows: FULL, pathOf: () => "/products" },
    { title: "events", rows: FULL, pathOf: () => "/events" },
    { title: "webhooks", rows: 1, pathOf: () => "/webhooks" },
    { title: "requests", rows: FULL, pathOf: () => "/requests" },
    { title: "requests, errors", rows: FULL, pathOf: () => at("/requests", { status: "4xx" }) },
    { title: "developers", pathOf: () => "/developers" }
  ]
}

const ROW = /<tr role="row">/g

/** Returns the fault of a loaded page; undefined if it has none. */
export const problemOf = ({ rows }: Page, { status, text }: { status: number; text: string }): string | undefined => {
  if (status !== 200 || !text.includes("</html>")) return `it is answered with ${status}`
  if (rows === undefined) return undefined
  // The table's head is one of the rows; a table without rows has no head.
  const found = Math.max(0, (text.match(ROW)?.length ?? 0) - 1)
  return rows === 0
    ? found > 0
      ? `it has ${found} rows`
      : undefined
    : found < rows
      ? `it has ${found} rows`
      : undefined
}
