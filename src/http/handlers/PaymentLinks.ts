/** Payment links over HTTP (semantics payment_links.*). */
import { Effect } from "effect"
import * as Contract from "../../api/PaymentLinks.ts"
import { PAYMENT_LINK, PAYMENT_LINK_ITEMS } from "../../payments/shared/Documents.ts"
import * as PaymentLinks from "../../payments/lifecycles/PaymentLinks.ts"
import { requireDocument } from "../../payments/shared/ReadDocument.ts"
import { documentJson, handlers } from "./Handler.ts"
import { listDocuments, listLines } from "./Lists.ts"

export const paymentLinks = handlers(Contract.PaymentLinks, {
  create: ({ payload }) => PaymentLinks.create(payload),
  update: ({ params, payload }) => PaymentLinks.update(params.id, payload),

  list: ({ caller, path, query }) =>
    listDocuments({ account: caller.account, path, query }, PAYMENT_LINK, {
      active: query.active === undefined ? undefined : String(query.active)
    }),

  retrieve: ({ caller, params }) =>
    Effect.map(requireDocument(caller.account, PAYMENT_LINK, params.id), (document) => documentJson(document)),

  line_items: Effect.fnUntraced(function* ({ caller: { account }, params, path, query }) {
    yield* requireDocument(account, PAYMENT_LINK, params.id)
    const { value } = yield* requireDocument(account, PAYMENT_LINK_ITEMS, PaymentLinks.itemsId(params.id))
    return yield* listLines({ account, path, query }, value.data)
  })
})
