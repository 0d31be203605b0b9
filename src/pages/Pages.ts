/** Everything that a person sees in a browser. To be served together with the API's routes. */
import { Layer } from "effect"
import * as Assets from "./Assets.ts"
import * as Authentication from "./Authentication.ts"
import * as Checkout from "./Checkout.ts"
import * as CustomCheckout from "./CustomCheckout.ts"
import * as ErrorDocs from "./ErrorDocs.ts"

export const layer = Layer.mergeAll(
  Assets.layer,
  Authentication.layer,
  Checkout.layer,
  CustomCheckout.layer,
  ErrorDocs.layer
)
