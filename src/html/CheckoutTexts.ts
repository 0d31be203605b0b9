/**
 * The payer's texts of `checkout.js`, for shops with a form of their own. The script contains the English ones; those
 * of another language are a file, `checkout.de.json`, which the script loads when it needs that language.
 */
import { Layer } from "effect"
import { PAGE_LANGUAGES } from "../domain/CheckoutSession.ts"
import { PERSON_NAME_LENGTH_MAX, PERSON_PHONE_LENGTH_MAX } from "../domain/Address.ts"
import { UNKNOWN_CARD_MESSAGE } from "../domain/TestCards.ts"
import * as Assets from "./Assets.ts"
import { DECLINES } from "./Notice.ts"
import { Translation } from "./Translation.ts"

/** The texts by an error's message, decline code, parameter or code. `other` stands for all further errors. */
const textsIn = (translation: Translation): Readonly<Record<string, string>> => {
  const text: Translation["text"] = (key, ...values) => translation.text(key, ...values)
  const stop = translation.language === "ja" ? "。" : ". "
  const card = (name: string) => `payment_method_data[card][${name}]`
  const address = (name: string) => `customer_details[address][${name}]`
  const declines = Object.entries(DECLINES).map(([code, key]) => [code, text(key)])
  return {
    ...Object.fromEntries(declines),
    card_declined: text(DECLINES.generic_decline),
    [UNKNOWN_CARD_MESSAGE]: text("failure.not_a_test_card"),
    [card("number")]: text("card.number_invalid"),
    [card("exp_month")]: text("card.expiry_missing"),
    [card("exp_year")]: text("card.expiry_missing"),
    [card("cvc")]: text("card.cvc_invalid"),
    custom_unit_amount: text("amount.missing"),
    "customer_details[email]": text("contact.email_invalid"),
    "customer_details[name]": text("contact.name_invalid", { count: PERSON_NAME_LENGTH_MAX }),
    "customer_details[phone]": text("contact.phone_invalid", { count: PERSON_PHONE_LENGTH_MAX }),
    [address("line1")]: text("address.missing", { name: text("part.address") }),
    [address("city")]: text("address.missing", { name: text("part.city") }),
    [address("state")]: text("address.missing", { name: text("part.state_or_region") }),
    [address("postal_code")]: text("address.missing", { name: text("part.postal") }),
    [address("country")]: text("address.country_missing"),
    checkout_session_unexpected_state: text("expired.title") + stop + text("failure.not_charged"),
    payment_intent_authentication_failure: text("failure.not_authenticated"),
    processor_unavailable: text("problem.processor_unavailable"),
    processor_not_configured: text("problem.processor_missing"),
    idempotency_key_in_use: text("problem.in_progress"),
    internal_error: text("problem.unavailable"),
    rate_limit_exceeded: text("problem.unavailable"),
    service_unavailable: text("problem.unavailable"),
    unreachable: text("problem.unreachable"),
    other: text("problem.other")
  }
}

export const layer = Layer.mergeAll(
  Layer.empty,
  ...PAGE_LANGUAGES.filter((language) => language !== "en").map((language) =>
    Assets.stable(
      Assets.jsonOf(`checkout.${language}`, textsIn(new Translation(language, language))),
      `/checkout.${language}.json`
    )
  )
)
