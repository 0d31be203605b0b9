/** The resources of the API in the order of the documentation, with their texts. */

export interface Tag {
  /** The name of the contract's group. */
  readonly name: string
  readonly title: string
  readonly description: string
  /** The name of the schema of the resource's object; absent if there is none. */
  readonly schema?: string
}

export const TAGS: ReadonlyArray<Tag> = [
  {
    name: "payment_intents",
    title: "PaymentIntents",
    schema: "PaymentIntent",
    description:
      "A PaymentIntent is one payment, from the amount to the money. It keeps every attempt as a charge, waits for the " +
      "payer's authentication where the bank asks for one, and ends as `succeeded` or `canceled`."
  },
  {
    name: "checkout_sessions",
    title: "Checkout Sessions",
    schema: "CheckoutSession",
    description:
      "A Checkout Session sells a list of prices: on Till's page, in a frame of yours, or in a form of your own. It " +
      "has a PaymentIntent, and expires after a day at the latest."
  },
  {
    name: "payment_links",
    title: "Payment links",
    schema: "PaymentLink",
    description:
      "A payment link is an address that any number of payers can pay at, on a website, in a message or printed as a " +
      "QR code. It can have a limit of payments, and can be switched off."
  },
  {
    name: "refunds",
    title: "Refunds",
    schema: "Refund",
    description: "A refund returns the money of a succeeded PaymentIntent, in whole or in parts."
  },
  {
    name: "charges",
    title: "Charges",
    schema: "Charge",
    description:
      "A charge is an attempt of a PaymentIntent that reached the card's issuer. Charges can only be read: " +
      "PaymentIntents and refunds change them."
  },
  {
    name: "operations",
    title: "Operations",
    schema: "Operation",
    description:
      "An operation is one request to a processor behind a network: an authorization, a capture, a void or a refund. " +
      "Its outcome may be unknown for a while, and Till asks until it has the processor's word. Operations can only be read."
  },
  {
    name: "customers",
    title: "Customers",
    schema: "Customer",
    description: "A customer is a person or a company that pays, with contact details and saved cards."
  },
  {
    name: "payment_methods",
    title: "Payment methods",
    schema: "PaymentMethod",
    description:
      "A payment method is a card without its number. Attached to a customer, it can be charged again, and by that " +
      "customer's payments only."
  },
  {
    name: "products",
    title: "Products",
    schema: "Product",
    description: "A product is what is sold: its name, description and pictures are what payers see at the checkout."
  },
  {
    name: "prices",
    title: "Prices",
    schema: "Price",
    description:
      "A price is an amount for a product: per unit, by quantity in tiers, for a period, or chosen by the payer. Its " +
      "amount never changes; make another price and archive the old one."
  },
  {
    name: "webhook_endpoints",
    title: "Webhook endpoints",
    schema: "WebhookEndpoint",
    description:
      "A webhook endpoint is an address of yours that Till posts events to, up to eight times in 107 hours, until one " +
      "attempt gets a 2xx."
  },
  {
    name: "events",
    title: "Events",
    schema: "Event",
    description:
      "An event records a change: its type, the object after it, and the request that caused it. Events are kept for good, unless the installation deletes old ones."
  },
  {
    name: "test_helpers",
    title: "Test helpers",
    description: "Operations of test mode: act for a payer, move the clock ahead, and delete all data."
  },
  {
    name: "api_keys",
    title: "API keys",
    schema: "ApiKey",
    description:
      "The keys of the environment that the request's own key belongs to. They are shown masked; a new key is shown once."
  },
  {
    name: "request_logs",
    title: "Request logs",
    schema: "RequestLog",
    description:
      "The log keeps requests and their results for some days, without card data and secrets. Requests to the log " +
      "itself are not in it."
  }
]
