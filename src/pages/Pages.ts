/** All routes that a person sees in a browser. They are served together with the API's routes. */
import { Layer } from "effect"
import * as AccentStyle from "./AccentStyle.ts"
import * as Assets from "./Assets.ts"
import * as Checkout from "./Checkout.ts"
import * as Documentation from "./Documentation.ts"
import * as ErrorDocs from "./ErrorDocs.ts"
import * as Home from "./Home.ts"
import * as PayerAuthentication from "./PayerAuthentication.ts"
import * as StrayAddresses from "./StrayAddresses.ts"

export const layer = Layer.mergeAll(
  AccentStyle.layer,
  Assets.layer,
  Checkout.layer,
  Documentation.layer,
  ErrorDocs.layer,
  Home.layer,
  PayerAuthentication.layer,
  StrayAddresses.layer
)
