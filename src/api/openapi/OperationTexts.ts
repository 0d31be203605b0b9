/** Texts of operations and of parameters that have none in the contract. */

const LIST = "Newest first, in pages."
const UPDATE = "Only the fields that are sent change."

/** Texts by operation ID. */
export const OPERATION_TEXTS: Readonly<Record<string, string>> = {
  "customers.create": "All fields are optional. Customers may share an email address.",
  "customers.list": `${LIST} Deleted customers are left out.`,
  "customers.retrieve": "A deleted customer is returned as its ID with `deleted: true`.",
  "customers.update": `${UPDATE} \`null\` or an empty text removes email, name, phone or description.`,
  "customers.delete": "Detaches the customer's payment methods. Payments and charges stay.",
  "customers.payment_methods": "The payment methods that are attached to the customer, newest first, in pages.",
  "products.create": "With `default_price_data`, the product's first price is created in the same request.",
  "products.list": LIST,
  "products.retrieve": "Returns the product as it is now.",
  "products.update": `${UPDATE} Pictures, features and dimensions are replaced as a whole.`,
  "products.delete": "Only a product without prices can be deleted. Otherwise archive it with `active: false`.",
  "prices.create": "Set one of `unit_amount`, `unit_amount_decimal`, `custom_unit_amount` and `tiers`.",
  "prices.list": LIST,
  "prices.retrieve": "Returns the price, with `expand[]=product` with its product in full.",
  "prices.update": `${UPDATE} Amount, currency, product and period of a price never change.`,
  "checkout_sessions.create":
    "Send the payer to the `url` of the answer. With `ui_mode` `embedded` or `custom`, the page gets its " +
    "`client_secret` instead.",
  "checkout_sessions.list": LIST,
  "checkout_sessions.retrieve": "Returns the session as it is now.",
  "checkout_sessions.update": "Only the metadata of a session can change, in every status.",
  "checkout_sessions.confirm":
    "Pays for an open session, as the checkout page does. A payment that needs an authentication leaves the session " +
    "open; its PaymentIntent has the `next_action`.",
  "checkout_sessions.expire": "Ends an open session and cancels its PaymentIntent.",
  "checkout_sessions.line_items": "In the order of the request that created the session, in pages.",
  "payment_links.create":
    "The `url` of the answer stays the same for good: share it, or print it as a QR code. Every payer who follows it " +
    "gets a Checkout Session, whose events name the link in `payment_link`.",
  "payment_links.list": LIST,
  "payment_links.retrieve": "Returns the link as it is now.",
  "payment_links.update":
    `${UPDATE} With \`active: false\`, the link takes no more payments, its open sessions included. What it sells ` +
    "never changes: make another link.",
  "payment_links.line_items": "In the order of the request that created the link, in pages.",
  "payment_intents.create":
    "With `confirm: true` and a payment method, the payment is attempted in the same request. A decline is a 402; the " +
    "PaymentIntent exists nevertheless and can be confirmed again.",
  "payment_intents.list": LIST,
  "payment_intents.search":
    "Searches by `id`, `amount`, `currency`, `status`, `created`, `customer`, `last4` and " +
    '`metadata["key"]`. Newest first; includes every change that was confirmed before the request.',
  "payment_intents.retrieve": "Returns the PaymentIntent, with `expand[]=customer` with its customer in full.",
  "payment_intents.update": `${UPDATE} Amount, currency, customer and payment method can change until the payment is processed.`,
  "payment_intents.confirm":
    "Attempts the payment. The answer is `succeeded`, `requires_capture`, `processing`, or `requires_action` if the " +
    "payer has to authenticate. A decline is a 402.",
  "payment_intents.capture": "Takes an authorized amount, once. Capturing less releases the rest.",
  "payment_intents.cancel": "Ends a payment that has not succeeded. An authorized amount is released.",
  "refunds.create": "A payment can be refunded in several parts, until nothing is left.",
  "refunds.list": LIST,
  "refunds.retrieve": "Returns the refund as it is now.",
  "refunds.update": "Only the metadata of a refund can change.",
  "charges.list": LIST,
  "charges.retrieve": "Returns the charge as it is now.",
  "operations.list": LIST,
  "operations.retrieve": "Returns the operation as it is now.",
  "payment_methods.create":
    "Turns card data into a payment method. An expired card is accepted here and declined later.",
  "payment_methods.list": "The payment methods of one customer, newest first, in pages.",
  "payment_methods.retrieve": "Returns the payment method. Built-in test cards can be retrieved, too.",
  "webhook_endpoints.create": "The answer has the endpoint's `secret`. Store it: it is not shown again.",
  "webhook_endpoints.list": LIST,
  "webhook_endpoints.retrieve": "Returns the endpoint without its secret.",
  "webhook_endpoints.update": `${UPDATE} Disabling an endpoint cancels its pending deliveries.`,
  "webhook_endpoints.delete": "Cancels the endpoint's pending deliveries.",
  "webhook_endpoints.roll_secret":
    "Makes a new secret. With `expires_in`, the old one also signs for a while, so that receivers can be changed one by one.",
  "webhook_endpoints.deliveries": "What was sent to the endpoint, attempt by attempt, newest first, in pages.",
  "events.list": LIST,
  "events.retrieve": "Returns the event as it was when it happened.",
  "events.resend":
    "Makes new deliveries of the event, with eight attempts each, to one endpoint or to all that subscribe to its type.",
  "api_keys.list": "All keys of the environment, revoked ones included, newest first, in pages.",
  "api_keys.roll": "Makes a new key. The old one stays valid for `expires_in` seconds, a day by default."
}

/** Texts of path and query parameters by name. */
export const PARAMETER_TEXTS: Readonly<Record<string, string>> = {
  created: "Only those created at this time, in Unix seconds.",
  "created[gt]": "Only those created later than this, in Unix seconds.",
  "created[gte]": "Only those created at this time or later, in Unix seconds.",
  "created[lt]": "Only those created earlier than this, in Unix seconds.",
  "created[lte]": "Only those created at this time or earlier, in Unix seconds.",
  limit: "The number of objects in a page.",
  customer: "Only those of this customer.",
  payment_intent: "Only those of this PaymentIntent.",
  status: "Only those in this status.",
  active: "Only active ones, or only the others.",
  kind: "Only those of this kind.",
  payment_link: "Only sessions of this payment link.",
  product: "Only prices of this product.",
  type: "Only those of this type.",
  currency: "Only those in this currency.",
  email: "Only customers with this address, in either case. Write a `+` as `%2B`.",
  "lookup_keys[]": "Only prices with one of these keys. At most ten.",
  "expand[]": "Fields to return as objects in place of IDs.",
  client_secret: "The object's client secret. Required with a publishable key.",
  method: "Only requests with this method.",
  api_key: "Only requests with this API key, by its ID."
}
