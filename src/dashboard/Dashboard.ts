/** All routes of the dashboard. A new page adds its layer here, and a new navigation entry goes into `Shell.ts`. */
import { Effect, Layer } from "effect"
import { seeOther } from "../html/PageResponse.ts"
import * as Assets from "../html/Assets.ts"
import * as Account from "./team/Account.ts"
import * as Delivery from "./developers/Delivery.ts"
import * as CheckoutSession from "./payments/CheckoutSession.ts"
import * as CheckoutSessions from "./payments/CheckoutSessions.ts"
import * as Charge from "./payments/Charge.ts"
import * as Customer from "./customers/Customer.ts"
import * as Customers from "./customers/Customers.ts"
import * as AuditLog from "./team/AuditLog.ts"
import * as BrandSettings from "./team/BrandSettings.ts"
import * as Developers from "./developers/Developers.ts"
import * as Events from "./developers/Events.ts"
import * as Find from "./home/Find.ts"
import * as ForgotPassword from "./team/ForgotPassword.ts"
import * as Home from "./home/Home.ts"
import * as Installation from "./developers/Installation.ts"
import * as Keys from "./developers/Keys.ts"
import * as Processors from "./developers/Processors.ts"
import * as Live from "./frame/Live.ts"
import * as NewPrice from "./catalog/NewPrice.ts"
import * as MailSettings from "./team/MailSettings.ts"
import * as Member from "./team/Member.ts"
import * as NewPaymentLink from "./payments/NewPaymentLink.ts"
import * as Operation from "./payments/Operation.ts"
import * as Operations from "./payments/Operations.ts"
import * as Payment from "./payments/Payment.ts"
import * as PaymentLink from "./payments/PaymentLink.ts"
import * as PaymentLinks from "./payments/PaymentLinks.ts"
import * as PaymentMethod from "./customers/PaymentMethod.ts"
import * as Payments from "./payments/Payments.ts"
import * as Price from "./catalog/Price.ts"
import * as Product from "./catalog/Product.ts"
import * as Products from "./catalog/Products.ts"
import * as Refund from "./payments/Refund.ts"
import * as Requests from "./developers/Requests.ts"
import { link, locationOf } from "./frame/Links.ts"
import { refusalPage, route, signedOutPage, redirectToSignIn } from "./frame/Page.ts"
import * as SignIn from "./team/SignIn.ts"
import { SignInLimits } from "./frame/SignInLimits.ts"
import * as WebhookEndpoint from "./developers/WebhookEndpoint.ts"
import * as Webhooks from "./developers/Webhooks.ts"
import * as Team from "./team/Team.ts"
import * as TestClock from "./developers/TestClock.ts"
import * as TriggerEvent from "./developers/TriggerEvent.ts"
import * as TwoStep from "./team/TwoStep.ts"
import { visitOf } from "./frame/Visit.ts"
import { visitorOf } from "./frame/Visitors.ts"
import * as WipeTestData from "./developers/WipeTestData.ts"

/** Answers every other address below `/dashboard`. Without a session, each of them leads to the sign-in page. */
const fallback = (method: "GET" | "POST") =>
  route(method, "/dashboard/*", (request) =>
    Effect.gen(function* () {
      const visitor = yield* visitorOf(request)
      if (visitor === undefined) return method === "GET" ? redirectToSignIn(request) : signedOutPage(request)
      const place = locationOf(request)
      if (place.path === "") return seeOther(link(place, SignIn.HOME))
      const mode = request.url.startsWith("/dashboard/live") ? "live" : "test"
      return refusalPage(yield* visitOf(request, visitor, mode), 404)
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
  ForgotPassword.layer,
  Home.layer,
  Installation.layer,
  Keys.layer,
  Processors.layer,
  Live.layer,
  NewPaymentLink.layer,
  NewPrice.layer,
  MailSettings.layer,
  Member.layer,
  Operation.layer,
  Operations.layer,
  Payment.layer,
  PaymentLink.layer,
  PaymentLinks.layer,
  PaymentMethod.layer,
  Payments.layer,
  Price.layer,
  Product.layer,
  Products.layer,
  Refund.layer,
  Requests.layer,
  SignIn.layer,
  WebhookEndpoint.layer,
  Webhooks.layer,
  Team.layer,
  TestClock.layer,
  TriggerEvent.layer,
  TwoStep.layer,
  WipeTestData.layer,
  fallback("GET"),
  fallback("POST")
).pipe(Layer.provide(SignInLimits.layer))
