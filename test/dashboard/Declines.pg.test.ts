/**
 * Finding payments by decline reason (semantics dashboard.payments) equals a filter over all payments, page by page and
 * in any history: on Postgres, after an upgrade from a Till without this index, after further payments, and after the
 * views were rebuilt.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { isDeepStrictEqual } from "node:util"
import { readPaymentQuery, findPayments } from "../../src/dashboard/payments/PaymentSearch.ts"
import { DeclineCode } from "../../src/domain/Cards.ts"
import type { PaymentIntent } from "../../src/domain/PaymentIntent.ts"
import { Accounts } from "../../src/engine/Accounts.ts"
import type { Formatted } from "../../src/engine/views/DocumentFormats.ts"
import { remakeOutdated } from "../../src/engine/verify/Verify.ts"
import { PAYMENT_INTENT } from "../../src/payments/shared/Documents.ts"
import { KINDS } from "../../src/payments/Formats.ts"
import { searchable, SEARCHED_PAYMENT_INTENT } from "../../src/payments/shared/Search.ts"
import type { RunningEngine } from "../engine/Harness.ts"
import * as Harness from "../engine/Harness.ts"
import * as PostgresStorage from "../engine/PostgresStorage.ts"
import { ACCOUNTS, Payments, start } from "../models/Tallies.ts"
import { Random, Seed } from "../support/Random.ts"

const KINDS_WITHOUT_DECLINES: ReadonlyArray<Formatted> = KINDS.map((kind) =>
  kind === PAYMENT_INTENT ? { ...PAYMENT_INTENT, search: searchable(SEARCHED_PAYMENT_INTENT) } : kind
)

/** All pages of a query, newest first. */
const found = Effect.fnUntraced(function* (account: string, query: Readonly<Record<string, string>>, limit: number) {
  const accounts = yield* Accounts
  const asked = yield* readPaymentQuery({ account, query: new URLSearchParams(query), zone: "UTC" })
  return yield* Harness.walk("older", limit, ({ limit, ...cursor }) =>
    Effect.provideService(findPayments(account, asked, { cursor, limit }), Accounts, accounts)
  )
}, Effect.orDie)

const all = (engine: RunningEngine, account: string) =>
  Effect.map(Harness.allDocuments(engine, account, "older", 100, PAYMENT_INTENT.name), (documents) =>
    documents.map(({ value }) => value as unknown as PaymentIntent)
  )

const agree = Effect.fnUntraced(function* (engine: RunningEngine, account: string, random: Random) {
  const currency = random.pick(["", "usd", "eur"])
  const query = random.pick(["", 'currency:"usd" OR currency:"jpy"', "amount<60 OR amount>90", "amount>70"])
  const says = ({ amount, currency }: PaymentIntent): boolean =>
    query.includes("jpy")
      ? currency !== "eur"
      : query.includes("<")
        ? amount < 60 || amount > 90
        : query === "" || amount > 70
  for (const decline of DeclineCode.literals) {
    const limit = 1 + random.below(8)
    for (;;) {
      const before = yield* all(engine, account)
      const shown = yield* found(account, { decline, currency, query }, limit).pipe(
        Effect.provideService(Accounts, engine.accounts)
      )
      // Payments settle by timers, so the comparison is repeated if something has changed.
      if (!isDeepStrictEqual(before, yield* all(engine, account))) continue
      const expected = before.filter(
        (payment) =>
          payment.last_payment_error?.decline_code === decline &&
          (currency === "" || payment.currency === currency) &&
          says(payment)
      )
      assert.deepStrictEqual(shown, expected, `${decline} ${currency} ${query}`)
      break
    }
  }
})

const agreeAll = (engine: RunningEngine, random: Random) =>
  Effect.forEach(ACCOUNTS, (account) => agree(engine, account, random), { discard: true })

describe("payments that were declined", () => {
  it.live.prop(
    "are found by the reason as a filter over all payments would, also after an upgrade that adds them",
    { seed: Seed },
    ({ seed }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const random = new Random(seed)
          const made = new Payments(random)
          const database = yield* PostgresStorage.make
          yield* Effect.scoped(
            Effect.gen(function* () {
              const storage = yield* database.connect("before")
              const engine = yield* start(storage)
              for (let round = 0; round < 6; round++) yield* made.goOn(engine, 20)
              yield* engine.stop
              yield* Harness.rebuilt(storage, KINDS_WITHOUT_DECLINES)
              yield* Harness.verified(storage, KINDS_WITHOUT_DECLINES)
            })
          )
          yield* database.outdate
          const storage = yield* database.connect("after")
          yield* Harness.projecting(storage, remakeOutdated, KINDS)
          const upgraded = yield* start(storage)
          for (let round = 0; round < 3; round++) {
            yield* agreeAll(upgraded, random)
            yield* made.goOn(upgraded, 20)
          }
          yield* agreeAll(upgraded, random)
          yield* upgraded.stop
          yield* Harness.verified(storage, KINDS)
          yield* Harness.rebuilt(storage, KINDS)
          yield* Harness.verified(storage, KINDS)
          const again = yield* start(storage)
          yield* agreeAll(again, random)
          yield* again.stop
        })
      ),
    { arbitrary: { runs: 4, maxShrinks: 3 } }
  )
})
