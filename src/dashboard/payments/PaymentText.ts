/**
 * Payments by a text as people type it (semantics dashboard.search): words, an amount, the last digits of a card, the
 * payer. A text may have several meanings, each of which is an alternative with a rank.
 */
import { Effect } from "effect"
import { currenciesWith, decimalsOf } from "../../domain/Money.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import { TEXT_WORDS_MAX, wordsIn } from "../../domain/SearchWords.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import * as Amounts from "../../html/assets/amount.js"
import { BRAND_NAMES } from "../../html/CardBrands.ts"
import { CUSTOMER, PAYMENT_INTENT } from "../../payments/shared/Documents.ts"
import {
  allOf,
  amongCondition,
  anyOf,
  type Condition,
  FILTERED_PAYMENT_INTENT,
  hasWholeWords,
  queryCondition,
  SEARCHED_CUSTOMER,
  wordsCondition
} from "../../payments/shared/Search.ts"
import { listObjects, searchObjects } from "../frame/Queries.ts"

/** Customers whose payments a text or an email finds, the newest ones. */
const CUSTOMERS_MAX = 19

export const isEmail = (text: string): boolean => /^[^\s"'@]+@[^\s"'@]+$/.test(text)

const is = (field: string, value: string | number): Condition<PaymentIntent> =>
  queryCondition(
    { connective: "AND", clauses: [{ negated: false, field, operator: ":", value }] },
    FILTERED_PAYMENT_INTENT
  )

const hasCurrencyOf = (currencies: ReadonlyArray<string>): Condition<PaymentIntent> =>
  amongCondition("currency", currencies, FILTERED_PAYMENT_INTENT)

const ofCustomers = (customers: ReadonlyArray<{ readonly id: string }>): ReadonlyArray<Condition<PaymentIntent>> => {
  const ids = customers.map(({ id }) => id)
  return ids.length === 0 ? [] : [amongCondition("customer", ids, FILTERED_PAYMENT_INTENT)]
}

/** Payments of guests and customers with an email, ignoring case. */
export const payerCondition = Effect.fnUntraced(function* (account: AccountId, email: string) {
  const labels = { email: email.toLowerCase() }
  const { rows } = yield* listObjects(account, CUSTOMER, { labels, limit: CUSTOMERS_MAX })
  return anyOf([is("payer_email", email), ...ofCustomers(rows)])
})

/** Payments of the customers with these words; none for numbers alone, which are parts of too many emails. */
const withPayer = Effect.fnUntraced(function* (account: AccountId, words: ReadonlyArray<string>) {
  if (words.every((word) => /^\p{N}+$/u.test(word))) return []
  const { rows } = yield* searchObjects(account, CUSTOMER, wordsCondition(words, SEARCHED_CUSTOMER), {
    limit: CUSTOMERS_MAX
  })
  return ofCustomers(rows)
})

/** Currencies by the signs that people type, beside the codes. A sign of a dollar stands for all dollars. */
const SIGNS: Readonly<Record<string, string>> = {
  "€": "eur",
  "£": "gbp",
  "¥": "jpy cny",
  "₹": "inr",
  "₩": "krw",
  "₺": "try",
  "₽": "rub",
  "₴": "uah",
  "₪": "ils",
  "₫": "vnd",
  "₱": "php",
  "₦": "ngn",
  "฿": "thb",
  fr: "chf",
  ft: "huf",
  kč: "czk",
  kr: "dkk isk nok sek",
  zł: "pln"
}

/** An amount in a text. */
interface AskedAmount {
  /** The amount in minor units, by the decimal digits of currencies. */
  readonly minor: ReadonlyMap<number, number>
  /** Null for any currency with these digits. */
  readonly currencies: ReadonlyArray<string> | null
  /** Whether it can hardly be anything but an amount: it has a currency or decimals. */
  readonly isExplicit: boolean
}

const CODES: ReadonlySet<string> = new Set(Intl.supportedValuesOf("currency").map((code) => code.toLowerCase()))

/** Returns the currencies of a sign or code, null for any, and undefined for other texts. */
const currenciesOf = (sign: string): ReadonlyArray<string> | null | undefined => {
  const name = sign.toLowerCase().replace(/\.$/, "")
  if (name === "" || /^[a-z]{0,3}\$$/.test(name)) return null
  return SIGNS[name]?.split(" ") ?? (CODES.has(name) ? [name] : undefined)
}

/** Longer texts are no amounts. */
const AMOUNT_LENGTH_MAX = 40

/** Reads an amount with or without a currency: `54.32`, `54,32 €`, `USD 1,200`. */
const amountIn = (text: string): AskedAmount | undefined => {
  if (text.length > AMOUNT_LENGTH_MAX || !/\d/.test(text)) return undefined
  const [start, end] = [text.search(/\d/), text.search(/\d\D*$/) + 1]
  const number = text.slice(start, end)
  const signs = [text.slice(0, start), text.slice(end)].map((sign) => sign.trim())
  const sign = signs.join("")
  const currencies = signs.includes("") ? currenciesOf(sign) : undefined
  if (currencies === undefined) return undefined
  const decimals = currencies?.map(decimalsOf) ?? (sign === "" ? [2, 0, 3] : [2])
  const minor = new Map<number, number>()
  for (const count of decimals) {
    const read = Amounts.readAmount(number, { currency: "usd", decimals: count, locale: "en" })
    if (read.problem === undefined && Number.isSafeInteger(read.minor)) minor.set(count, read.minor)
  }
  return minor.size === 0 ? undefined : { minor, currencies, isExplicit: sign !== "" || /\D/.test(number) }
}

/** The currencies with a number of decimal digits. */
const withDecimals = (decimals: number): Condition<PaymentIntent> => {
  if (decimals !== 2) return hasCurrencyOf(currenciesWith(decimals))
  const others = [0, 3, 4].flatMap(currenciesWith)
  const clauses = others.map((value) => ({ negated: true, field: "currency", operator: ":" as const, value }))
  return queryCondition({ connective: "AND", clauses }, FILTERED_PAYMENT_INTENT)
}

const amountCondition = ({ currencies, minor }: AskedAmount): Condition<PaymentIntent> =>
  anyOf(
    [...minor].map(([decimals, value]) => {
      const among = currencies?.filter((currency) => decimalsOf(currency) === decimals)
      return allOf(is("amount", value), among === undefined ? withDecimals(decimals) : hasCurrencyOf(among))
    })
  )

/** A part of a text with a meaning of its own, and the words around it. */
interface Part {
  readonly text: string
  readonly rest: ReadonlyArray<string>
}

/** Returns the parts of a text that may be an amount or the digits of a card: words, and pairs of words. */
const partsOf = (text: string): ReadonlyArray<Part> => {
  const chunks = text.split(/\s+/u).slice(0, TEXT_WORDS_MAX)
  return [2, 1].flatMap((length) =>
    chunks.slice(length - 1).map((_, i) => ({
      text: chunks.slice(i, i + length).join(" "),
      rest: wordsIn(chunks.toSpliced(i, length).join(" "))
    }))
  )
}

/** The last digits of a card, as lists show them or alone. */
const LAST_DIGITS = /^[•*.…·]*\s?(\d{4})$/u

/** Words of the names of brands, which stand before the digits of a card. */
const BRAND_WORDS: ReadonlySet<string> = new Set(["amex", ...BRAND_NAMES].flatMap(wordsIn))

/** One meaning of a text. */
export interface Alternative {
  readonly condition: Condition<PaymentIntent>
  /** The rank of a payment that matches, 0 for the best. */
  readonly rankOf: (payment: PaymentIntent) => number
}

const ranked = (rank: number, conditions: ReadonlyArray<Condition<PaymentIntent>>): ReadonlyArray<Alternative> =>
  conditions.map((condition) => ({ condition, rankOf: () => rank }))

/** The first part of a text that is an amount beyond doubt, or the digits of a card, beside words about the payer. */
const mixed = Effect.fnUntraced(function* (account: AccountId, text: string) {
  const parts = partsOf(text).filter(({ rest }) => rest.length > 0)
  for (const { rest, text: part } of parts) {
    const amount = amountIn(part)
    const digits = LAST_DIGITS.exec(part)?.[1]
    if (amount?.isExplicit !== true && digits === undefined) continue
    if (digits !== undefined && rest.every((word) => BRAND_WORDS.has(word))) return [is("last4", digits)]
    const payers = yield* withPayer(account, rest)
    // Not by other words of payments: `Order 4242` would find each order that was paid with this card.
    return digits === undefined
      ? [wordsCondition(rest, FILTERED_PAYMENT_INTENT), ...payers].map((other) =>
          allOf(amountCondition(amount!), other)
        )
      : payers.map((other) => allOf(is("last4", digits), other))
  }
  return []
})

/** Payments of an email, or, if there are none, those with its words: a part of an email, or one in metadata. */
const byEmail = Effect.fnUntraced(function* (account: AccountId, email: string) {
  const condition = yield* payerCondition(account, email)
  const { rows } = yield* searchObjects(account, PAYMENT_INTENT, condition, { limit: 1 })
  return rows.length > 0 ? ranked(0, [condition]) : ranked(1, [wordsCondition(wordsIn(email), FILTERED_PAYMENT_INTENT)])
})

/** Returns the meanings of a text; none for a text without letters and digits. */
export const alternativesOf = Effect.fnUntraced(function* (account: AccountId, text: string) {
  if (isEmail(text)) return yield* byEmail(account, text)
  const words = wordsIn(text)
  if (words.length === 0) return []
  const amount = amountIn(text)
  const digits = LAST_DIGITS.exec(text)?.[1]
  const alternatives: ReadonlyArray<Alternative> = [
    {
      condition: wordsCondition(words, FILTERED_PAYMENT_INTENT),
      rankOf: (payment) => (hasWholeWords(words, FILTERED_PAYMENT_INTENT, payment) ? 0 : 1)
    },
    ...ranked(1, yield* withPayer(account, words)),
    ...ranked(2, digits === undefined ? [] : [is("last4", digits)]),
    ...ranked(amount?.isExplicit === true ? 0 : 3, amount === undefined ? [] : [amountCondition(amount)]),
    ...ranked(0, amount === undefined && digits === undefined ? yield* mixed(account, text) : [])
  ]
  return alternatives
})
