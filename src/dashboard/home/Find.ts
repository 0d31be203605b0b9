/** The search in the navigation: ids lead to pages, other texts to what they find (semantics dashboard.find). */
import { Effect } from "effect"
import { Accounts } from "../../engine/Accounts.ts"
import type { AccountId, Identified } from "../../engine/log/Document.ts"
import { RequestLog } from "../../engine/RequestLog.ts"
import { type Child, html } from "../../html/Html.ts"
import { seeOther } from "../../html/PageResponse.ts"
import { accountOf } from "../../payments/shared/AccountIds.ts"
import { API_KEY } from "../../payments/merchants/ApiKeys.ts"
import { PROCESSOR } from "../../payments/processing/ConfiguredProcessors.ts"
import {
  CHECKOUT_SESSION,
  LINE_ITEMS,
  lineItemsId,
  PAYMENT_LINK,
  PAYMENT_LINK_ITEMS,
  type Resource,
  WEBHOOK_ENDPOINT
} from "../../payments/shared/Documents.ts"
import { itemsId } from "../../payments/lifecycles/PaymentLinks.ts"
import { PAYMENT_NOTE } from "../../payments/lifecycles/PaymentNotes.ts"
import { PERSON } from "../../payments/team/People.ts"
import { readDocument, requireDocument } from "../../payments/shared/ReadDocument.ts"
import { filters, searchField } from "../frame/Form.ts"
import { isId, pageOf, prefixOf } from "../frame/ObjectLinks.ts"
import { listObjects } from "../frame/Queries.ts"
import { page, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"
import { isQuery } from "../payments/PaymentSearch.ts"
import { readInstallation } from "../frame/Visitors.ts"
import { groupsOf } from "./SearchResults.ts"

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
  const owned = (yield* readInstallation(API_KEY, id))?.value ?? (yield* readInstallation(PROCESSOR, id))?.value
  return owned !== undefined && accountOf(owned.merchant_id, owned.livemode) === account ? pageOf(id) : undefined
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
    case "note": {
      const note = yield* readDocument(account, PAYMENT_NOTE, id)
      return note && pageOf(note.value.payment_intent)
    }
    case "mer":
      return id === visit.merchant.id ? "" : undefined
    case "key":
    case "per":
    case "prc":
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

/** An id within a text, such as the address of a page. */
const ID = /(?<![0-9A-Za-z])[a-z]+_[0-9A-Za-z]{20,}(?![0-9A-Za-z])/g

const idIn = (text: string): string | undefined =>
  isId(text) ? text : (text.match(ID) ?? []).find((found) => isId(found))

const ADVICE =
  "A name or the beginning of one, an email, an order number, an amount such as 54.32, the last 4 digits of a card, " +
  "or any ID."

const show: Show = Effect.fnUntraced(function* (visit) {
  const text = visit.query.get("query")?.trim() ?? ""
  // The list of payments reads queries, and shows their errors.
  if (isQuery(text)) return seeOther(visit.to("/payments", { query: text }))
  const id = idIn(text)
  const address = id === undefined ? undefined : yield* foundAt(visit, id)
  if (address !== undefined) return seeOther(address)
  const groups = text === "" ? [] : yield* groupsOf(visit, text)
  const isMissed = text !== "" && groups.length === 0
  return {
    title: "Search",
    section: null,
    ...(isMissed && id !== undefined && { status: 404 }),
    content: [
      filters(visit, "/find", null, { search: searchField(ADVICE), submit: "Search" }),
      isMissed &&
        html`<div class="empty">
          ${
            id === undefined
              ? nothing(text)
              : html`<p>Nothing in ${visit.merchant.name} has the ID <code>${id}</code>.</p>`
          }
        </div>`,
      groups
    ]
  }
})

const nothing = (text: string): Child =>
  html`<p>
      Nothing matches <q><bdi>${text}</bdi></q
      >.
    </p>
    <p>
      Check the spelling, or try fewer words. Words are found by their first letters, at least 3, and numbers in full.
    </p>`

export const layer = page("/find", "see", show)
