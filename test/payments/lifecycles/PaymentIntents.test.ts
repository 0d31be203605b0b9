/** PaymentIntents: references to other objects, live mode, publishable keys, and the form of the output. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Redacted, Result } from "effect"
import type { CreatePaymentIntent } from "../../../src/domain/PaymentIntent.ts"
import { publishable } from "../../../src/domain/Publishable.ts"
import { Transaction } from "../../../src/engine/actor/Transaction.ts"
import * as Customers from "../../../src/payments/lifecycles/Customers.ts"
import { CHARGE, PAYMENT_INTENT, PAYMENT_METHOD } from "../../../src/payments/shared/Documents.ts"
import * as PaymentIntents from "../../../src/payments/lifecycles/PaymentIntents.ts"
import * as TestHelpers from "../../../src/payments/TestHelpers.ts"
import { fingerprint, type WithoutCardData } from "../../../src/payments/lifecycles/PaymentMethods.ts"
import { tokenized } from "../../support/fixtures/CardData.ts"
import { MemoryAccount } from "../../support/MemoryAccount.ts"
import { accepted, declined } from "../../support/Outcomes.ts"

const LIVE = "mer_000000000000000000000000:live"

const cardData = (number: string, exp_year = 2034) =>
  tokenized({ type: "card", card: { number, exp_month: 12, exp_year, cvc: "123" } })

type Creation = WithoutCardData<CreatePaymentIntent>

const created = (parameters: Partial<Creation>) =>
  PaymentIntents.create({ amount: 2000, currency: "usd", ...parameters })

const createIn = (account: MemoryAccount, parameters: Partial<Creation> = {}) =>
  accepted(account.run(created(parameters)))

/** The error of a command, as plain data. */
const failure = <A, E>(effect: Effect.Effect<A, E>) => Effect.map(Effect.flip(effect), (error) => ({ ...error }))

describe("PaymentIntents.create", () => {
  it.effect("fills in the fields that were not sent", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const { charges, client_secret, id, ...rest } = yield* createIn(account, {
        currency: "EUR",
        customer: "",
        description: "",
        payment_method: null,
        metadata: { order: "7", empty: "", none: null }
      })
      assert.match(id, /^pi_[0-9A-Za-z]{24}$/u)
      assert.match(client_secret, new RegExp(`^${id}_secret_[0-9A-Za-z]{24}$`, "u"))
      const url = `/v1/charges?payment_intent=${id}`
      assert.deepStrictEqual(charges, { object: "list", data: [], has_more: false, url, next_cursor: null })
      assert.deepStrictEqual(rest, {
        object: "payment_intent",
        amount: 2000,
        currency: "eur",
        status: "requires_payment_method",
        created: account.now / 1000,
        livemode: false,
        amount_received: 0,
        amount_capturable: 0,
        capture_method: "automatic",
        confirmation_method: "automatic",
        customer: null,
        setup_future_usage: null,
        payment_method: null,
        description: null,
        statement_descriptor: null,
        application_fee_amount: null,
        metadata: { order: "7" },
        merchant_id: "mer_000000000000000000000000",
        next_action: null,
        latest_charge: null,
        canceled_at: null,
        cancellation_reason: null
      })
    })
  )

  it.effect("keeps a PaymentIntent whose confirmation declines", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const decline = yield* declined(account.run(created({ payment_method: "pm_card_declined", confirm: true })))
      const { id } = decline.paymentIntent
      assert.deepStrictEqual(account.value(PAYMENT_INTENT, id), decline.paymentIntent)
      assert.deepStrictEqual(decline.paymentIntent.last_payment_error, {
        type: "payment_error",
        code: "card_declined",
        message: "Your card was declined.",
        decline_code: "generic_decline",
        charge: decline.charge,
        payment_method: "pm_card_declined"
      })
    })
  )

  const refusals: ReadonlyArray<readonly [string, Partial<Creation>, object]> = [
    [
      "an unknown customer",
      { customer: "cus_x" },
      { _tag: "ResourceMissing", kind: "Customer", id: "cus_x", param: "customer" }
    ],
    [
      "an unknown payment method",
      { payment_method: "pm_x" },
      { _tag: "ResourceMissing", kind: "PaymentMethod", id: "pm_x", param: "payment_method" }
    ],
    [
      "an amount above the cap",
      { amount: 1_000_000_000_000 },
      { _tag: "AmountTooLarge", param: "amount", max: 999_999_999_999 }
    ],
    [
      "a payment method and data for one",
      { payment_method: "pm_card_visa", payment_method_data: cardData("4242424242424242"), confirm: true },
      { _tag: "ParametersExclusive", first: "payment_method", second: "payment_method_data" }
    ],
    [
      "a return_url without confirmation",
      { return_url: "https://shop.example" },
      { _tag: "ParameterInvalid", param: "return_url", rule: "absent unless `confirm` is true" }
    ],
    ["confirmation without a payment method", { confirm: true }, { _tag: "PaymentMethodRequired" }]
  ]
  for (const [name, parameters, expected] of refusals) {
    it.effect(`refuses ${name}, and writes nothing`, () =>
      Effect.gen(function* () {
        const account = new MemoryAccount()
        const error: object = yield* failure(createIn(account, parameters))
        assert.deepStrictEqual({ ...error }, expected)
        assert.strictEqual(account.text, new MemoryAccount().text)
      })
    )
  }

  it.effect("accepts only the currencies of the installation, in either case", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount(undefined, { currencies: new Set(["usd"]) })
      assert.strictEqual((yield* createIn(account, { currency: "uSd" })).currency, "usd")
      const error = yield* failure(createIn(account, { currency: "eur" }))
      assert.include(error, { param: "currency", rule: "a valid three-letter ISO currency code" })
    })
  )
})

describe("PaymentIntents.update", () => {
  it.effect("finds the PaymentIntent before the objects that the request names", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const { id } = yield* createIn(account)
      const update = (id: string, customer: string) => failure(account.run(PaymentIntents.update(id, { customer })))
      assert.include(yield* update("pi_x", "cus_x"), { param: "id", kind: "PaymentIntent" })
      assert.include(yield* update(id, "cus_x"), { param: "customer", kind: "Customer" })
    })
  )

  it.effect("unsets with null and with the empty string", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const customer = (yield* account.run(Customers.create({}))).id
      const { id } = yield* createIn(account, { customer, description: "d", metadata: { a: "1", b: "2" } })
      const update = (parameters: Parameters<typeof PaymentIntents.update>[1]) =>
        account.run(PaymentIntents.update(id, parameters))
      assert.strictEqual((yield* update({})).customer, customer)
      const cleared = yield* update({ customer: null, description: "", metadata: { a: null } })
      assert.deepInclude(cleared, { customer: null, description: null, metadata: { b: "2" } })
      assert.deepStrictEqual((yield* update({ metadata: "" })).metadata, {})
    })
  )

  it.effect("changes each of the terms, and no other", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const customer = (yield* account.run(Customers.create({}))).id
      let before = yield* createIn(account, { payment_method: "pm_card_visa" })
      const changes = [
        [{ amount: 1 }, { amount: 1 }],
        [{ currency: "EUR" }, { currency: "eur" }],
        [{ customer }, { customer }],
        [{ capture_method: "manual" }, { capture_method: "manual" }],
        [{ description: "d" }, { description: "d" }],
        [{ statement_descriptor: "s" }, { statement_descriptor: "s" }],
        [{ statement_descriptor: "" }, { statement_descriptor: null }]
      ] as const
      for (const [parameters, changed] of changes) {
        const after = yield* account.run(PaymentIntents.update(before.id, parameters))
        assert.deepStrictEqual(after, { ...before, ...changed })
        assert.deepStrictEqual(account.value(PAYMENT_INTENT, before.id), after)
        before = after
      }
    })
  )

  const refused: ReadonlyArray<readonly [string, Parameters<typeof PaymentIntents.update>[1], object]> = [
    ["an amount above the cap", { amount: 1_000_000_000_000 }, { param: "amount", max: 999_999_999_999 }],
    ["a currency that the installation does not take", { currency: "eur" }, { param: "currency" }]
  ]
  for (const [name, parameters, expected] of refused) {
    it.effect(`refuses ${name}, and changes nothing`, () =>
      Effect.gen(function* () {
        const account = new MemoryAccount(undefined, { currencies: new Set(["usd"]) })
        const { id } = yield* createIn(account)
        const before = account.text
        assert.deepInclude(yield* failure(account.run(PaymentIntents.update(id, parameters))), expected)
        assert.strictEqual(account.text, before)
      })
    )
  }

  it.effect("drops a pending action with new terms, even if they are the old ones", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const { id } = yield* createIn(account, { payment_method: "pm_card_3ds_required", confirm: true })
      const updated = yield* account.run(PaymentIntents.update(id, { amount: 2000 }))
      assert.include(updated, { status: "requires_confirmation", next_action: null })
    })
  )
})

describe("PaymentIntents.confirm", () => {
  const backTo: ReadonlyArray<readonly [sent: string | null, return_url: string | null]> = [
    ["https://shop.example/back", "https://shop.example/back"],
    ["", null],
    [null, null]
  ]
  it.effect.each(backTo)("leads the payer to the authentication page: %j", ([sent, return_url]) =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const payment_method = "pm_card_3ds_required"
      const atOnce = yield* createIn(account, { payment_method, confirm: true, return_url: sent })
      const { id } = yield* createIn(account, { payment_method })
      const confirmed = yield* accepted(account.run(PaymentIntents.confirm(id, { return_url: sent })))
      for (const challenged of [atOnce, confirmed]) {
        const url = `https://till.example/authenticate/${challenged.id}?client_secret=${challenged.client_secret}`
        const redirect_to_url = { url, return_url }
        assert.deepStrictEqual(challenged.next_action, { type: "redirect_to_url", redirect_to_url })
      }
    })
  )

  it.effect("is told which payment method failed its authentication", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const { id } = yield* createIn(account, { payment_method: "pm_card_3ds_required", confirm: true })
      const failed = yield* accepted(account.run(PaymentIntents.authenticate(id, "failure")))
      assert.deepStrictEqual(failed.last_payment_error, {
        type: "payment_error",
        code: "payment_intent_authentication_failure",
        message: "The customer failed authentication.",
        payment_method: "pm_card_3ds_required"
      })
    })
  )

  it.effect("stores only the permitted data of an inline card", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const billing_details = { name: "Jo", address: { city: "Bern", line2: "" } }
      const data = { ...cardData("4242424242424242"), billing_details, metadata: { a: "1" } }
      const first = yield* createIn(account, { payment_method_data: data, confirm: true })
      const second = yield* createIn(account, { payment_method_data: data, confirm: true })
      const [a, b] = account.all(PAYMENT_METHOD).map(({ value }) => value)
      assert.deepStrictEqual([a!.id, b!.id], [first.payment_method, second.payment_method])
      assert.strictEqual(a!.card.fingerprint, b!.card.fingerprint)
      const { fingerprint: _, ...card } = a!.card
      assert.deepStrictEqual(card, {
        brand: "visa",
        last4: "4242",
        exp_month: 12,
        exp_year: 2034,
        funding: "credit",
        country: "US",
        checks: { cvc_check: "pass" }
      })
      const address = { city: "Bern", country: null, line1: null, line2: null, postal_code: null, state: null }
      const details = { email: null, name: "Jo", phone: null, address }
      assert.deepStrictEqual(a!.billing_details, details)
      assert.deepStrictEqual(account.all(CHARGE)[0]!.value.billing_details, details)
      assert.notMatch(account.text, /4242424242424242|"123"/u)
    })
  )

  it.effect.each(["capture", "cancel"] as const)(
    "payment_intents.holds: a hold that has run out is over for %s",
    (operation) =>
      Effect.gen(function* () {
        const held = { payment_method: "pm_card_visa", capture_method: "manual", confirm: true } as const
        for (const early of [1, 0]) {
          const account = new MemoryAccount()
          const { id } = yield* createIn(account, held)
          const emitted = account.events.length
          yield* account.advance(604_800_000 - early)
          const result = yield* Effect.result(
            operation === "capture"
              ? account.run<object, object>(PaymentIntents.capture(id, {}))
              : account.run<object, object>(PaymentIntents.cancel(id, {}))
          )
          const types = account.events.slice(emitted).map(({ type }) => type)
          const { canceled_at, cancellation_reason, status } = account.value(PAYMENT_INTENT, id)!
          if (early > 0) {
            assert.strictEqual(status, operation === "capture" ? "succeeded" : "canceled")
            assert.notInclude(types, "charge.expired")
            continue
          }
          const refusal = Option.getOrThrow(Result.getFailure(result))
          assert.deepInclude({ ...refusal }, { _tag: "PaymentIntentUnexpectedState", status: "canceled", operation })
          assert.deepStrictEqual([status, cancellation_reason], ["canceled", "automatic"])
          assert.strictEqual(canceled_at, Math.floor(account.now / 1000))
          assert.deepStrictEqual(types, ["charge.expired", "payment_intent.canceled"])
        }
      })
  )

  it.effect("stores the request and the outcome in each charge", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const customer = (yield* account.run(Customers.create({}))).id
      const terms = { currency: "eur", customer, description: "d", metadata: { order: "7" } }
      const capture_method = "manual"
      const held = yield* createIn(account, { ...terms, payment_method: "pm_card_visa", capture_method, confirm: true })
      yield* account.run(created({ ...terms, payment_method: "pm_card_lost_card", confirm: true }))
      const made = account.now / 1000
      account.now += 60_000
      yield* account.run(PaymentIntents.cancel(held.id, {}))
      const released = { status: "succeeded", paid: true, released_at: made + 60 }
      const message = "Your card was declined."
      const failed = { failure_code: "lost_card", failure_message: message, decline_code: "lost_card" }
      const expected = [
        { ...released, failure_code: null, failure_message: null, decline_code: null },
        { ...failed, status: "failed", paid: false, released_at: null }
      ]
      const charges = account.all(CHARGE).map(({ value }) => value)
      assert.lengthOf(charges, 2)
      for (const [index, charge] of charges.entries()) {
        assert.deepInclude<object>(charge, {
          ...terms,
          ...expected[index],
          object: "charge",
          amount: 2000,
          created: made,
          livemode: false,
          amount_captured: 0,
          amount_refunded: 0,
          captured: false,
          refunded: false,
          merchant_id: "mer_000000000000000000000000"
        })
      }
    })
  )

  it.effect("declines a card from the month after its last one", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const data = tokenized({
        type: "card",
        card: { number: "4242424242424242", exp_month: 11, exp_year: 2026 }
      })
      account.now = Date.UTC(2026, 11, 1) - 1
      const paid = yield* createIn(account, { payment_method_data: data, confirm: true })
      assert.strictEqual(paid.status, "succeeded")
      account.now += 1
      const decline = yield* declined(account.run(created({ payment_method_data: data, confirm: true })))
      assert.strictEqual(decline.declineCode, "expired_card")
    })
  )

  it.effect("requires the client secret of publishable keys, and leaves manual confirmation to the server", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const confirm = (id: string, client_secret: string | null, publishableKey: boolean) =>
        account.run(PaymentIntents.confirm(id, { client_secret }, { publishableKey }))
      const open = yield* createIn(account, { payment_method: "pm_card_visa" })
      const manual = yield* createIn(account, { payment_method: "pm_card_visa", confirmation_method: "manual" })
      const tag = <A>(effect: Effect.Effect<A, { readonly _tag: string }>) =>
        Effect.map(Effect.flip(effect), ({ _tag }) => _tag)
      assert.strictEqual(yield* tag(confirm(open.id, null, true)), "SecretKeyRequired")
      assert.strictEqual(yield* tag(confirm(open.id, manual.client_secret, true)), "ResourceMissing")
      assert.strictEqual(yield* tag(confirm(open.id, manual.client_secret, false)), "ResourceMissing")
      assert.strictEqual(yield* tag(confirm(manual.id, manual.client_secret, true)), "SecretKeyRequired")
      assert.include(yield* accepted(confirm(open.id, open.client_secret, true)), { status: "succeeded" })
      assert.include(yield* accepted(confirm(manual.id, null, false)), { status: "succeeded" })
    })
  )

  it.effect("refuses a payment method of another customer", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const first = yield* createIn(account, { payment_method_data: cardData("4242424242424242"), confirm: true })
      const owned = account.all(PAYMENT_METHOD)[0]!
      const owner = { ...owned.value, customer: "cus_owner" }
      yield* account.run(Effect.map(Transaction, (transaction) => transaction.put(PAYMENT_METHOD, owner, owned.hidden)))
      const { id } = yield* createIn(account, { payment_method: first.payment_method })
      assert.include(yield* failure(account.run(PaymentIntents.confirm(id, {}))), { param: "payment_method" })
    })
  )

  it.effect("emits exactly the events that happened, with the objects as they were then", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const paid = yield* createIn(account, { payment_method: "pm_card_visa", confirm: true })
      const shown = account.events.map(({ object, type }) => [type, JSON.parse(object).status])
      assert.deepStrictEqual(shown, [
        ["payment_intent.created", "requires_confirmation"],
        ["charge.succeeded", "succeeded"],
        ["payment_intent.succeeded", "succeeded"]
      ])
      assert.deepStrictEqual(JSON.parse(account.events[2]!.object), JSON.parse(JSON.stringify(paid)))
    })
  )

  it.effect("emits charge.updated with the changes of a cancellation", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const parameters = { payment_method: "pm_card_visa", confirm: true, capture_method: "manual" } as const
      const { id } = yield* createIn(account, parameters)
      yield* account.run(PaymentIntents.cancel(id, { cancellation_reason: null }))
      const event = account.events.find(({ type }) => type === "charge.updated")
      assert.deepStrictEqual(event?.previous, { released_at: null })
      assert.strictEqual(account.value(PAYMENT_INTENT, id)!.canceled_at, account.now / 1000)
    })
  )
})

describe("The fingerprint of a card", () => {
  it("is the same within an account, and unrelated to that of another", () => {
    const config = new MemoryAccount().config
    const number = "4242424242424242"
    const own = fingerprint(config, LIVE, number)
    assert.strictEqual(fingerprint(config, LIVE, number), own)
    assert.notInclude(own, number)
    const others = [
      fingerprint(config, LIVE, "5555555555554444"),
      fingerprint(config, LIVE.replace("live", "test"), number),
      fingerprint(config, LIVE.replace("mer_0", "mer_1"), number),
      fingerprint({ fingerprintKey: Redacted.make(new Uint8Array(32)) }, LIVE, number)
    ]
    assert.strictEqual(new Set([own, ...others]).size, 5)
  })
})

describe("Live mode", () => {
  it.effect("has no test payment methods and, without a processor, accepts no cards", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount(LIVE)
      const missing = yield* failure(createIn(account, { payment_method: "pm_card_visa" }))
      assert.include(missing, { _tag: "ResourceMissing", param: "payment_method" })
      const { id, livemode } = yield* createIn(account)
      assert.isTrue(livemode)
      const confirm = PaymentIntents.confirm(id, { payment_method_data: { type: "card", card: null } })
      assert.include(yield* failure(account.run(confirm)), { _tag: "ProcessorNotConfigured" })
      assert.deepStrictEqual(account.all(PAYMENT_METHOD), [])
    })
  )

  it.effect("accepts the cards of the simulator if that is its processor, but no test helpers", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount(LIVE, { liveProcessor: "simulator" })
      const payment_method_data = cardData("4242424242424242")
      assert.include(yield* createIn(account, { payment_method_data, confirm: true }), { status: "succeeded" })
      const challenged = yield* createIn(account, { payment_method_data: cardData("4000000000003220"), confirm: true })
      assert.strictEqual(challenged.status, "requires_action")
      const helper = TestHelpers.authenticatePaymentIntent(challenged.id, { outcome: "success" })
      assert.include(yield* failure(account.run(helper)), { _tag: "TestModeOnly" })
      const missing = yield* failure(createIn(account, { payment_method: "pm_card_visa" }))
      assert.include(missing, { _tag: "ResourceMissing" })
    })
  )
})

describe("The projection for publishable keys", () => {
  it.effect("leaves out the fields that payers must not see", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const paid = yield* createIn(account, { payment_method: "pm_card_visa", confirm: true, metadata: { a: "1" } })
      assert.sameMembers(
        Object.keys(publishable(paid)),
        `id object amount currency status capture_method confirmation_method client_secret created livemode
payment_method next_action canceled_at cancellation_reason`.split(/\s+/u)
      )
      const decline = yield* declined(account.run(created({ payment_method: "pm_card_declined", confirm: true })))
      assert.property(publishable(decline.paymentIntent), "last_payment_error")
    })
  )
})
