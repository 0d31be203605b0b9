/**
 * The recipes make each type of event happen in test mode, by requests that any merchant can make.
 *
 * Overrides set fields of the one request that makes the event's object; for an `.updated`, of the update.
 */
import { Console, Duration, Effect } from "effect"
import type { EffectMethods, EmittedEventType, TillError } from "../client/index.ts"
import type { Override } from "./Overrides.ts"
import { overridden } from "./Overrides.ts"

export interface RecipeInput {
  readonly till: EffectMethods
  readonly overrides: ReadonlyArray<Override>
  /** An authorization holds this long, in seconds of the environment's clock. */
  readonly authorizationHoldSeconds: number
}

/** Answers with the ID of what the event is about: its object, or that object's PaymentIntent. */
export type Recipe = (input: RecipeInput) => Effect.Effect<string, TillError>

const DETAILS = {
  email: "jenny@example.com",
  name: "Jenny Rosen",
  address: { line1: "1 High Street", city: "Dublin", postal_code: "D02 AF30", country: "IE" }
}

const idOf = <A extends { readonly id: string }, E>(effect: Effect.Effect<A, E>): Effect.Effect<string, E> =>
  Effect.map(effect, ({ id }) => id)

/** A PaymentIntent, by default without an attempt to pay it. */
const intent =
  (more: { readonly payment_method?: string; readonly capture_method?: "manual"; readonly confirm?: true } = {}) =>
  ({ overrides, till }: RecipeInput) =>
    idOf(till.payment_intents.create(overridden({ amount: 2000, currency: "usd", ...more }, overrides)))

const paidWith = (payment_method: string): Recipe => intent({ payment_method, confirm: true })
const authorized: Recipe = intent({ payment_method: "pm_card_visa", capture_method: "manual", confirm: true })

/** The decline is what was asked for. */
const declined: Recipe = (input) =>
  paidWith("pm_card_declined")(input).pipe(
    Effect.catchTag("PaymentError", (error) =>
      error.payment_intent === undefined ? Effect.fail(error) : Effect.succeed(error.payment_intent.id)
    )
  )

/** A recipe, and then a request about its PaymentIntent. */
const andThen =
  (recipe: Recipe, request: (till: EffectMethods, id: string) => Effect.Effect<unknown, TillError>): Recipe =>
  (input) =>
    Effect.tap(recipe(input), (id) => request(input.till, id))

/** The clock's move outlasts the command, and everything else in the environment notices it. */
const holdExpiry: Recipe = (input) => {
  const seconds = input.authorizationHoldSeconds + 1
  return Effect.tap(authorized(input), () =>
    Effect.andThen(
      input.till.test_helpers.advance_clock({ seconds }),
      Console.error(
        `The clock of the test environment was moved ahead by ${Duration.format(Duration.seconds(seconds))}; only ` +
          "DELETE /v1/test_helpers/data sets it back, and deletes all data there."
      )
    )
  )
}

const paidBefore = (input: RecipeInput, card: string) => paidWith(card)({ ...input, overrides: [] })

const refund =
  (card: string): Recipe =>
  (input) =>
    Effect.flatMap(paidBefore(input, card), (payment_intent) =>
      idOf(input.till.refunds.create(overridden({ payment_intent, amount: 1000 }, input.overrides)))
    )

const refundUpdate: Recipe = (input) =>
  Effect.flatMap(refund("pm_card_visa")({ ...input, overrides: [] }), (id) =>
    idOf(input.till.refunds.update(id, overridden({ metadata: { triggered: "true" } }, input.overrides)))
  )

/** The event's charge has the payment's ID, not the refund's. */
const chargeRefund: Recipe = (input) =>
  Effect.gen(function* () {
    const payment_intent = yield* paidBefore(input, "pm_card_visa")
    yield* input.till.refunds.create(overridden({ payment_intent, amount: 1000 }, input.overrides))
    return payment_intent
  })

const product = ({ overrides, till }: RecipeInput) => till.products.create(overridden({ name: "Tea" }, overrides))

const price: Recipe = (input) =>
  Effect.flatMap(product({ ...input, overrides: [] }), ({ id }) =>
    idOf(input.till.prices.create(overridden({ product: id, currency: "usd", unit_amount: 2000 }, input.overrides)))
  )

const session: Recipe = (input) =>
  Effect.flatMap(price({ ...input, overrides: [] }), (id) =>
    idOf(
      input.till.checkout_sessions.create(
        overridden(
          {
            mode: "payment",
            success_url: "https://shop.example.com/thanks",
            line_items: [{ price: id, quantity: 1 }]
          },
          input.overrides
        )
      )
    )
  )

const sessionPaidWith = (payment_method: string): Recipe =>
  andThen(session, (till, id) => till.checkout_sessions.confirm(id, { payment_method, customer_details: DETAILS }))

const customer: Recipe = ({ overrides, till }) =>
  idOf(till.customers.create(overridden({ email: DETAILS.email, name: DETAILS.name }, overrides)))

/** A customer with a card; the answer is the card's ID. */
const attached: Recipe = (input) =>
  Effect.flatMap(customer({ ...input, overrides: [] }), (id) =>
    idOf(input.till.payment_methods.attach("pm_card_visa", overridden({ customer: id }, input.overrides)))
  )

const updated =
  <Body extends object>(
    create: Recipe,
    body: Body,
    update: (till: EffectMethods, id: string, body: Body) => Effect.Effect<unknown, TillError>
  ): Recipe =>
  (input) =>
    Effect.tap(create({ ...input, overrides: [] }), (id) => update(input.till, id, overridden(body, input.overrides)))

const productId: Recipe = (input) => idOf(product(input))

export const TRIGGER_RECIPES: Readonly<Record<EmittedEventType, Recipe>> = {
  "payment_intent.created": intent(),
  "payment_intent.requires_action": paidWith("pm_card_3ds_required"),
  "payment_intent.processing": paidWith("pm_card_processing_success"),
  "payment_intent.amount_capturable_updated": authorized,
  "payment_intent.succeeded": paidWith("pm_card_visa"),
  "payment_intent.payment_failed": declined,
  "payment_intent.canceled": andThen(intent(), (till, id) => till.payment_intents.cancel(id)),
  "charge.succeeded": paidWith("pm_card_visa"),
  "charge.pending": paidWith("pm_card_processing_success"),
  "charge.failed": declined,
  "charge.captured": andThen(authorized, (till, id) => till.payment_intents.capture(id)),
  "charge.expired": holdExpiry,
  "charge.updated": andThen(authorized, (till, id) => till.payment_intents.cancel(id)),
  "charge.refunded": chargeRefund,
  "refund.created": refund("pm_card_visa"),
  "refund.updated": refundUpdate,
  "refund.failed": refund("pm_card_refundFail"),
  "checkout.session.completed": sessionPaidWith("pm_card_visa"),
  "checkout.session.expired": andThen(session, (till, id) => till.checkout_sessions.expire(id)),
  "checkout.session.async_payment_succeeded": sessionPaidWith("pm_card_processing_success"),
  "checkout.session.async_payment_failed": sessionPaidWith("pm_card_processing_failure"),
  "customer.created": customer,
  "customer.updated": updated(customer, { name: "Jenny Rosen-Smith" }, (till, id, body) =>
    till.customers.update(id, body)
  ),
  "customer.deleted": andThen(customer, (till, id) => till.customers.delete(id)),
  "payment_method.attached": attached,
  "payment_method.detached": andThen(attached, (till, id) => till.payment_methods.detach(id)),
  "product.created": productId,
  "product.updated": updated(productId, { name: "Green tea" }, (till, id, body) => till.products.update(id, body)),
  "product.deleted": andThen(productId, (till, id) => till.products.delete(id)),
  "price.created": price,
  "price.updated": updated(price, { nickname: "Retail" }, (till, id, body) => till.prices.update(id, body))
}
