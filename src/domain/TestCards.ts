/** The test cards, and the simulated processor's behaviour for each (semantics test_cards.*). */
import { DECLINE_MESSAGES, type DeclineCode } from "./Cards.ts"
import type { CardFunding } from "./PaymentMethod.ts"

/** The result of a charge to the card. */
export type TestCardResult =
  | { readonly kind: "approves" }
  | { readonly kind: "declines"; readonly declineCode: DeclineCode; readonly message: string }
  /** The payer has to authenticate first; then `after` applies. */
  | { readonly kind: "challenges"; readonly after: TestCardResult }
  /** The processor returns its result later; then `after` applies. */
  | { readonly kind: "processes"; readonly after: TestCardResult }
  /** The processor does not respond. */
  | { readonly kind: "faults" }

export type TestCardRefunds = "succeed" | "start_pending" | "fail_later"

export interface TestCard {
  readonly ids: readonly [string, ...Array<string>]
  readonly numbers: readonly [string, ...Array<string>]
  readonly result: TestCardResult
  readonly brand: string
  readonly funding: CardFunding
  /** The issuer's country, by ISO 3166-1 alpha-2. */
  readonly country: string
  readonly refunds: TestCardRefunds
}

export const declines = (declineCode: DeclineCode): TestCardResult => ({
  kind: "declines",
  declineCode,
  message: DECLINE_MESSAGES[declineCode]
})
const approves: TestCardResult = { kind: "approves" }
const challenges = (after: TestCardResult): TestCardResult => ({ kind: "challenges", after })
const processes = (after: TestCardResult): TestCardResult => ({ kind: "processes", after })

const card = (
  ids: TestCard["ids"],
  numbers: TestCard["numbers"],
  result: TestCardResult,
  details: Partial<Pick<TestCard, "brand" | "funding" | "country" | "refunds">> = {}
): TestCard => ({
  ids,
  numbers,
  result,
  brand: "visa",
  funding: "credit",
  country: "US",
  refunds: "succeed",
  ...details
})

export const TEST_CARDS: ReadonlyArray<TestCard> = [
  card(["pm_card_visa"], ["4242424242424242"], approves),
  card(["pm_card_visa_debit"], ["4000056655665556"], approves, { funding: "debit" }),
  card(["pm_card_mastercard"], ["5555555555554444"], approves, { brand: "mastercard" }),
  card(["pm_card_mastercard_debit"], ["5200828282828210"], approves, { brand: "mastercard", funding: "debit" }),
  card(["pm_card_mastercard_prepaid"], ["5105105105105100"], approves, { brand: "mastercard", funding: "prepaid" }),
  card(["pm_card_amex"], ["378282246310005"], approves, { brand: "amex" }),
  card(["pm_card_discover"], ["6011111111111117"], approves, { brand: "discover" }),
  card(["pm_card_diners"], ["3056930009020004"], approves, { brand: "diners" }),
  card(["pm_card_jcb"], ["3566002020360505"], approves, { brand: "jcb", country: "JP" }),
  card(["pm_card_unionpay"], ["6200000000000005"], approves, { brand: "unionpay", country: "CN" }),
  card(
    ["pm_card_declined", "pm_card_visa_chargeDeclined", "pm_card_chargeDeclined"],
    ["4000000000000002"],
    declines("generic_decline")
  ),
  card(
    ["pm_card_insufficient_funds", "pm_card_visa_chargeDeclinedInsufficientFunds"],
    ["4000000000009995"],
    declines("insufficient_funds")
  ),
  card(["pm_card_visa_chargeDeclinedLostCard", "pm_card_lost_card"], ["4000000000009987"], declines("lost_card")),
  card(["pm_card_visa_chargeDeclinedStolenCard", "pm_card_stolen_card"], ["4000000000009979"], declines("stolen_card")),
  card(
    ["pm_card_expired", "pm_card_chargeDeclinedExpiredCard", "pm_card_expired_card"],
    ["4000000000000069"],
    declines("expired_card")
  ),
  card(
    ["pm_card_chargeDeclinedIncorrectCvc", "pm_card_incorrect_cvc"],
    ["4000000000000127"],
    declines("incorrect_cvc")
  ),
  card(
    ["pm_card_chargeDeclinedProcessingError", "pm_card_processing_error"],
    ["4000000000000119"],
    declines("processing_error")
  ),
  card(["pm_card_do_not_honor"], ["4000000000006009"], declines("do_not_honor")),
  card(
    ["pm_card_3ds_required", "pm_card_threeDSecure2Required", "pm_card_authenticationRequired"],
    ["4000000000003220", "4000002760003184"],
    challenges(approves)
  ),
  card(
    ["pm_card_authenticationRequiredChargeDeclinedInsufficientFunds"],
    ["4000008260003178"],
    challenges(declines("insufficient_funds"))
  ),
  card(["pm_card_processing_success"], ["4000000000006017"], processes(approves)),
  card(["pm_card_processing_failure"], ["4000000000006025"], processes(declines("generic_decline"))),
  card(["pm_card_pendingRefund"], ["4000000000007726"], approves, { refunds: "start_pending" }),
  card(["pm_card_refundFail"], ["4000000000005126"], approves, { refunds: "fail_later" }),
  card(["pm_card_processor_error"], ["4000000000006033"], { kind: "faults" })
]

/** Returns the outcome of a payment with the card, in words that follow its name. */
export const outcomeOf = ({ refunds, result }: TestCard): string => {
  if (refunds === "start_pending") return "succeeds, refunds start pending"
  return refunds === "fail_later" ? "succeeds, refunds fail later" : resultText(result)
}

const resultText = (result: TestCardResult): string => {
  switch (result.kind) {
    case "approves":
      return "succeeds"
    case "declines":
      return result.declineCode === "generic_decline"
        ? "is declined"
        : `is declined: ${result.declineCode.replaceAll("_", " ")}`
    case "challenges":
      return `asks for authentication, then ${resultText(result.after)}`
    case "processes":
      return `takes a moment, then ${resultText(result.after)}`
    case "faults":
      return "the processor does not answer"
  }
}

export const UNKNOWN_CARD_MESSAGE = "Your card was declined. Your request was in test mode, but used a non test card."

/** The result for any other number. */
export const UNKNOWN_CARD_RESULT: TestCardResult = {
  kind: "declines",
  declineCode: "generic_decline",
  message: UNKNOWN_CARD_MESSAGE
}

/** The expiry date of the built-in test cards (semantics payment_methods.object). */
export const TEST_CARD_EXPIRY = { exp_month: 12, exp_year: 2034 }

const byId: ReadonlyMap<string, TestCard> = new Map(
  TEST_CARDS.flatMap((testCard) => testCard.ids.map((id) => [id, testCard] as const))
)
const byNumber: ReadonlyMap<string, TestCard> = new Map(
  TEST_CARDS.flatMap((testCard) => testCard.numbers.map((number) => [number, testCard] as const))
)

export const testCardOf = (id: string): TestCard | undefined => byId.get(id)

export const testCardByNumber = (number: string): TestCard | undefined => byNumber.get(number)

/** Returns the result of the security code check, which does not depend on the code. */
export const cvcCheckOf = (testCard: TestCard | undefined): "pass" | "fail" =>
  testCard?.result.kind === "declines" && testCard.result.declineCode === "incorrect_cvc" ? "fail" : "pass"
