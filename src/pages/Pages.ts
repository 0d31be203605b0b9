/** All routes that a person sees in a browser. They are served together with the API's routes. */
import { Layer } from "effect"
import * as Assets from "./Assets.ts"
import * as Checkout from "./Checkout.ts"
import * as ErrorDocs from "./ErrorDocs.ts"
import * as PayerAuthentication from "./PayerAuthentication.ts"

export const layer = Layer.mergeAll(Assets.layer, Checkout.layer, ErrorDocs.layer, PayerAuthentication.layer)
