/** Types of `checkout.js`, which a page loads from Till: `<script src="{base}/checkout.js"></script>`. */

/** A failure. `message` can be shown to the payer; the other fields are the API's. */
export interface CheckoutError {
  readonly type: string
  readonly code: string
  readonly message: string
  readonly param?: string | null
  readonly decline_code?: string
}

export interface Address {
  readonly line1?: string | null
  readonly line2?: string | null
  readonly city?: string | null
  readonly state?: string | null
  readonly postal_code?: string | null
  /** ISO 3166-1, two letters. */
  readonly country?: string | null
}

export interface CustomerDetails {
  readonly email?: string | null
  readonly name?: string | null
  readonly phone?: string | null
  readonly address?: Address | null
}

/** The Checkout Session as a publishable key sees it, without metadata. */
export interface CheckoutSession {
  readonly id: string
  readonly object: "checkout.session"
  readonly mode: "payment" | "setup" | "subscription"
  readonly status: "open" | "complete" | "expired"
  readonly payment_status: "unpaid" | "paid" | "no_payment_required"
  readonly ui_mode: "hosted" | "embedded" | "custom"
  /** In the currency's smallest unit. */
  readonly amount_total: number | null
  readonly amount_subtotal: number | null
  /** Three lower-case letters. */
  readonly currency: string | null
  readonly total_details: {
    readonly amount_discount: number
    readonly amount_shipping: number
    readonly amount_tax: number
  }
  readonly billing_address_collection: "auto" | "required"
  /** Present if the session was created with it. Enabled: the payment requires `customer_details.phone`. */
  readonly phone_number_collection?: { readonly enabled: boolean }
  /** The language of the session's pages; absent if the session was created without it. */
  readonly locale?: string
  readonly livemode: boolean
  /** Unix time in seconds. */
  readonly expires_at: number
  readonly payment_intent: string | null
  readonly client_secret: string | null
  readonly success_url: string | null
  readonly cancel_url: string | null
  readonly customer_email: string | null
  readonly customer_details?: CustomerDetails
  readonly [field: string]: unknown
}

export interface EmbeddedCheckoutOptions {
  /** The session's `client_secret`, from your server. */
  readonly clientSecret: string
  /** Called once when the session is complete. Without it, the page opens the session's `success_url`. */
  readonly onComplete?: (completed: { readonly sessionId: string }) => void
}

/** The checkout in a frame that adjusts its height to its content. */
export interface EmbeddedCheckout {
  /** Shows the checkout inside an element, or inside the first match of a selector. */
  mount(where: string | Element): void
  /** Removes the checkout. */
  unmount(): void
}

export interface Card {
  /** Spaces and hyphens are ignored. */
  readonly number: string
  readonly exp_month: number
  /** Four digits. */
  readonly exp_year: number
  /** 4 digits for American Express, 3 for other brands. */
  readonly cvc?: string
}

/** The inputs of a card, which the merchant's processor shows in a frame. The page around never sees the card. */
export interface MountedCard {
  /**
   * Returns the processor's token for the card: for `payment_method_data: { type: "card", token }`. Rejects with an
   * `Error` whose `error` is a `CheckoutError`, `card_refused` or `card_missing`, for the payer.
   */
  token(): Promise<string>
  /** Removes the frame. */
  unmount(): void
}

export interface ConfirmParameters {
  /** The card that the payer entered, which is sent to Till only; or the inputs of `mountCard`. */
  readonly card?: Card | MountedCard
  /** An existing payment method (`pm_…`) instead of a card. */
  readonly payment_method?: string
  /**
   * The amount that the payer chose, in the currency's smallest unit, for a session whose price has
   * `custom_unit_amount`. Without it the amount is unchanged; if no amount was chosen yet, the payment is refused.
   */
  readonly custom_unit_amount?: number
  readonly customer_details?: CustomerDetails
  /** The address that the payer returns to after authentication; the current page by default. */
  readonly return_url?: string
}

export interface CheckoutState {
  /** `requires_action`: the payer is being redirected to authentication, and returns to `return_url`. */
  readonly status: "open" | "confirming" | "requires_action" | "complete" | "expired"
  readonly session: CheckoutSession
  /**
   * The failure of the last attempt. The payer can try again while `status` is `open`. `message` is for the payer, in
   * the session's `locale`, or else in the language of the page (`<html lang>`) or of the browser.
   */
  readonly error: CheckoutError | null
}

/** A session that the shop's own form pays. */
export interface Checkout {
  readonly state: CheckoutState
  readonly session: CheckoutSession
  /** Calls a listener with each new state, until the returned function is called. */
  subscribe(listener: (state: CheckoutState) => void): () => void
  /**
   * Shows the inputs of a card inside an element, or inside the first match of a selector. Needed if the merchant's
   * payments go through a processor that takes no card data from Till. Rejects if the processor has no such inputs.
   */
  mountCard(where: string | Element): Promise<MountedCard>
  /**
   * Pays. Never rejects: failures are in the state. A call during another one joins it, and a session is paid once,
   * however often this is called.
   */
  confirm(parameters?: ConfirmParameters): Promise<CheckoutState>
}

export interface TillCheckout {
  /** Requires a session with `ui_mode` `embedded`. Throws if the text is not a client secret. */
  embeddedCheckout(options: EmbeddedCheckoutOptions): EmbeddedCheckout
  /** Requires a session with `ui_mode` `custom`. Rejects if the session does not exist or Till cannot be reached. */
  checkout(options: { readonly clientSecret: string }): Promise<Checkout>
  /**
   * Shows the inputs of a card for a PaymentIntent of no session inside an element, or inside the first match of a
   * selector. The page or its server confirms the PaymentIntent with the token. Rejects if the processor has no such
   * inputs.
   */
  mountCard(where: string | Element, options: MountCardOptions): Promise<MountedCard>
}

export interface MountCardOptions {
  /** The PaymentIntent's `client_secret`, from your server. */
  readonly clientSecret: string
  /** The language of texts for the payer; that of the page (`<html lang>`) or of the browser by default. */
  readonly locale?: string
}

export interface TillOptions {
  /** Till's address; the script's own address by default. */
  readonly baseUrl?: string
}

declare global {
  /** Takes a publishable key, `pk_…`. Throws for other keys. */
  function Till(publishableKey: string, options?: TillOptions): TillCheckout
}
