/**
 * Recipes that cause each type of event in test mode, by operations that any merchant can use.
 *
 * They do not define how an operation runs: `till trigger` sends requests, the dashboard runs the same operations as
 * one command. The user's changes apply to the step that creates the event's object, or, for an `.updated` event, to
 * the update.
 */
import { Effect } from "effect"
import type { EmittedEventType } from "./Event.ts"

/** The types with a recipe: the simulator has no operations. */
export type TriggerableEventType = Exclude<EmittedEventType, `operation.${string}`>

/** A step that results in an object, of which the recipes use the ID. */
type Step<E, R> = Effect.Effect<{ readonly id: string }, E, R>

/** The operations that recipes use, with the names of the API. */
export interface Steps<E, R> {
  readonly payment_intents: {
    create(body: NewIntent): Step<E, R>
    capture(id: string): Step<E, R>
    cancel(id: string): Step<E, R>
  }
  readonly refunds: {
    create(body: { payment_intent: string; amount: number }): Step<E, R>
    update(id: string, body: { metadata: Readonly<Record<string, string>> }): Step<E, R>
  }
  readonly products: {
    create(body: { name: string }): Step<E, R>
    update(id: string, body: { name: string }): Step<E, R>
    delete(id: string): Step<E, R>
  }
  readonly prices: {
    create(body: { product: string; currency: string; unit_amount: number }): Step<E, R>
    update(id: string, body: { nickname: string }): Step<E, R>
  }
  readonly customers: {
    create(body: { email: string; name: string }): Step<E, R>
    update(id: string, body: { name: string }): Step<E, R>
    delete(id: string): Step<E, R>
  }
  readonly payment_methods: {
    attach(id: string, body: { customer: string }): Step<E, R>
    detach(id: string): Step<E, R>
  }
  readonly checkout_sessions: {
    create(body: NewSession): Step<E, R>
    confirm(id: string, body: { payment_method: string; customer_details: typeof DETAILS }): Step<E, R>
    expire(id: string): Step<E, R>
  }
  readonly payment_links: {
    create(body: NewLink): Step<E, R>
    update(id: string, body: { active: boolean }): Step<E, R>
  }
}

interface NewLink {
  line_items: ReadonlyArray<{ price: string; quantity: number }>
}

interface NewIntent {
  amount: number
  currency: string
  payment_method?: string
  capture_method?: "manual"
  confirm?: true
}

interface NewSession {
  mode: "payment"
  success_url: string
  line_items: ReadonlyArray<{ price: string; quantity: number }>
}

export interface RecipeInput<E, R> {
  readonly till: Steps<E, R>
  /** Applies the user's changes to the body of the step that creates the object. */
  readonly changed: <A extends object>(body: A) => A
  /** Returns the payment even if it was declined, because the recipe wants the decline. */
  readonly orDeclined: (payment: Step<E, R>) => Step<E, R>
  /** Lets the authorization that was just made expire. */
  readonly passHold: Effect.Effect<void, E, R>
}

/** Runs the steps and returns the ID of the event's object, or of that object's PaymentIntent. */
export type Recipe = <E, R>(input: RecipeInput<E, R>) => Effect.Effect<string, E, R>

const DETAILS = {
  email: "jenny@example.com",
  name: "Jenny Rosen",
  address: { line1: "1 High Street", city: "Dublin", postal_code: "D02 AF30", country: "IE" }
}

const idOf = <E, R>(step: Step<E, R>): Effect.Effect<string, E, R> => Effect.map(step, ({ id }) => id)

const unchanged = <E, R>(input: RecipeInput<E, R>): RecipeInput<E, R> => ({ ...input, changed: (body) => body })

/** Creates a PaymentIntent, by default without an attempt to pay it. */
const intent =
  (more: Omit<NewIntent, "amount" | "currency"> = {}): Recipe =>
  ({ changed, till }) =>
    idOf(till.payment_intents.create(changed({ amount: 2000, currency: "usd", ...more })))

const paidWith = (payment_method: string): Recipe => intent({ payment_method, confirm: true })
const authorized: Recipe = intent({ payment_method: "pm_card_visa", capture_method: "manual", confirm: true })

const declined: Recipe = ({ changed, orDeclined, till }) => {
  const body = { amount: 2000, currency: "usd", payment_method: "pm_card_declined", confirm: true as const }
  return idOf(orDeclined(till.payment_intents.create(changed(body))))
}

const andThen =
  (recipe: Recipe, step: <E, R>(till: Steps<E, R>, id: string) => Effect.Effect<unknown, E, R>): Recipe =>
  (input) =>
    Effect.tap(recipe(input), (id) => step(input.till, id))

const holdExpiry: Recipe = (input) => Effect.tap(authorized(input), () => input.passHold)

const paidBefore = <E, R>(input: RecipeInput<E, R>, card: string) => paidWith(card)(unchanged(input))

const refund =
  (card: string): Recipe =>
  (input) =>
    Effect.flatMap(paidBefore(input, card), (payment_intent) =>
      idOf(input.till.refunds.create(input.changed({ payment_intent, amount: 1000 })))
    )

const refundUpdate: Recipe = (input) =>
  Effect.flatMap(refund("pm_card_visa")(unchanged(input)), (id) =>
    idOf(input.till.refunds.update(id, input.changed({ metadata: { triggered: "true" } })))
  )

/** Returns the payment's ID, which the event's charge contains, not the refund's. */
const chargeRefund: Recipe = (input) =>
  Effect.gen(function* () {
    const payment_intent = yield* paidBefore(input, "pm_card_visa")
    yield* input.till.refunds.create(input.changed({ payment_intent, amount: 1000 }))
    return payment_intent
  })

const product: Recipe = ({ changed, till }) => idOf(till.products.create(changed({ name: "Tea" })))

const price: Recipe = (input) =>
  Effect.flatMap(product(unchanged(input)), (id) =>
    idOf(input.till.prices.create(input.changed({ product: id, currency: "usd", unit_amount: 2000 })))
  )

const session: Recipe = (input) =>
  Effect.flatMap(price(unchanged(input)), (id) =>
    idOf(
      input.till.checkout_sessions.create(
        input.changed({
          mode: "payment",
          success_url: "https://shop.example.com/thanks",
          line_items: [{ price: id, quantity: 1 }]
        })
      )
    )
  )

const link: Recipe = (input) =>
  Effect.flatMap(price(unchanged(input)), (id) =>
    idOf(input.till.payment_links.create(input.changed({ line_items: [{ price: id, quantity: 1 }] })))
  )

const sessionPaidWith = (payment_method: string): Recipe =>
  andThen(session, (till, id) => till.checkout_sessions.confirm(id, { payment_method, customer_details: DETAILS }))

const customer: Recipe = ({ changed, till }) =>
  idOf(till.customers.create(changed({ email: DETAILS.email, name: DETAILS.name })))

const attached: Recipe = (input) =>
  Effect.flatMap(customer(unchanged(input)), (id) =>
    idOf(input.till.payment_methods.attach("pm_card_visa", input.changed({ customer: id })))
  )

const updated =
  <Body extends object>(
    create: Recipe,
    body: Body,
    update: <E, R>(till: Steps<E, R>, id: string, body: Body) => Effect.Effect<unknown, E, R>
  ): Recipe =>
  (input) =>
    Effect.tap(create(unchanged(input)), (id) => update(input.till, id, input.changed(body)))

export const TRIGGER_RECIPES: Readonly<Record<TriggerableEventType, Recipe>> = {
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
  "payment_link.created": link,
  "payment_link.updated": updated(link, { active: false }, (till, id, body) => till.payment_links.update(id, body)),
  "customer.created": customer,
  "customer.updated": updated(customer, { name: "Jenny Rosen-Smith" }, (till, id, body) =>
    till.customers.update(id, body)
  ),
  "customer.deleted": andThen(customer, (till, id) => till.customers.delete(id)),
  "payment_method.attached": attached,
  "payment_method.detached": andThen(attached, (till, id) => till.payment_methods.detach(id)),
  "product.created": product,
  "product.updated": updated(product, { name: "Green tea" }, (till, id, body) => till.products.update(id, body)),
  "product.deleted": andThen(product, (till, id) => till.products.delete(id)),
  "price.created": price,
  "price.updated": updated(price, { nickname: "Retail" }, (till, id, body) => till.prices.update(id, body))
}

export const TRIGGERABLE_EVENT_TYPES = Object.keys(TRIGGER_RECIPES) as ReadonlyArray<TriggerableEventType>
