/** A checkout page with an order that does not exist, as the preview of a brand (semantics dashboard.brand). */
import { Layer } from "effect"
import type { CheckoutSession, LineItem } from "../../domain/CheckoutSession.ts"
import { CheckoutPreview } from "../../html/CheckoutPreview.ts"
import { ENGLISH } from "../../html/Translation.ts"
import { render } from "./CheckoutPage.ts"

const TOTAL = 2450

const SESSION: CheckoutSession = {
  id: "cs_example",
  object: "checkout.session",
  mode: "payment",
  status: "open",
  payment_status: "unpaid",
  ui_mode: "hosted",
  customer_creation: "if_required",
  billing_address_collection: "auto",
  expires_at: 0,
  metadata: {},
  // A page of test mode would begin with the list of test cards.
  livemode: true,
  created: 0,
  url: null,
  client_secret: null,
  success_url: null,
  cancel_url: null,
  customer: null,
  customer_email: null,
  payment_intent: "pi_example",
  currency: "usd",
  amount_subtotal: TOTAL,
  amount_total: TOTAL,
  total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 },
  client_reference_id: null
}

const LINE: LineItem = {
  id: "csli_example",
  object: "item",
  amount_subtotal: TOTAL,
  amount_total: TOTAL,
  currency: "usd",
  description: "An example order",
  price: "price_example",
  quantity: 1
}

export const layer = Layer.succeed(CheckoutPreview, {
  render: (brand, depth) =>
    render({
      session: SESSION,
      lines: [LINE],
      goods: [{ price: null, product: null }],
      merchant: brand.name,
      brand,
      translation: ENGLISH,
      amount: null,
      saved: [],
      cards: { kind: "fields" },
      token: "",
      details: {},
      errors: {},
      message: null,
      frame: null,
      depth,
      isPreview: true
    })
})
