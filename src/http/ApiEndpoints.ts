/**
 * The endpoints of the API: the contract's operations, each with the function that carries it out. Commands are
 * functions of `src/payments`, queries read documents and lists. Groups with more than that have files of their own in
 * `handlers`.
 */
import { Effect } from "effect"
import { Api } from "../api/Api.ts"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import { Accounts } from "../engine/Accounts.ts"
import type { AccountId } from "../engine/log/Document.ts"
import { requireClientSecretOf } from "../payments/shared/ClientSecrets.ts"
import * as CustomerErasure from "../payments/erasure/CustomerErasure.ts"
import * as Customers from "../payments/lifecycles/Customers.ts"
import {
  CHARGE,
  CUSTOMER,
  OPERATION,
  PAYMENT_INTENT,
  PAYMENT_METHOD,
  PRODUCT,
  REFUND
} from "../payments/shared/Documents.ts"
import * as PaymentIntents from "../payments/lifecycles/PaymentIntents.ts"
import * as PaymentMethodAttachments from "../payments/lifecycles/PaymentMethodAttachments.ts"
import * as PaymentMethods from "../payments/lifecycles/PaymentMethods.ts"
import { PaymentsConfig } from "../payments/shared/PaymentsConfig.ts"
import * as Products from "../payments/lifecycles/Products.ts"
import { requireDocument, requireEntry } from "../payments/shared/ReadDocument.ts"
import * as Refunds from "../payments/lifecycles/Refunds.ts"
import { SEARCHED_CUSTOMER, SEARCHED_PAYMENT_INTENT } from "../payments/shared/Search.ts"
import * as TestHelpers from "../payments/TestHelpers.ts"
import { compile } from "./Endpoints.ts"
import { apiKeys } from "./handlers/ApiKeys.ts"
import { checkoutSessions } from "./handlers/CheckoutSessions.ts"
import { events } from "./handlers/Events.ts"
import { documentJson, handlers, jsonOf } from "./handlers/Handler.ts"
import { listDocuments } from "./handlers/Lists.ts"
import { paymentLinks } from "./handlers/PaymentLinks.ts"
import { prices } from "./handlers/Prices.ts"
import { requestLogs } from "./handlers/RequestLogs.ts"
import { searchDocuments } from "./handlers/Search.ts"
import { webhookEndpoints } from "./handlers/WebhookEndpoints.ts"

/** Customers (semantics customers.*). */
const customers = handlers(Api.groups.customers, {
  create: ({ payload }) => Customers.create(payload),
  update: ({ params, payload }) => Customers.update(params.id, payload),
  delete: ({ params }) => Customers.remove(params.id),

  erase: {
    prepare: ({ caller, params }) =>
      Effect.map(
        CustomerErasure.standingOf(caller.account, params.id),
        (standing) => () => CustomerErasure.begin(params.id, standing)
      )
  },

  list: ({ caller, path, query }) =>
    listDocuments({ account: caller.account, path, query }, CUSTOMER, { email: query.email?.toLowerCase() }),

  search: ({ caller, path, query }) =>
    searchDocuments({ account: caller.account, path, query }, CUSTOMER, SEARCHED_CUSTOMER),

  retrieve: ({ caller, params }) =>
    Effect.map(requireEntry(caller.account, CUSTOMER, params.id), (entry) =>
      entry.deleted ? jsonOf(Customers.deletedCustomer(caller.account, entry.id)) : documentJson(entry)
    ),

  payment_methods: Effect.fnUntraced(function* ({ caller: { account }, params, path, query }) {
    const { id: customer } = yield* requireDocument(account, CUSTOMER, params.id)
    return yield* listDocuments({ account, path, query }, PAYMENT_METHOD, { customer })
  })
})

/** Products (semantics products.*). */
const products = handlers(Api.groups.products, {
  create: ({ payload }) => Products.create(payload),
  update: ({ params, payload }) => Products.update(params.id, payload),
  delete: ({ params }) => Products.remove(params.id),

  list: ({ caller, path, query }) =>
    listDocuments({ account: caller.account, path, query }, PRODUCT, { active: query.active?.toString() }),

  retrieve: ({ caller, params }) =>
    Effect.map(requireDocument(caller.account, PRODUCT, params.id), (document) => documentJson(document))
})

/** PaymentIntents (semantics expand.*, payment_intents.*). */
const paymentIntents = handlers(Api.groups.payment_intents, {
  create: ({ payload }) => PaymentIntents.create(payload),
  update: ({ params, payload }) => PaymentIntents.update(params.id, payload),
  confirm: ({ caller, params, payload }) =>
    PaymentIntents.confirm(params.id, payload, { publishableKey: caller.keyType === "publishable" }),
  capture: ({ params, payload }) => PaymentIntents.capture(params.id, payload),
  cancel: ({ params, payload }) => PaymentIntents.cancel(params.id, payload),

  list: ({ caller, path, query }) =>
    listDocuments({ account: caller.account, path, query }, PAYMENT_INTENT, { customer: query.customer }),

  search: ({ caller, path, query }) =>
    searchDocuments({ account: caller.account, path, query }, PAYMENT_INTENT, SEARCHED_PAYMENT_INTENT),

  retrieve: Effect.fnUntraced(function* ({ caller, params, query }) {
    const document = yield* requireDocument(caller.account, PAYMENT_INTENT, params.id)
    yield* requireClientSecretOf(PAYMENT_INTENT, document.value, query.client_secret, {
      publishableKey: caller.keyType === "publishable"
    })
    return query["expand[]"] === undefined
      ? documentJson(document)
      : yield* withCustomer(caller.account, document.value)
  })
})

/** Renders a PaymentIntent with its customer in full, or with the customer's tombstone (semantics expand.customer). */
const withCustomer = Effect.fnUntraced(function* (account: AccountId, paymentIntent: PaymentIntent) {
  if (paymentIntent.customer === null) return jsonOf(paymentIntent)
  const entry = yield* requireEntry(account, CUSTOMER, paymentIntent.customer)
  const customer = entry.deleted ? Customers.deletedCustomer(account, entry.id) : entry.value
  return jsonOf({ ...paymentIntent, customer })
})

/** Refunds (semantics refunds.*). */
const refunds = handlers(Api.groups.refunds, {
  create: ({ payload }) => Refunds.create(payload),
  update: ({ params, payload }) => Refunds.update(params.id, payload),

  list: ({ caller, path, query }) =>
    listDocuments({ account: caller.account, path, query }, REFUND, { payment_intent: query.payment_intent }),

  retrieve: ({ caller, params }) =>
    Effect.map(requireDocument(caller.account, REFUND, params.id), (refund) => documentJson(refund))
})

/** Charges (semantics charges.list). */
const charges = handlers(Api.groups.charges, {
  list: ({ caller, path, query }) =>
    listDocuments({ account: caller.account, path, query }, CHARGE, {
      payment_intent: query.payment_intent,
      customer: query.customer
    }),

  retrieve: ({ caller, params }) =>
    Effect.map(requireDocument(caller.account, CHARGE, params.id), (charge) => documentJson(charge))
})

/** Operations (semantics operations.list). */
const operations = handlers(Api.groups.operations, {
  list: ({ caller, path, query }) =>
    listDocuments({ account: caller.account, path, query }, OPERATION, {
      payment_intent: query.payment_intent,
      status: query.status,
      kind: query.kind
    }),

  retrieve: ({ caller, params }) =>
    Effect.map(requireDocument(caller.account, OPERATION, params.id), (operation) => documentJson(operation))
})

/** Payment methods (semantics payment_methods.create, payment_methods.attach). */
const paymentMethods = handlers(Api.groups.payment_methods, {
  create: ({ payload }) => PaymentMethods.create(payload),
  attach: ({ params, payload }) => PaymentMethodAttachments.attach(params.id, payload),
  detach: ({ params }) => PaymentMethodAttachments.detach(params.id),

  list: Effect.fnUntraced(function* ({ caller: { account }, path, query }) {
    // The customer is what the list is of, no filter: one that is not there is an error (semantics
    // parameters.references).
    const { id: customer } = yield* requireDocument(account, CUSTOMER, query.customer, "customer")
    return yield* listDocuments({ account, path, query }, PAYMENT_METHOD, { customer })
  }),

  retrieve: Effect.fnUntraced(function* ({ caller, params }) {
    const builtIn = PaymentMethods.builtIn(yield* PaymentsConfig, caller.account, params.id)
    if (builtIn !== undefined) return jsonOf(builtIn)
    return documentJson(yield* requireDocument(caller.account, PAYMENT_METHOD, params.id))
  })
})

/** How long the answer to `advance_clock` waits for timers that have become due, in milliseconds. */
const SETTLING_MILLIS_MAX = 10_000

/** Test helpers (semantics payment_intents.authentication, responses.endpoints, test_helpers.data). */
const testHelpers = handlers(Api.groups.test_helpers, {
  authenticate: ({ params, payload }) => TestHelpers.authenticatePaymentIntent(params.id, payload),
  advance_clock: {
    command: ({ payload }) => TestHelpers.advanceClock(payload),
    settled: ({ account }) => Effect.flatMap(Accounts, (accounts) => accounts.settled(account, SETTLING_MILLIS_MAX))
  },
  delete_data: () => TestHelpers.deleteData
})

export const endpoints = compile(Api, {
  customers,
  products,
  prices,
  checkout_sessions: checkoutSessions,
  payment_links: paymentLinks,
  payment_intents: paymentIntents,
  refunds,
  charges,
  operations,
  payment_methods: paymentMethods,
  webhook_endpoints: webhookEndpoints,
  events,
  test_helpers: testHelpers,
  api_keys: apiKeys,
  request_logs: requestLogs
})
