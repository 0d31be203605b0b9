/**
 * The state table of PaymentIntents, written a second time from the text of semantics §2.1, §2.2 and §5, without a look
 * at the implementation: what the lifecycle does must agree with it.
 */

/** Each card's behaviour, in the words of §5: an outcome, or something that comes before one. */
export const CARDS = {
  pm_card_visa: { number: "4242424242424242", does: "approve" },
  pm_card_amex: { number: "378282246310005", does: "approve" },
  pm_card_declined: { number: "4000000000000002", does: "generic_decline" },
  pm_card_insufficient_funds: { number: "4000000000009995", does: "insufficient_funds" },
  pm_card_lost_card: { number: "4000000000009987", does: "lost_card" },
  pm_card_stolen_card: { number: "4000000000009979", does: "stolen_card" },
  pm_card_expired: { number: "4000000000000069", does: "expired_card" },
  pm_card_incorrect_cvc: { number: "4000000000000127", does: "incorrect_cvc" },
  pm_card_processing_error: { number: "4000000000000119", does: "processing_error" },
  pm_card_do_not_honor: { number: "4000000000006009", does: "do_not_honor" },
  pm_card_3ds_required: { number: "4000000000003220", does: "3ds approve" },
  pm_card_authenticationRequiredChargeDeclinedInsufficientFunds: {
    number: "4000008260003178",
    does: "3ds insufficient_funds"
  },
  pm_card_processing_success: { number: "4000000000006017", does: "async approve" },
  pm_card_processing_failure: { number: "4000000000006025", does: "async generic_decline" },
  pm_card_processor_error: { number: "4000000000006033", does: "fault" }
} as const

export type CardName = keyof typeof CARDS
export const CARD_NAMES = Object.keys(CARDS) as ReadonlyArray<CardName>

export interface ModelCharge {
  readonly status: "succeeded" | "pending" | "failed"
  readonly amountCaptured: number
  readonly released: boolean
  readonly failureCode: string | null
}

/** What a passed authentication holds for, besides the card that it was passed with. */
export interface Terms {
  readonly amount: number
  readonly currency: Currency
}

export type Currency = "usd" | "eur"

/** What a client can see of a PaymentIntent, and what the table remembers besides. */
export interface Model extends Terms {
  readonly status: string
  readonly customer: boolean
  readonly description: string | null
  readonly descriptor: string | null
  readonly capture: "automatic" | "manual"
  readonly confirmation: "automatic" | "manual"
  readonly card: CardName | null
  /** How the card came: by its id, or inline and so under an id of its own. */
  readonly inline: boolean
  readonly received: number
  readonly capturable: number
  readonly charges: ReadonlyArray<ModelCharge>
  readonly lastError: string | null
  readonly reason: string | null
  /** What 3DS was passed for with the present card, where the server has to confirm again. */
  readonly authenticated: Terms | null
  /** When something happens by itself. */
  readonly dueAt: number | null
}

export interface CardSent {
  readonly card: CardName | null
  readonly inline: boolean
}

export type Command =
  | {
      readonly op: "update"
      readonly amount: number | null
      readonly currency: Currency | null
      readonly customer: boolean | null
      readonly capture: "automatic" | "manual" | null
      readonly details: string | null
      readonly descriptor: string | null
      readonly method: CardName | "unset" | null
    }
  | ({ readonly op: "confirm" } & CardSent)
  | { readonly op: "capture"; readonly amount: number | null }
  | { readonly op: "cancel"; readonly reason: "duplicate" | "abandoned" | null }
  | { readonly op: "authenticate"; readonly outcome: "success" | "failure" }

export interface Step {
  readonly after: Model
  readonly answer: string
  readonly events: ReadonlyArray<string>
}

export interface Creation extends CardSent {
  readonly amount: number
  readonly capture: "automatic" | "manual"
  readonly confirmation: "automatic" | "manual"
  readonly confirm: boolean
}

const HOLD_MILLIS = 604_800_000
const refused = (before: Model, answer: string): Step => ({ after: before, answer, events: [] })
const wrongState = (before: Model, statuses: ReadonlyArray<string>) =>
  statuses.includes(before.status) ? undefined : refused(before, `unexpected_state ${before.status}`)

export const create = (sent: Creation, now: number): Step | { readonly after: null; readonly answer: string } => {
  const created: Model = {
    status: sent.card === null ? "requires_payment_method" : "requires_confirmation",
    amount: sent.amount,
    currency: "usd",
    customer: false,
    description: null,
    descriptor: null,
    capture: sent.capture,
    confirmation: sent.confirmation,
    card: sent.card,
    inline: sent.inline && sent.card !== null,
    received: 0,
    capturable: 0,
    charges: [],
    lastError: null,
    reason: null,
    authenticated: null,
    dueAt: null
  }
  const events = ["payment_intent.created"]
  if (!sent.confirm) {
    return sent.inline && sent.card !== null
      ? { after: null, answer: "parameter_invalid payment_method_data" }
      : { after: created, answer: "ok", events }
  }
  const step = confirm(created, { card: null, inline: false }, now)
  if (step.answer !== "ok" && !step.answer.startsWith("declined")) return { after: null, answer: step.answer }
  return { ...step, events: [...events, ...step.events] }
}

export const apply = (before: Model, command: Command, now: number): Step => {
  switch (command.op) {
    case "update":
      return update(before, command)
    case "confirm":
      return (
        wrongState(before, ["requires_payment_method", "requires_confirmation", "requires_action"]) ??
        confirm(before, command, now)
      )
    case "capture":
      return wrongState(before, ["requires_capture"]) ?? capture(before, command.amount)
    case "cancel":
      return (
        wrongState(before, [
          "requires_payment_method",
          "requires_confirmation",
          "requires_action",
          "requires_capture"
        ]) ?? giveUp(before, command.reason, "charge.updated")
      )
    case "authenticate":
      return wrongState(before, ["requires_action"]) ?? authenticate(before, command.outcome, now)
  }
}

/** What happens by itself at a time, if anything. */
export const timePasses = (before: Model, now: number): Step | undefined => {
  if (before.dueAt === null || before.dueAt > now) return undefined
  if (before.status === "requires_capture") return giveUp(before, "automatic", "charge.expired")
  const charges = before.charges.slice(0, -1)
  return outcome({ ...before, charges, dueAt: null }, CARDS[before.card!].does.replace("async ", ""), before.dueAt)
}

const update = (before: Model, command: Extract<Command, { op: "update" }>): Step => {
  const { amount, capture, currency, customer, descriptor, details, method } = command
  let after = before
  const changesTerms = [amount, currency, customer, capture].some((term) => term !== null)
  if (changesTerms || method !== null || descriptor !== null) {
    const no = wrongState(before, ["requires_payment_method", "requires_confirmation", "requires_action"])
    if (no !== undefined) return no
  }
  if (changesTerms) {
    after = {
      ...after,
      amount: amount ?? after.amount,
      currency: currency ?? after.currency,
      customer: customer ?? after.customer,
      capture: capture ?? after.capture,
      status: after.status === "requires_action" ? "requires_confirmation" : after.status
    }
  }
  if (method === "unset") {
    after = { ...after, status: "requires_payment_method", card: null, inline: false, authenticated: null }
  } else if (method !== null) {
    const same = method === after.card && !after.inline
    after = {
      ...after,
      status: "requires_confirmation",
      card: method,
      inline: false,
      authenticated: same ? after.authenticated : null
    }
  }
  const passed = after.authenticated
  if (passed !== null && (after.currency !== passed.currency || after.amount > passed.amount)) {
    after = { ...after, authenticated: null }
  }
  if (details !== null) after = { ...after, description: details }
  if (descriptor !== null) after = { ...after, descriptor }
  return { after, answer: "ok", events: [] }
}

const confirm = (before: Model, sent: CardSent, now: number): Step => {
  const card = sent.card ?? before.card
  if (card === null) return refused(before, "payment_method_required")
  const same = sent.card === null || (sent.card === before.card && !sent.inline && !before.inline)
  const attempted = { ...before, card, inline: sent.card === null ? before.inline : sent.inline }
  const does = CARDS[card].does
  if (does === "fault") return refused(before, "processor_unavailable")
  if (does.startsWith("3ds ")) {
    if (!(same && before.authenticated !== null)) {
      return {
        after: { ...attempted, status: "requires_action", authenticated: null },
        answer: "ok",
        events: ["payment_intent.requires_action"]
      }
    }
    return outcome(attempted, does.replace("3ds ", ""), now)
  }
  if (does.startsWith("async ")) {
    const pending = { status: "pending", amountCaptured: 0, released: false, failureCode: null } as const
    return {
      after: {
        ...attempted,
        status: "processing",
        charges: [...attempted.charges, pending],
        authenticated: null,
        dueAt: now + 2000
      },
      answer: "ok",
      events: ["charge.pending", "payment_intent.processing"]
    }
  }
  return outcome(attempted, does, now)
}

const outcome = (before: Model, does: string, now: number): Step => {
  if (does !== "approve") {
    const failed = { status: "failed", amountCaptured: 0, released: false, failureCode: does } as const
    return {
      after: {
        ...before,
        status: "requires_payment_method",
        card: null,
        inline: false,
        charges: [...before.charges, failed],
        lastError: `card_declined ${does}`,
        authenticated: null
      },
      answer: `declined ${does}`,
      events: ["charge.failed", "payment_intent.payment_failed"]
    }
  }
  const taken = before.capture === "automatic"
  const charge = {
    status: "succeeded",
    amountCaptured: taken ? before.amount : 0,
    released: false,
    failureCode: null
  } as const
  return {
    after: {
      ...before,
      status: taken ? "succeeded" : "requires_capture",
      received: taken ? before.amount : 0,
      capturable: taken ? 0 : before.amount,
      charges: [...before.charges, charge],
      lastError: null,
      authenticated: null,
      dueAt: taken ? null : now + HOLD_MILLIS
    },
    answer: "ok",
    events: ["charge.succeeded", taken ? "payment_intent.succeeded" : "payment_intent.amount_capturable_updated"]
  }
}

const authenticate = (before: Model, answered: "success" | "failure", now: number): Step => {
  if (answered === "failure") {
    return {
      after: {
        ...before,
        status: "requires_payment_method",
        card: null,
        inline: false,
        lastError: "payment_intent_authentication_failure"
      },
      answer: "ok",
      events: ["payment_intent.payment_failed"]
    }
  }
  if (before.confirmation === "manual") {
    const { amount, currency } = before
    const authenticated = { amount, currency }
    return { after: { ...before, status: "requires_confirmation", authenticated }, answer: "ok", events: [] }
  }
  return outcome(before, CARDS[before.card!].does.replace("3ds ", ""), now)
}

const changeLast = (charges: ReadonlyArray<ModelCharge>, changes: Partial<ModelCharge>) =>
  charges.map((charge, i) => (i === charges.length - 1 ? { ...charge, ...changes } : charge))

const capture = (before: Model, amount: number | null): Step => {
  const taken = amount ?? before.amount
  if (taken > before.amount) return refused(before, `amount_too_large amount_to_capture ${before.amount}`)
  const charges = changeLast(before.charges, { amountCaptured: taken })
  return {
    after: { ...before, status: "succeeded", received: taken, capturable: 0, charges, dueAt: null },
    answer: "ok",
    events: ["charge.captured", "payment_intent.succeeded"]
  }
}

const giveUp = (before: Model, reason: string | null, chargeEvent: string): Step => {
  const held = before.status === "requires_capture"
  const charges = held ? changeLast(before.charges, { released: true }) : before.charges
  return {
    after: { ...before, status: "canceled", capturable: 0, charges, reason, authenticated: null, dueAt: null },
    answer: "ok",
    events: [...(held ? [chargeEvent] : []), "payment_intent.canceled"]
  }
}
