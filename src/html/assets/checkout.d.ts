/** Types of `checkout.js`, which a page loads from Till: `<script src="{base}/checkout.js"></script>`. */

/** A failure. `message` is for the payer and can be shown as it is; all else is as the API says it. */
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
  /** Two letters, of ISO 3166-1. */
  readonly country?: string | null
}

export interface CustomerDetails {
  readonly email?: string | null
  readonly name?: string | null
  readonly phone?: string | null
  readonly address?: Address | null
}

/** The Checkout Session, as far as a publishable key sees it: never its metadata. */
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
  /** Three letters, lower case. */
  readonly currency: string | null
  readonly total_details: {
    readonly amount_discount: number
    readonly amount_shipping: number
    readonly amount_tax: number
  }
  readonly billing_address_collection: "auto" | "required"
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
  /** Called once the session is complete. Without it, the page goes on to the session's `success_url`. */
  readonly onComplete?: (completed: { readonly sessionId: string }) => void
}

/** The checkout in a frame that is as high as what it shows. */
export interface EmbeddedCheckout {
  /** Shows the checkout within an element, or the first that a selector finds. */
  mount(where: string | Element): void
  /** Takes the checkout away. */
  unmount(): void
}

export interface Card {
  /** Spaces and hyphens do not matter. */
  readonly number: string
  readonly exp_month: number
  /** Four digits. */
  readonly exp_year: number
  /** 4 digits for American Express, 3 for all others. */
  readonly cvc?: string
}

export interface ConfirmParameters {
  /** The card that the payer entered. It goes to Till, and nowhere else. */
  readonly card?: Card
  /** Or a payment method (`pm_…`) that exists already. */
  readonly payment_method?: string
  /**
   * The amount that the payer chose, for a session with a price that has a `custom_unit_amount`. In the currency's
   * smallest unit. Without it the amount stays what it is; if there is none yet, the payment is refused.
   */
  readonly custom_unit_amount?: number
  readonly customer_details?: CustomerDetails
  /** Address to which the payer comes back from an authentication; this very page by default. */
  readonly return_url?: string
}

export interface CheckoutState {
  /** `requires_action`: the payer is being led to an authentication, and comes back to `return_url`. */
  readonly status: "open" | "confirming" | "requires_action" | "complete" | "expired"
  readonly session: CheckoutSession
  /** The failure of the last attempt. While `status` is `open`, the payer can try again. */
  readonly error: CheckoutError | null
}

/** A session that a form of the shop's own pays for. */
export interface Checkout {
  readonly state: CheckoutState
  readonly session: CheckoutSession
  /** Calls a listener with each new state, until the function that it returns is called. */
  subscribe(listener: (state: CheckoutState) => void): () => void
  /**
   * Pays. Never rejects: a failure is in the state. A call while another is under way joins that one, and a session is
   * paid for once, however often this is called.
   */
  confirm(parameters?: ConfirmParameters): Promise<CheckoutState>
}

export interface TillCheckout {
  /** Needs a session with `ui_mode` `embedded`. Throws if the text is no client secret. */
  embeddedCheckout(options: EmbeddedCheckoutOptions): EmbeddedCheckout
  /** Needs a session with `ui_mode` `custom`. Rejects if there is no such session, or Till cannot be reached. */
  checkout(options: { readonly clientSecret: string }): Promise<Checkout>
}

export interface TillOptions {
  /** Till's address; by default the one that the script came from. */
  readonly baseUrl?: string
}

declare global {
  /** Takes a publishable key, `pk_…`. Throws for any other. */
  function Till(publishableKey: string, options?: TillOptions): TillCheckout
}
