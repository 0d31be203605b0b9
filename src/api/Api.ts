/**
 * The public contract as data: every endpoint with its parameters, bodies and errors.
 *
 * The server interprets it; the client and the OpenAPI document derive from it. The pipeline in `http` defines the
 * rest: the order of checks, replays and response headers.
 */
import { HttpApi, OpenApi } from "effect/http-api"
import { API_VERSION_NEWEST } from "../domain/ApiVersion.ts"
import { ApiKeys } from "./ApiKeys.ts"
import { Charges } from "./Charges.ts"
import { CheckoutSessions } from "./CheckoutSessions.ts"
import { Customers } from "./Customers.ts"
import { Events } from "./Events.ts"
import { Operations } from "./Operations.ts"
import { PaymentIntents } from "./PaymentIntents.ts"
import { PaymentLinks } from "./PaymentLinks.ts"
import { PaymentMethods } from "./PaymentMethods.ts"
import { Prices } from "./Prices.ts"
import { Products } from "./Products.ts"
import { Refunds } from "./Refunds.ts"
import { RequestLogs } from "./RequestLogs.ts"
import { ApiKey } from "./Access.ts"
import { TestHelpers } from "./TestHelpers.ts"
import { WebhookEndpoints } from "./WebhookEndpoints.ts"

export const Api = HttpApi.make("till")
  .add(
    Customers,
    Products,
    Prices,
    CheckoutSessions,
    PaymentLinks,
    PaymentIntents,
    Refunds,
    Charges,
    Operations,
    PaymentMethods,
    WebhookEndpoints,
    Events,
    TestHelpers,
    ApiKeys,
    RequestLogs
  )
  .middleware(ApiKey)
  .annotateMerge(OpenApi.annotations({ title: "Till", version: API_VERSION_NEWEST }))
