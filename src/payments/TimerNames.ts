/** The timers of payments. Each is about one object, and its id says which. */

/** A payment that was processing settles (semantics I-15). */
export const SETTLE = "payment_intent.settle"

/** An authorization was not captured in time (semantics I-17). */
export const EXPIRE_HOLD = "payment_intent.expire_hold"

/** The processor says in the end what became of a refund (semantics §2.4). */
export const SETTLE_REFUND = "refund.settle"

export const refundTimer = (refundId: string): string => `refund:${refundId}`

export const settlementTimer = (paymentIntentId: string): string => `settle:${paymentIntentId}`

export const holdTimer = (paymentIntentId: string): string => `hold:${paymentIntentId}`

/** The grace of a rolled API key ends (semantics A8). */
export const EXPIRE_API_KEY = "api_key.expire"

export const apiKeyTimer = (apiKeyId: string): string => `api_key:${apiKeyId}`

/** A Checkout Session was not completed in time (semantics S17). */
export const EXPIRE_CHECKOUT_SESSION = "checkout.session.expire"

export const checkoutSessionTimer = (checkoutSessionId: string): string => `checkout_session:${checkoutSessionId}`

/** The object that a timer is about. */
export const subjectOf = (timerId: string): string => timerId.slice(timerId.indexOf(":") + 1)
