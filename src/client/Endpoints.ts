/**
 * The endpoints of the contract, by group and name: method and path. A table, so that the client loads neither the
 * contract's schemas nor what decodes them. The compiler compares its names and paths with the contract's.
 */
import type { ContractPaths } from "./Contract.ts"

/** An endpoint of the contract. */
export type Endpoint = readonly [method: "GET" | "POST" | "DELETE", path: string]

type Table = {
  readonly [Group in keyof ContractPaths]: {
    readonly [Name in keyof ContractPaths[Group]]: readonly [method: Endpoint[0], path: ContractPaths[Group][Name]]
  }
}

export const ENDPOINTS = {
  customers: {
    create: ["POST", "/v1/customers"],
    list: ["GET", "/v1/customers"],
    search: ["GET", "/v1/customers/search"],
    retrieve: ["GET", "/v1/customers/:id"],
    update: ["POST", "/v1/customers/:id"],
    delete: ["DELETE", "/v1/customers/:id"],
    erase: ["POST", "/v1/customers/:id/erase"],
    payment_methods: ["GET", "/v1/customers/:id/payment_methods"]
  },
  products: {
    create: ["POST", "/v1/products"],
    list: ["GET", "/v1/products"],
    retrieve: ["GET", "/v1/products/:id"],
    update: ["POST", "/v1/products/:id"],
    delete: ["DELETE", "/v1/products/:id"]
  },
  prices: {
    create: ["POST", "/v1/prices"],
    list: ["GET", "/v1/prices"],
    retrieve: ["GET", "/v1/prices/:id"],
    update: ["POST", "/v1/prices/:id"]
  },
  checkout_sessions: {
    create: ["POST", "/v1/checkout_sessions"],
    list: ["GET", "/v1/checkout_sessions"],
    retrieve: ["GET", "/v1/checkout_sessions/:id"],
    update: ["POST", "/v1/checkout_sessions/:id"],
    confirm: ["POST", "/v1/checkout_sessions/:id/confirm"],
    expire: ["POST", "/v1/checkout_sessions/:id/expire"],
    line_items: ["GET", "/v1/checkout_sessions/:id/line_items"]
  },
  payment_links: {
    create: ["POST", "/v1/payment_links"],
    list: ["GET", "/v1/payment_links"],
    retrieve: ["GET", "/v1/payment_links/:id"],
    update: ["POST", "/v1/payment_links/:id"],
    line_items: ["GET", "/v1/payment_links/:id/line_items"]
  },
  payment_intents: {
    create: ["POST", "/v1/payment_intents"],
    list: ["GET", "/v1/payment_intents"],
    search: ["GET", "/v1/payment_intents/search"],
    retrieve: ["GET", "/v1/payment_intents/:id"],
    update: ["POST", "/v1/payment_intents/:id"],
    confirm: ["POST", "/v1/payment_intents/:id/confirm"],
    capture: ["POST", "/v1/payment_intents/:id/capture"],
    cancel: ["POST", "/v1/payment_intents/:id/cancel"]
  },
  refunds: {
    create: ["POST", "/v1/refunds"],
    list: ["GET", "/v1/refunds"],
    retrieve: ["GET", "/v1/refunds/:id"],
    update: ["POST", "/v1/refunds/:id"]
  },
  charges: {
    list: ["GET", "/v1/charges"],
    retrieve: ["GET", "/v1/charges/:id"]
  },
  operations: {
    list: ["GET", "/v1/operations"],
    retrieve: ["GET", "/v1/operations/:id"]
  },
  payment_methods: {
    create: ["POST", "/v1/payment_methods"],
    retrieve: ["GET", "/v1/payment_methods/:id"],
    list: ["GET", "/v1/payment_methods"],
    attach: ["POST", "/v1/payment_methods/:id/attach"],
    detach: ["POST", "/v1/payment_methods/:id/detach"]
  },
  webhook_endpoints: {
    create: ["POST", "/v1/webhook_endpoints"],
    list: ["GET", "/v1/webhook_endpoints"],
    retrieve: ["GET", "/v1/webhook_endpoints/:id"],
    update: ["POST", "/v1/webhook_endpoints/:id"],
    delete: ["DELETE", "/v1/webhook_endpoints/:id"],
    roll_secret: ["POST", "/v1/webhook_endpoints/:id/roll_secret"],
    deliveries: ["GET", "/v1/webhook_endpoints/:id/deliveries"]
  },
  events: {
    list: ["GET", "/v1/events"],
    retrieve: ["GET", "/v1/events/:id"],
    resend: ["POST", "/v1/events/:id/resend"]
  },
  test_helpers: {
    authenticate: ["POST", "/v1/test_helpers/payment_intents/:id/authenticate"],
    advance_clock: ["POST", "/v1/test_helpers/clock/advance"],
    delete_data: ["DELETE", "/v1/test_helpers/data"]
  },
  api_keys: {
    list: ["GET", "/v1/api_keys"],
    roll: ["POST", "/v1/api_keys/:id/roll"],
    revoke: ["DELETE", "/v1/api_keys/:id"]
  },
  request_logs: {
    list: ["GET", "/v1/request_logs"],
    retrieve: ["GET", "/v1/request_logs/:id"]
  }
} as const satisfies Table

/** Returns a value for every endpoint, by group and name. */
export const forEveryEndpoint = <A>(
  make: (endpoint: Endpoint, group: string, name: string) => A
): Readonly<Record<string, Readonly<Record<string, A>>>> => {
  const table: Readonly<Record<string, Readonly<Record<string, Endpoint>>>> = ENDPOINTS
  return mapped(table, (endpoints, group) => mapped(endpoints, (endpoint, name) => make(endpoint, group, name)))
}

const mapped = <A, B>(record: Readonly<Record<string, A>>, change: (value: A, name: string) => B): Record<string, B> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value, name)]))
