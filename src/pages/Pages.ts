/** All routes for browsers. They are served together with the API's routes. */
import { Layer } from "effect"
import * as Accent from "../html/Accent.ts"
import * as Assets from "../html/Assets.ts"
import * as CheckoutTexts from "../html/CheckoutTexts.ts"
import * as Compression from "../html/Compression.ts"
import * as Checkout from "./checkout/Checkout.ts"
import * as Documentation from "./docs/Documentation.ts"
import * as Home from "./Home.ts"
import * as PaymentLink from "./checkout/PaymentLink.ts"
import * as PayerAuthentication from "./authentication/PayerAuthentication.ts"
import * as Logo from "./Logo.ts"
import * as NotFound from "./NotFound.ts"

export const layer = Layer.mergeAll(
  Compression.layer,
  Accent.layer,
  Assets.layer,
  Checkout.layer,
  CheckoutTexts.layer,
  Documentation.layer,
  Home.layer,
  Logo.layer,
  PaymentLink.layer,
  PayerAuthentication.layer,
  NotFound.layer
)
