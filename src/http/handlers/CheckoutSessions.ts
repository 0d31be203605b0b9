/** Checkout Sessions over HTTP (semantics checkout.*). */
import { Effect } from "effect"
import * as Contract from "../../api/CheckoutSessions.ts"
import * as CheckoutSessions from "../../payments/lifecycles/CheckoutSessions.ts"
import { requireClientSecretOf } from "../../payments/shared/ClientSecrets.ts"
import { CHECKOUT_SESSION, LINE_ITEMS, lineItemsId } from "../../payments/shared/Documents.ts"
import { requireDocument } from "../../payments/shared/ReadDocument.ts"
import type { Caller } from "../Authentication.ts"
import { documentJson, handlers } from "./Handler.ts"
import { listDocuments, listLines } from "./Lists.ts"

export const checkoutSessions = handlers(Contract.CheckoutSessions, {
  create: ({ payload }) => CheckoutSessions.create(payload),
  update: ({ params, payload }) => CheckoutSessions.update(params.id, payload),
  confirm: ({ caller, params, payload }) =>
    CheckoutSessions.confirm(params.id, payload, { publishableKey: caller.keyType === "publishable" }),
  expire: ({ params }) => CheckoutSessions.expire(params.id),

  list: ({ caller, path, query }) =>
    listDocuments({ account: caller.account, path, query }, CHECKOUT_SESSION, {
      status: query.status,
      payment_link: query.payment_link
    }),

  retrieve: ({ caller, params, query }) =>
    Effect.map(readPermitted(caller, params.id, query.client_secret), (document) => documentJson(document)),

  line_items: Effect.fnUntraced(function* ({ caller, params, path, query }) {
    yield* readPermitted(caller, params.id, query.client_secret)
    const { value } = yield* requireDocument(caller.account, LINE_ITEMS, lineItemsId(params.id))
    return yield* listLines({ account: caller.account, path, query }, value.data)
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
