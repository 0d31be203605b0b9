/**
 * Every row of semantics test_cards.table, test_cards.approve, test_cards.declines, by each of its ids and by its
 * number. The table is repeated here independently.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { isCardNumber } from "../../src/domain/Cards.ts"
import type { CardDeclined } from "../../src/domain/Errors.ts"
import type { PaymentIntent } from "../../src/domain/PaymentIntent.ts"
import { TEST_CARDS } from "../../src/domain/TestCards.ts"
import { PAYMENT_INTENT } from "../../src/payments/shared/Documents.ts"
import * as PaymentIntents from "../../src/payments/lifecycles/PaymentIntents.ts"
import { tokenized } from "../support/fixtures/CardData.ts"
import { MemoryAccount } from "../support/MemoryAccount.ts"
import { accepted, atOnce } from "../support/Outcomes.ts"

const DECLINED = "Your card was declined."
const APPROVES = ["succeeded"]

/** Ids, number, the statuses of the PaymentIntent (a decline by its code), and the message of a decline. */
const TABLE: ReadonlyArray<readonly [string, string, ReadonlyArray<string>, string?]> = [
  ["pm_card_visa", "4242424242424242", APPROVES],
  ["pm_card_visa_debit", "4000056655665556", APPROVES],
  ["pm_card_mastercard", "5555555555554444", APPROVES],
  ["pm_card_mastercard_debit", "5200828282828210", APPROVES],
  ["pm_card_mastercard_prepaid", "5105105105105100", APPROVES],
  ["pm_card_amex", "378282246310005", APPROVES],
  ["pm_card_discover", "6011111111111117", APPROVES],
  ["pm_card_diners", "3056930009020004", APPROVES],
  ["pm_card_jcb", "3566002020360505", APPROVES],
  ["pm_card_unionpay", "6200000000000005", APPROVES],
  [
    "pm_card_declined pm_card_visa_chargeDeclined pm_card_chargeDeclined",
    "4000000000000002",
    ["generic_decline"],
    DECLINED
  ],
  [
    "pm_card_insufficient_funds pm_card_visa_chargeDeclinedInsufficientFunds",
    "4000000000009995",
    ["insufficient_funds"],
    "Your card has insufficient funds."
  ],
  ["pm_card_visa_chargeDeclinedLostCard pm_card_lost_card", "4000000000009987", ["lost_card"], DECLINED],
  ["pm_card_visa_chargeDeclinedStolenCard pm_card_stolen_card", "4000000000009979", ["stolen_card"], DECLINED],
  [
    "pm_card_expired pm_card_chargeDeclinedExpiredCard pm_card_expired_card",
    "4000000000000069",
    ["expired_card"],
    "Your card has expired."
  ],
  [
    "pm_card_chargeDeclinedIncorrectCvc pm_card_incorrect_cvc",
    "4000000000000127",
    ["incorrect_cvc"],
    "Your card's security code is incorrect."
  ],
  [
    "pm_card_chargeDeclinedProcessingError pm_card_processing_error",
    "4000000000000119",
    ["processing_error"],
    "An error occurred while processing your card. Try again."
  ],
  ["pm_card_do_not_honor", "4000000000006009", ["do_not_honor"], DECLINED],
  [
    "pm_card_3ds_required pm_card_threeDSecure2Required pm_card_authenticationRequired",
    "4000000000003220",
    ["requires_action", "succeeded"]
  ],
  ["", "4000002760003184", ["requires_action", "succeeded"]],
  [
    "pm_card_authenticationRequiredChargeDeclinedInsufficientFunds",
    "4000008260003178",
    ["requires_action", "insufficient_funds"],
    "Your card has insufficient funds."
  ],
  ["pm_card_processing_success", "4000000000006017", ["processing", "succeeded"]],
  ["pm_card_processing_failure", "4000000000006025", ["processing", "requires_payment_method"]],
  ["pm_card_pendingRefund", "4000000000007726", APPROVES],
  ["pm_card_refundFail", "4000000000005126", APPROVES],
  ["pm_card_processor_error", "4000000000006033", ["ProcessorUnavailable"]],
  [
    "",
    "4111111111111111",
    ["generic_decline"],
    "Your card was declined. Your request was in test mode, but used a non test card."
  ]
]

type PaymentMethodParameters = Parameters<typeof PaymentIntents.confirm>[1]

const course = Effect.fnUntraced(function* (source: PaymentMethodParameters) {
  const account = new MemoryAccount()
  const { id } = yield* accepted(account.run(PaymentIntents.create({ amount: 2000, currency: "usd" })))
  const went: Array<string> = []
  const note = Effect.map((outcome: Result.Result<PaymentIntent, CardDeclined>) => {
    went.push(Result.isFailure(outcome) ? outcome.failure.declineCode : outcome.success.status)
    return Result.isFailure(outcome) ? outcome.failure.message : undefined
  })
  let message = yield* atOnce(account.run(PaymentIntents.confirm(id, source))).pipe(
    note,
    Effect.catch(({ _tag }) => Effect.sync(() => void went.push(_tag)))
  )
  if (went[0] === "requires_action") message = yield* note(account.run(PaymentIntents.authenticate(id, "success")))
  if (went[0] === "processing") {
    yield* account.advance(1999)
    assert.strictEqual(account.value(PAYMENT_INTENT, id)!.status, "processing")
    yield* account.advance(1)
    went.push(account.value(PAYMENT_INTENT, id)!.status)
  }
  return { went, message }
})

describe("Test cards behave as in the table", () => {
  for (const [ids, number, went, message] of TABLE) {
    const sources: ReadonlyArray<PaymentMethodParameters> = [
      ...ids
        .split(" ")
        .filter((id) => id !== "")
        .map((payment_method) => ({ payment_method })),
      { payment_method_data: tokenized({ type: "card", card: { number, exp_month: 1, exp_year: 2030 } }) }
    ]
    it.effect(`${number} ${ids}`, () =>
      Effect.gen(function* () {
        assert.isTrue(isCardNumber(number))
        for (const source of sources) {
          assert.deepStrictEqual(yield* course(source), { went: [...went], message })
        }
      })
    )
  }

  it("and there are no others", () => {
    const ids = TABLE.flatMap(([ids]) => ids.split(" ")).filter((id) => id !== "")
    assert.sameMembers(
      ids,
      TEST_CARDS.flatMap((card) => card.ids)
    )
  })
})
