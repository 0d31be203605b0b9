/**
 * The simulated card processor, which follows the table of test cards (semantics test_cards.*). Pure.
 *
 * Its token of a card is the name of the test card, so the number need not be stored.
 */
import { Effect, Layer } from "effect"
import { brandOf, isExpired } from "../../domain/Cards.ts"
import {
  cvcCheckOf,
  declines,
  TEST_CARD_EXPIRY,
  testCardByNumber,
  testCardOf,
  type TestCardRefunds,
  type TestCardResult,
  UNKNOWN_CARD_RESULT
} from "../../domain/TestCards.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { isLive } from "../shared/AccountIds.ts"
import { PaymentsConfig, type PaymentsConfigShape } from "../shared/PaymentsConfig.ts"
import {
  type Authorization,
  type AuthorizationRequest,
  type CardData,
  type CardProcessor,
  Processors,
  type ProcessorsShape,
  type RefundAnswer,
  type RefundSettlement,
  type Settlement,
  type TokenizedCard
} from "./Processor.ts"

/** How long a payment or refund takes to settle (semantics payment_intents.processing, refunds.states). */
const SETTLEMENT_MILLIS = 2000

/** The responses to refunds, by test card (semantics refunds.states). */
const REFUND_ANSWERS: Readonly<Record<TestCardRefunds, RefundAnswer>> = {
  succeed: { status: "succeeded", settlesAfterMillis: null },
  start_pending: { status: "pending", settlesAfterMillis: SETTLEMENT_MILLIS },
  fail_later: { status: "succeeded", settlesAfterMillis: SETTLEMENT_MILLIS }
}

const UNKNOWN_TOKEN = "unknown"

const tokenize = (card: CardData): TokenizedCard => {
  const testCard = testCardByNumber(card.number)
  return {
    token: testCard?.ids[0] ?? UNKNOWN_TOKEN,
    brand: testCard?.brand ?? brandOf(card.number),
    last4: card.number.slice(-4),
    exp_month: card.exp_month,
    exp_year: card.exp_year,
    funding: testCard?.funding ?? "credit",
    country: testCard?.country ?? "US",
    checks: { cvc_check: card.cvc == null ? null : cvcCheckOf(testCard) }
  }
}

/** The token of a test card has the card's name: `tok_visa` is the card of `pm_card_visa`. */
const cardOf = (token: string): CardData | undefined => {
  const testCard = token.startsWith("tok_") ? testCardOf(`pm_card_${token.slice(4)}`) : undefined
  return testCard && { number: testCard.numbers[0], ...TEST_CARD_EXPIRY }
}

const authorize = ({ authenticated, card, now, token }: AuthorizationRequest): Authorization => {
  const result = isExpired(card, now) ? declines("expired_card") : resultOf(token)
  return authorization(authenticated && result.kind === "challenges" ? result.after : result)
}

const settle = (token: string): Settlement => {
  const result = resultOf(token)
  const settled = authorization(result.kind === "processes" ? result.after : result)
  if (settled.kind === "approved" || settled.kind === "declined") return settled
  throw new Error(`A payment with ${token} has nothing to settle`)
}

const refund = (token: string): RefundAnswer => REFUND_ANSWERS[testCardOf(token)?.refunds ?? "succeed"]

const settleRefund = (token: string): RefundSettlement =>
  testCardOf(token)?.refunds === "fail_later"
    ? { status: "failed", failureReason: "expired_or_canceled_card" }
    : { status: "succeeded" }

export const simulator: CardProcessor = { kind: "at_once", tokenize, cardOf, authorize, settle, refund, settleRefund }

const resultOf = (token: string): TestCardResult => testCardOf(token)?.result ?? UNKNOWN_CARD_RESULT

const authorization = (result: TestCardResult): Authorization => {
  switch (result.kind) {
    case "approves":
      return { kind: "approved" }
    case "declines":
      return { kind: "declined", declineCode: result.declineCode, message: result.message }
    case "challenges":
      return { kind: "challenge" }
    case "processes":
      return { kind: "pending", settlesAfterMillis: SETTLEMENT_MILLIS }
    case "faults":
      return { kind: "unavailable" }
  }
}

/** The simulator in test mode, and in live mode the configured processor (semantics keys.live_processor). */
export const processorsOf = ({ liveProcessor }: Pick<PaymentsConfigShape, "liveProcessor">): ProcessorsShape => {
  const live = liveProcessor === "simulator" ? simulator : null
  const atOnce = (account: AccountId) => (isLive(account) ? live : simulator)
  return { of: atOnce, atOnce, byId: () => null, mayBegin: () => true }
}

export const layer: Layer.Layer<Processors, never, PaymentsConfig> = Layer.effect(
  Processors,
  Effect.map(PaymentsConfig, processorsOf)
)
