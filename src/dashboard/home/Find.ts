/** The search in the navigation: ids lead to pages, other texts to lists (semantics dashboard.find). */
import { Effect } from "effect"
import { hasBlank } from "../../domain/Text.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { AccountId, Identified } from "../../engine/log/Document.ts"
import { RequestLog } from "../../engine/RequestLog.ts"
import { html } from "../../html/Html.ts"
import { seeOther } from "../../html/PageResponse.ts"
import { accountOf } from "../../payments/AccountIds.ts"
import { API_KEY } from "../../payments/ApiKeys.ts"
import {
  CHECKOUT_SESSION,
  LINE_ITEMS,
  lineItemsId,
  PAYMENT_LINK,
  PAYMENT_LINK_ITEMS,
  type Resource,
  WEBHOOK_ENDPOINT
} from "../../payments/Documents.ts"
import { itemsId } from "../../payments/PaymentLinks.ts"
import { PERSON } from "../../payments/People.ts"
import { requireDocument } from "../../payments/ReadDocument.ts"
import { isId, pageOf, prefixOf } from "../frame/ObjectLinks.ts"
import type { DashboardPath } from "../frame/Links.ts"
import { customersWith, isEmail } from "../payments/PaymentSearch.ts"
import { listObjects } from "../frame/Queries.ts"
import { page, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"
import { readInstallation } from "../frame/Visitors.ts"

const ENDPOINTS_MAX = 100

const deliveryPage = Effect.fnUntraced(function* (account: AccountId, id: string) {
  const accounts = yield* Accounts
  const { rows } = yield* listObjects(account, WEBHOOK_ENDPOINT, { limit: ENDPOINTS_MAX })
  const found = yield* Effect.forEach(
    rows,
    (endpoint) =>
      Effect.map(
        accounts.delivery(account, endpoint.id, id),
        (row) => row && (`/webhooks/${endpoint.id}/${id}` as const)
      ),
    { concurrency: 4 }
  )
  return found.find((page) => page !== undefined)
})

/** An object and its line items are created by one command, so their ids are adjacent. */
const linePage = Effect.fnUntraced(function* <A extends Identified, H, Lines extends LinesOf, I>(
  account: AccountId,
  id: string,
  owners: Resource<A, H>,
  lines: Resource<Lines, I>,
  linesId: (owner: string) => string
) {
  const cursor = `${owners.prefix}${id.slice(id.indexOf("_"))}`
  for (const near of [{ olderThan: cursor }, { newerThan: cursor }]) {
    const owner = (yield* listObjects(account, owners, { cursor: near, limit: 1 })).rows[0]
    if (owner === undefined) continue
    const { data } = (yield* requireDocument(account, lines, linesId(owner.id))).value
    if (data.some((line) => line.id === id)) return pageOf(owner.id)
  }
})

/** The document with all lines of one object. */
interface LinesOf extends Identified {
  readonly data: ReadonlyArray<Identified>
}

const ownPage = Effect.fnUntraced(function* ({ account, merchant, person: own }: Visit, id: string) {
  const person = (yield* readInstallation(PERSON, id))?.value
  if (person?.id === own.id) return "/account"
  if (person?.merchant_id === merchant.id) return pageOf(id)
  const key = (yield* readInstallation(API_KEY, id))?.value
  return key !== undefined && accountOf(key.merchant_id, key.livemode) === account ? pageOf(id) : undefined
})

const pageIn = Effect.fnUntraced(function* (visit: Visit, account: AccountId, id: string) {
  const accounts = yield* Accounts
  switch (prefixOf(id)) {
    case "whd":
      return yield* deliveryPage(account, id)
    case "csli":
      return yield* linePage(account, id, CHECKOUT_SESSION, LINE_ITEMS, lineItemsId)
    case "plli":
      return yield* linePage(account, id, PAYMENT_LINK, PAYMENT_LINK_ITEMS, itemsId)
    case "evt":
      return (yield* accounts.event(account, id)) && pageOf(id)
    case "req":
      return (yield* (yield* RequestLog).find(account, [id])).has(id) ? pageOf(id) : undefined
    case "mer":
      return id === visit.merchant.id ? "" : undefined
    case "key":
    case "per":
      return yield* ownPage({ ...visit, account }, id)
    default: {
      const entry = yield* accounts.read(account, id)
      return entry === undefined || entry.deleted ? undefined : pageOf(id)
    }
  }
})

/** The object's page in this environment, otherwise in the other one. */
const foundAt = Effect.fnUntraced(function* (visit: Visit, id: string) {
  for (const livemode of [visit.livemode, !visit.livemode]) {
    const page = yield* pageIn(visit, accountOf(visit.merchant.id, livemode), id)
    if (page !== undefined) return visit.at(`/${livemode ? "live" : "test"}${page}`)
  }
})

/** The list for a text that is not an id: a query, a card's last digits, an email, or a name. */
const listOf = (text: string): readonly [path: DashboardPath, query: Readonly<Record<string, string>>] => {
  if (/[:<>~"]|^\d{4}$/.test(text)) return ["/payments", { query: text }]
  return ["/customers", text.includes("@") && !hasBlank(text) ? { email: text } : { name: text }]
}

const show: Show = Effect.fnUntraced(function* (visit) {
  const text = visit.query.get("query")?.trim() ?? ""
  if (isEmail(text) && (yield* customersWith(visit.account, text)).rows.length === 0) {
    // Guests have payments but no customer.
    return seeOther(visit.to("/payments", { query: text }))
  }
  if (text !== "" && !isId(text)) return seeOther(visit.to(...listOf(text)))
  const address = text === "" ? undefined : yield* foundAt(visit, text)
  if (address !== undefined) return seeOther(address)
  const { merchant } = visit
  return {
    title: "Search",
    section: null,
    ...(text !== "" && { status: 404 }),
    content: html`<div class="empty">
      ${text !== "" && html`<p>Nothing in ${merchant.name} has the ID <code>${text}</code>.</p>`}
      <p>
        Enter any ID to open its page. An email or a name finds customers. The last 4 digits of a card, or a query such
        as <code>amount>=5000</code>, finds payments.
      </p>
    </div>`
  }
})

export const layer = page("/find", "see", show)
