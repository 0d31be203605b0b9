/** Checkout Sessions over HTTP (semantics checkout.*). */
import { Effect } from "effect"
import * as Contract from "../../api/CheckoutSessions.ts"
import { LIMIT_DEFAULT } from "../../api/List.ts"
import type { LineItem } from "../../domain/CheckoutSession.ts"
import { type AccountId, encode } from "../../engine/log/Document.ts"
import * as CheckoutSessions from "../../payments/CheckoutSessions.ts"
import { requireClientSecretOf } from "../../payments/ClientSecrets.ts"
import { CHECKOUT_SESSION, LINE_ITEMS, lineItemsId } from "../../payments/Documents.ts"
import { requireDocument } from "../../payments/ReadDocument.ts"
import type { Caller } from "../Authentication.ts"
import { documentJson, handlers } from "./Handler.ts"
import { cursorOf, listDocuments, listJson, type ListParameters } from "./Lists.ts"

export const checkoutSessions = handlers(Contract.CheckoutSessions, {
  create: ({ payload }) => CheckoutSessions.create(payload),
  update: ({ params, payload }) => CheckoutSessions.update(params.id, payload),
  confirm: ({ caller, params, payload }) =>
    CheckoutSessions.confirm(params.id, payload, { publishableKey: caller.keyType === "publishable" }),
  expire: ({ params }) => CheckoutSessions.expire(params.id),

  list: ({ caller, path, query }) =>
    listDocuments({ account: caller.account, path, query }, CHECKOUT_SESSION, { status: query.status }),

  retrieve: ({ caller, params, query }) =>
    Effect.map(readPermitted(caller, params.id, query.client_secret), (document) => documentJson(document)),

  line_items: Effect.fnUntraced(function* ({ caller, params, path, query }) {
    yield* readPermitted(caller, params.id, query.client_secret)
    const { value } = yield* requireDocument(caller.account, LINE_ITEMS, lineItemsId(params.id))
    const { hasMore, page } = yield* pageOfLines(caller.account, value.data, query)
    return listJson<LineItem>(
      page.map((item) => ({ id: item.id, json: encode(item) })),
      hasMore,
      path
    )
  })
})

/** Reads a session, if the caller may see it (semantics keys.publishable, keys.publishable.sessions). */
const readPermitted = Effect.fnUntraced(function* (
  { account, keyType }: Caller,
  id: string,
  clientSecret: string | undefined
) {
  const document = yield* requireDocument(account, CHECKOUT_SESSION, id)
  const publishableKey = keyType === "publishable"
  yield* requireClientSecretOf(CHECKOUT_SESSION, document.value, clientSecret, { publishableKey })
  return document
})

/** Takes a page of a cart, in the order of the cart (semantics lists.order). A line of another cart is no cursor. */
const pageOfLines = Effect.fnUntraced(function* (
  account: AccountId,
  lines: ReadonlyArray<LineItem>,
  query: ListParameters
) {
  const { newerThan, olderThan } = yield* cursorOf(account, query, "Line item", (_, id) =>
    Effect.succeed(lines.some((line) => line.id === id))
  )
  const position = (id: string) => lines.findIndex((line) => line.id === id)
  const limit = query.limit ?? LIMIT_DEFAULT
  if (newerThan !== undefined) {
    const end = position(newerThan)
    const start = Math.max(0, end - limit)
    return { page: lines.slice(start, end), hasMore: start > 0 }
  }
  const start = olderThan === undefined ? 0 : position(olderThan) + 1
  return { page: lines.slice(start, start + limit), hasMore: start + limit < lines.length }
})
