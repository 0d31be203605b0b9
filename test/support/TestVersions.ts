/**
 * Two versions that only tests know, with one change of each kind that there can be (spec: Versioning 6). The code is
 * of the newest of the three; the changes pretend that the API was another one before.
 *
 * | | 2026-03-09 | 2027-02-01 | 2027-08-01 |
 * | --- | --- | --- | --- |
 * | a customer's phone | `telephone` | `phone_number` | `phone` |
 * | a product's `kind` | `good`, `service` | is gone | |
 * | a PaymentIntent's `currency` | `iso_currency` | `currency` | |
 * | deletion of a product with prices | `product_has_prices` | `resource_in_use` | |
 * | a PaymentIntent's `amount` | text | text | integer |
 * | `capture_method` by default | `manual` | `manual` | `automatic` |
 * | `limit` of customers by default | 2 | 2 | 10 |
 * | a product's `name` | optional | optional | required |
 * | a customer that was deleted | 404 | 404 | 200, `deleted` |
 * | a webhook endpoint's `secret` | in `signing.secret` | in `signing.secret` | in `secret` |
 */
import { Result } from "effect"
import type { Change, JsonObject, Version, VersionedAnswer, VersionedRequest } from "../../src/domain/ApiVersions.ts"
import { ParameterInvalid } from "../../src/domain/Errors.ts"
import * as VersionChanges from "../../src/domain/VersionChanges.ts"

export const FIRST = "2026-03-09"
export const SECOND = "2027-02-01"
export const NEWEST = "2027-08-01"

const CUSTOMERS = ["POST /v1/customers", "POST /v1/customers/:id"]

const phone = (older: string, newer: string): ReadonlyArray<Change> => [
  { description: "A customer's phone has another name.", ...VersionChanges.renamedField("customer", { older, newer }) },
  ...CUSTOMERS.map((route) => ({
    description: "So it has in requests.",
    ...VersionChanges.renamedParameter(route, { older, newer })
  }))
]

const kindIsGone: Change = {
  description: "Products have no `kind` any more.",
  objects: {
    product: (newer) =>
      newer["deleted"] === true ? newer : { ...newer, kind: newer["shippable"] === true ? "good" : "service" }
  }
}

const amountIsAnInteger: Change = {
  description: "A PaymentIntent's `amount` is an integer.",
  objects: { payment_intent: (newer) => ({ ...newer, amount: String(newer["amount"]) }) },
  requests: {
    "POST /v1/payment_intents": VersionChanges.inBody((body) => {
      const { amount = null, ...others } = body
      if (amount === null) return Result.succeed(body)
      return typeof amount === "string" && /^[1-9][0-9]*$/u.test(amount)
        ? Result.succeed({ ...others, amount: Number(amount) })
        : Result.fail(new ParameterInvalid({ param: "amount", rule: "the digits of an integer" }))
    })
  }
}

const LIMIT_BEFORE = "2"
const limitIsTen: Change = {
  description: "A page has 10 customers, unless the request says otherwise.",
  requests: {
    "GET /v1/customers": (older: VersionedRequest) => {
      const query = new URLSearchParams(older.query)
      if (!query.has("limit")) query.set("limit", LIMIT_BEFORE)
      return Result.succeed({ ...older, query })
    }
  }
}

const nameIsRequired: Change = {
  description: "A product needs a name.",
  requests: {
    "POST /v1/products": VersionChanges.inBody((body) => Result.succeed({ name: "Unnamed", ...body }))
  }
}

const deletedIsFound: Change = {
  description: "Retrieving a customer that was deleted is no error any more.",
  answers: {
    "GET /v1/customers/:id": (newer: VersionedAnswer) => (newer.body["deleted"] === true ? notFound(newer.body) : newer)
  }
}

const notFound = ({ id }: JsonObject): VersionedAnswer => ({
  status: 404,
  body: {
    error: {
      type: "invalid_request_error",
      code: "resource_missing",
      message: `No Customer found with ID '${String(id)}'.`,
      param: "id",
      doc_url: "https://docs.example.test/errors/resource_missing"
    }
  }
})

const secretIsOnTop: Change = {
  description: "The secret of a webhook endpoint lies in the endpoint itself.",
  objects: {
    webhook_endpoint: ({ secret, ...endpoint }) =>
      secret === undefined ? endpoint : { ...endpoint, signing: { secret } }
  }
}

export const VERSIONS: ReadonlyArray<Version> = [
  { date: FIRST, changes: [] },
  {
    date: SECOND,
    changes: [
      ...phone("telephone", "phone_number"),
      kindIsGone,
      {
        description: "The currency has the name that it has elsewhere.",
        ...VersionChanges.renamedField("payment_intent", { older: "iso_currency", newer: "currency" })
      },
      {
        description: "What is in use has one code.",
        ...VersionChanges.renamedErrorCode("DELETE /v1/products/:id", {
          older: "product_has_prices",
          newer: "resource_in_use"
        })
      }
    ]
  },
  {
    date: NEWEST,
    changes: [
      ...phone("phone_number", "phone"),
      amountIsAnInteger,
      {
        description: "Cards are charged at once, unless the request says otherwise.",
        ...VersionChanges.otherDefault("POST /v1/payment_intents", "capture_method", "manual")
      },
      limitIsTen,
      nameIsRequired,
      deletedIsFound,
      secretIsOnTop
    ]
  }
]
