/**
 * The retention of unpaid test payments (semantics storage.unpaid): a pass deletes all of them that were last changed
 * before a time, whatever has happened to them, and nothing else; no text of theirs is left in the journal, which is
 * whole, and the views still follow from it.
 */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Redacted, References } from "effect"
import type { CheckoutSession } from "../../../src/domain/CheckoutSession.ts"
import type { PaymentIntent } from "../../../src/domain/PaymentIntent.ts"
import { Accounts, runOnce } from "../../../src/engine/Accounts.ts"
import { Transaction } from "../../../src/engine/actor/Transaction.ts"
import { ErasureStore, type ErasureStoreShape } from "../../../src/engine/Erasures.ts"
import type { Document } from "../../../src/engine/log/Document.ts"
import { StorageFailure } from "../../../src/engine/log/Journal.ts"
import { Placement } from "../../../src/engine/process/Placement.ts"
import * as CheckoutSessions from "../../../src/payments/lifecycles/CheckoutSessions.ts"
import { CHARGE, PAYMENT_INTENT, REFUND } from "../../../src/payments/shared/Documents.ts"
import { KINDS } from "../../../src/payments/Formats.ts"
import * as PaymentIntents from "../../../src/payments/lifecycles/PaymentIntents.ts"
import * as PaymentNotes from "../../../src/payments/lifecycles/PaymentNotes.ts"
import * as Products from "../../../src/payments/lifecycles/Products.ts"
import * as UnpaidTests from "../../../src/payments/erasure/UnpaidTests.ts"
import * as Harness from "../../engine/Harness.ts"
import * as PostgresStorage from "../../engine/PostgresStorage.ts"
import * as Toy from "../../engine/Toy.ts"
import { ACCOUNTS, agrees, configured, Payments, start } from "../../models/Tallies.ts"
import { Random, Seed } from "../../support/Random.ts"

const KEY = Redacted.make(new Uint8Array(32).fill(3))
const ACCOUNT = ACCOUNTS[0]!
const LIVE = ACCOUNT.replace(":test", ":live")
const UNPAID = ["canceled", "requires_action", "requires_confirmation", "requires_payment_method"]

/** Makes the pass over the accounts of an engine; some replacements of records fail. */
const passOf = (
  engine: Harness.RunningEngine,
  storage: Harness.Storage,
  store: ErasureStoreShape,
  fails: () => boolean = () => false
) =>
  UnpaidTests.make(KEY).pipe(
    Effect.map(
      (pass) => (before: number) =>
        Effect.andThen(engine.projector.drained, Effect.orDie(pass(before, (statement) => statement)))
    ),
    Effect.provideService(ErasureStore, {
      ...store,
      replace: (account, replacement) =>
        fails()
          ? Effect.fail(new StorageFailure({ cause: "refused by the test" }))
          : store.replace(account, replacement)
    }),
    Effect.provideService(Accounts, engine.accounts),
    Effect.provideService(Placement, engine.placement),
    Effect.provideContext(storage),
    Effect.provide(Harness.formatsOf(KINDS))
  )

const allOf = Effect.fnUntraced(function* (engine: Harness.RunningEngine, account: string) {
  const kinds = [PAYMENT_INTENT, CHARGE, REFUND]
  return (yield* Effect.forEach(kinds, ({ name }) =>
    Harness.allDocuments(engine, account, "older", 100, name)
  )).flat() as ReadonlyArray<unknown> as ReadonlyArray<Document<PaymentIntent>>
})

/** The time of a payment's last change, with its charges and refunds. */
const lastChange = (engine: Harness.RunningEngine, account: string, id: string) =>
  Effect.map(
    Effect.orDie(engine.accounts.history(account, { ids: [id], labels: { payment_intent: id }, limit: 1 })),
    ({ entries }) => entries[0]!.at
  )

/** The texts of all records. */
const journalText = (database: PostgresStorage.PostgresStorage) =>
  Effect.map(database.readRows<{ text: string }>("SELECT encode(record, 'escape') AS text FROM journal"), (rows) =>
    rows.map(({ text }) => text).join("\n")
  )

const paymentOf = ({ value }: Document<PaymentIntent>): string =>
  (value as unknown as { readonly payment_intent?: string }).payment_intent ?? value.id

describe("the retention of unpaid test payments", () => {
  it.live.prop(
    "deletes those that were last changed before a time, after any history, and leaves the others as they are",
    { seed: Seed },
    ({ seed }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const random = new Random(seed)
          const database = yield* PostgresStorage.make
          const storage = yield* database.connect("engine")
          const store = yield* Effect.provideContext(ErasureStore, yield* database.erasures)
          const engine = yield* start(storage)
          const payments = new Payments(random)
          for (let round = 0; round < 4; round++) yield* payments.goOn(engine, 5 + random.below(20))
          yield* payments.end(engine)
          yield* agrees(engine)
          const documents = new Map<string, ReadonlyArray<Document<PaymentIntent>>>()
          const changes = new Map<string, number>()
          for (const account of ACCOUNTS) {
            const found = yield* allOf(engine, account)
            documents.set(account, found)
            for (const id of new Set(found.map(paymentOf))) changes.set(id, yield* lastChange(engine, account, id))
          }
          const before = random.pick([...changes.values(), 0, Number.MAX_SAFE_INTEGER]) + random.below(2)
          let chance = 0.5
          const pass = yield* passOf(engine, storage, store, () => random.chance(chance))
          for (let times = 0; times < 2; times++) {
            yield* Effect.provideService(pass(Math.min(before, 2 ** 42)), References.MinimumLogLevel, "None")
            yield* Effect.provideService(Harness.verified(storage, KINDS), References.MinimumLogLevel, "None")
            chance = 0
          }
          const text = yield* journalText(database)
          for (const [account, all] of documents) {
            const isGone = ({ value }: Document<PaymentIntent>) =>
              value.object === "payment_intent" && UNPAID.includes(value.status) && changes.get(value.id)! < before
            const gone = new Set(all.filter(isGone).map(({ id }) => id))
            const kept = all.filter((document) => !gone.has(paymentOf(document)))
            const left = yield* allOf(engine, account)
            assert.deepStrictEqual(
              left.map(({ json }) => json),
              kept.map(({ json }) => json)
            )
            const { events } = yield* Effect.orDie(engine.accounts.events(account, { limit: 10_000 }))
            for (const { id, value } of all.filter(isGone)) {
              assert.isTrue((yield* engine.accounts.read(account, id))?.deleted)
              assert.notInclude(text, value.client_secret)
              assert.isFalse(events.some(({ object }) => object.includes(id)))
            }
            for (const { value } of kept) {
              if (value.object === "payment_intent") assert.include(text, value.client_secret)
            }
          }
          const numbers = yield* agrees(engine)
          yield* engine.stop
          yield* Harness.rebuilt(storage, KINDS)
          yield* Harness.verified(storage, KINDS)
          const anew = yield* start(storage)
          assert.deepStrictEqual(yield* agrees(anew), numbers)
          yield* anew.stop
        })
      ),
    { arbitrary: { runs: 12, maxShrinks: 3 } }
  )

  it.live("takes sessions and notes along, waits for webhooks, and touches nothing live", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const database = yield* PostgresStorage.make
        const storage = yield* database.connect("engine")
        const store = yield* Effect.provideContext(ErasureStore, yield* database.erasures)
        const engine = yield* start(storage)
        const run = <A, E>(command: Parameters<typeof configured<A, E>>[0], account = ACCOUNT) =>
          engine.accounts.run(account, configured(command))
        const pass = yield* passOf(engine, storage, store)
        const cancel = ({ id }: { readonly id: string }, account?: string) =>
          run(PaymentIntents.cancel(id, {}), account)
        const open = (account?: string) =>
          Effect.map(
            run(PaymentIntents.create({ amount: 2000, currency: "usd" }), account),
            (created) => (created as unknown as { readonly success: PaymentIntent }).success
          )
        const isDeleted = (id: string, account = ACCOUNT) =>
          Effect.map(engine.accounts.read(account, id), (entry) => entry?.deleted === true)

        const { id: product } = yield* run(Products.create({ name: "T-shirt" }))
        const sessionOf = () =>
          run(
            CheckoutSessions.create({
              mode: "payment",
              success_url: "https://shop.example/",
              line_items: [{ price_data: { currency: "usd", product, unit_amount: 500 }, quantity: 1 }]
            })
          )
        const [expired, stillOpen] = [yield* sessionOf(), yield* sessionOf()] as [CheckoutSession, CheckoutSession]
        yield* run(CheckoutSessions.expire(expired.id))
        const noted = yield* open()
        yield* run(
          PaymentNotes.add({ id: "per_1", email: "a@example.com" }, noted.id, "a note of which nothing is left")
        )
        yield* cancel(noted)
        const live = yield* open(LIVE)
        yield* cancel(live, LIVE)
        yield* run(Effect.map(Transaction, (transaction) => transaction.subscribe("we_1", ["payment_intent.canceled"])))
        const announced = yield* open()
        const answered = yield* runOnce(engine.accounts, ACCOUNT, Toy.request("key"), () =>
          configured(
            Effect.map(Effect.orDie(PaymentIntents.cancel(announced.id, {})), (answer) => ({
              kept: { status: 200, body: JSON.stringify(answer) },
              replayOf: null
            }))
          )
        )
        assert.include(JSON.stringify(answered), announced.client_secret)

        const now = yield* Clock.currentTimeMillis
        yield* pass(now + 1000)
        assert.deepStrictEqual(
          yield* Effect.forEach([expired.id, expired.payment_intent!, noted.id, announced.id, stillOpen.id], (id) =>
            isDeleted(id)
          ),
          [true, true, true, false, false]
        )
        assert.isFalse(yield* isDeleted(live.id, LIVE))
        const text = yield* journalText(database)
        for (const gone of ["a note of which nothing is left", expired.url!, noted.client_secret]) {
          assert.notInclude(text, gone)
        }
        for (const kept of [announced, live]) assert.include(text, kept.client_secret)
        yield* Harness.verified(storage, KINDS)

        const { deliveries } = yield* engine.accounts.deliveries(ACCOUNT, { destination: "we_1", limit: 9 })
        assert.lengthOf(deliveries, 1)
        const { destination, event, eventVersion, id } = deliveries[0]!
        const outcome = { startedAt: now, durationMillis: 1, status: 200, error: null, next: "delivered" } as const
        const sent = (id: string) => engine.deliveries.report(ACCOUNT, [{ id, destination, attempt: 1, ...outcome }])
        yield* sent(id)
        // Sent once more: its delivery is in a record that changes no document.
        yield* run(
          Effect.map(Transaction, (transaction) => transaction.deliver({ id: event, version: eventVersion }, "we_1"))
        )
        yield* pass(now + 60_000)
        assert.isFalse(yield* isDeleted(announced.id))
        const again = yield* engine.accounts.deliveries(ACCOUNT, { destination, limit: 1 })
        yield* sent(again.deliveries[0]!.id)
        yield* pass(now + 60_000)
        assert.isTrue(yield* isDeleted(announced.id))
        assert.notInclude(yield* journalText(database), announced.client_secret)
        assert.isUndefined(yield* engine.accounts.event(ACCOUNT, event))
        const left = yield* engine.accounts.deliveries(ACCOUNT, { destination, limit: 9 })
        assert.deepStrictEqual(left.deliveries, [])
        const replayed = yield* runOnce(engine.accounts, ACCOUNT, Toy.request("key"), () =>
          Toy.command({ op: "look", slot: "a" })
        )
        assert.include(JSON.stringify(replayed), announced.id)
        yield* engine.stop
        yield* Harness.verified(storage, KINDS)
        yield* Harness.rebuilt(storage, KINDS)
        yield* Harness.verified(storage, KINDS)
        assert.deepStrictEqual(yield* Harness.viewsOf(storage).timersNamed("data.forget", null, 2 ** 50), [])
      })
    )
  )
})
