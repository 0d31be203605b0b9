/** All routes of the dashboard. Whoever adds a page adds its layer here, and its part to `Shell.ts`. */
import { Effect, Layer } from "effect"
import { PaymentsConfig } from "../payments/PaymentsConfig.ts"
import { seeOther } from "../pages/PageResponse.ts"
import * as Assets from "../pages/Assets.ts"
import * as Account from "./Account.ts"
import * as Delivery from "./Delivery.ts"
import * as CheckoutSession from "./CheckoutSession.ts"
import * as CheckoutSessions from "./CheckoutSessions.ts"
import * as Charge from "./Charge.ts"
import * as Customer from "./Customer.ts"
import * as Customers from "./Customers.ts"
import * as AuditLog from "./AuditLog.ts"
import * as BrandSettings from "./BrandSettings.ts"
import * as Developers from "./Developers.ts"
import * as Events from "./Events.ts"
import * as Find from "./Find.ts"
import * as Home from "./Home.ts"
import * as Installation from "./Installation.ts"
import * as Keys from "./Keys.ts"
import * as Live from "./Live.ts"
import * as NewPrice from "./NewPrice.ts"
import * as Member from "./Member.ts"
import * as Payment from "./Payment.ts"
import * as PaymentMethod from "./PaymentMethod.ts"
import * as Payments from "./Payments.ts"
import * as PaymentsFile from "./PaymentsFile.ts"
import * as Price from "./Price.ts"
import * as Product from "./Product.ts"
import * as Products from "./Products.ts"
import * as Refund from "./Refund.ts"
import * as Requests from "./Requests.ts"
import * as RequestsFile from "./RequestsFile.ts"
import { link, placeOf } from "./Place.ts"
import { refusal, route, signedOut, toSignIn } from "./Screens.ts"
import * as SignIn from "./SignIn.ts"
import { SignInLimits } from "./SignInLimits.ts"
import * as WebhookEndpoint from "./WebhookEndpoint.ts"
import * as Webhooks from "./Webhooks.ts"
import * as Team from "./Team.ts"
import * as TestClock from "./TestClock.ts"
import * as TriggerEvent from "./TriggerEvent.ts"
import { visitOf } from "./Visit.ts"
import { visitorOf } from "./Visitors.ts"
import * as WipeTestData from "./WipeTestData.ts"

/** The dashboard itself, and whatever else is asked for below it. Who is not signed in learns nothing of it. */
const nothing = (method: "GET" | "POST") =>
  route(method, "/dashboard/*", (request) =>
    Effect.gen(function* () {
      const visitor = yield* visitorOf(request)
      if (visitor === undefined) return method === "GET" ? toSignIn(request) : signedOut(request)
      const place = placeOf(request)
      if (place.path === "") return seeOther(link(place, SignIn.HOME))
      const mode = request.url.startsWith("/dashboard/live") ? "live" : "test"
      return refusal(visitOf(request, visitor, mode, yield* PaymentsConfig), 404)
    })
  )

export const layer = Layer.mergeAll(
  Assets.immutable(Assets.dashboardStylesheet),
  Assets.immutable(Assets.dashboardScript),
  Account.layer,
  Delivery.layer,
  CheckoutSession.layer,
  CheckoutSessions.layer,
  Charge.layer,
  Customer.layer,
  Customers.layer,
  AuditLog.layer,
  BrandSettings.layer,
  Developers.layer,
  Events.layer,
  Find.layer,
  Home.layer,
  Installation.layer,
  Keys.layer,
  Live.layer,
  NewPrice.layer,
  Member.layer,
  Payment.layer,
  PaymentMethod.layer,
  Payments.layer,
  PaymentsFile.layer,
  Price.layer,
  Product.layer,
  Products.layer,
  Refund.layer,
  Requests.layer,
  RequestsFile.layer,
  SignIn.layer,
  WebhookEndpoint.layer,
  Webhooks.layer,
  Team.layer,
  TestClock.layer,
  TriggerEvent.layer,
  WipeTestData.layer,
  nothing("GET"),
  nothing("POST")
).pipe(Layer.provide(SignInLimits.layer))
