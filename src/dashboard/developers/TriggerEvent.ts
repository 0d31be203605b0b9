/**
 * Triggers an event in test mode (semantics dashboard.try_out) with the same recipes as `till trigger`, through the
 * same lifecycles as API requests. The steps of a recipe are one command: all of them take effect, or none.
 */
import { Effect, Layer, Result } from "effect"
import { type CardDeclined, OperationInProgress, TestModeOnly } from "../../domain/Errors.ts"
import {
  type Steps,
  TRIGGER_RECIPES,
  TRIGGERABLE_EVENT_TYPES,
  type TriggerableEventType
} from "../../domain/TriggerRecipes.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import type { Command } from "../../http/IdempotentCommand.ts"
import { html } from "../../html/Html.ts"
import { isLive } from "../../payments/shared/AccountIds.ts"
import * as PaymentLinks from "../../payments/lifecycles/PaymentLinks.ts"
import * as PaymentMethodAttachments from "../../payments/lifecycles/PaymentMethodAttachments.ts"
import * as CheckoutSessions from "../../payments/lifecycles/CheckoutSessions.ts"
import * as Customers from "../../payments/lifecycles/Customers.ts"
import { Begun } from "../../payments/lifecycles/Operations.ts"
import * as PaymentIntents from "../../payments/lifecycles/PaymentIntents.ts"
import * as Prices from "../../payments/lifecycles/Prices.ts"
import * as Products from "../../payments/lifecycles/Products.ts"
import * as Refunds from "../../payments/lifecycles/Refunds.ts"
import { form } from "../frame/Form.ts"
import { facts } from "../frame/Values.ts"
import { historySection } from "../history/History.ts"
import { objectLink } from "../frame/ObjectLinks.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"

/** A recipe's steps are one command, which cannot wait for a processor behind a network. */
const atOnce = <A, E, R>(made: Effect.Effect<A | Begun, E, R>): Effect.Effect<A, E | OperationInProgress, R> =>
  Effect.flatMap(made, (made) =>
    made instanceof Begun
      ? Effect.fail(new OperationInProgress({ id: made.operation, param: "id" }))
      : Effect.succeed(made)
  )

/** Turns a decline into a failure. The failed payment stays: a command is only undone if it fails as a whole. */
const orFails = <A, E, R>(made: Effect.Effect<Result.Result<A, CardDeclined> | Begun, E, R>) =>
  Effect.flatMap(atOnce(made), Effect.fromResult)

const steps: Steps<Effect.Error<Command> | CardDeclined, Effect.Services<Command>> = {
  payment_intents: {
    create: (body) => orFails(PaymentIntents.create(body)),
    capture: (id) => atOnce(PaymentIntents.capture(id, {})),
    cancel: (id) => atOnce(PaymentIntents.cancel(id, {}))
  },
  refunds: { create: (body) => atOnce(Refunds.create(body)), update: Refunds.update },
  products: { create: Products.create, update: Products.update, delete: Products.remove },
  prices: Prices,
  customers: { create: Customers.create, update: Customers.update, delete: Customers.remove },
  payment_methods: PaymentMethodAttachments,
  checkout_sessions: {
    create: CheckoutSessions.create,
    confirm: (id, body) => orFails(CheckoutSessions.confirm(id, body)),
    expire: (id) => atOnce(CheckoutSessions.expire(id))
  },
  payment_links: PaymentLinks
}

/** Runs the recipe of an event type and returns the id of the event's object. Only in test mode. */
export const trigger = (account: AccountId, type: TriggerableEventType): Command =>
  isLive(account)
    ? Effect.fail(new TestModeOnly())
    : Effect.map(
        TRIGGER_RECIPES[type]({
          till: steps,
          changed: (body) => body,
          orDeclined: Effect.catchTag("CardDeclined", ({ paymentIntent }) => Effect.succeed(paymentIntent)),
          // Advancing the clock would affect the whole environment, so it is left to the user.
          passHold: Effect.void
        }),
        (id) => ({ id })
      )

export const isTriggerable = (type: string): type is TriggerableEventType =>
  (TRIGGERABLE_EVENT_TYPES as ReadonlyArray<string>).includes(type)

/** The selected type, or an error if it is not one of these. */
export const chosenType = (
  type: string,
  types: ReadonlyArray<TriggerableEventType> = TRIGGERABLE_EVENT_TYPES
): TriggerableEventType | Invalid =>
  isTriggerable(type) && types.includes(type) ? type : new Invalid({ type: "Choose one of these types." })

/** Types to choose from, with a note where the clock has to be advanced. */
export const typeOptions = (types: ReadonlyArray<TriggerableEventType>) =>
  types.map((type) => [type, type === "charge.expired" ? `${type} (after you advance the clock)` : type] as const)

const madePath = (id: string) => `/developers/trigger/${id}` as const

const show: Show = (visit, _, problem) =>
  Effect.succeed(
    visit.livemode
      ? undefined
      : {
          title: "Trigger an event",
          section: "Developers",
          back: ["/developers", "Developers"],
          content: [
            form({
              visit,
              action: "/developers/trigger/make",
              submit: "Trigger event",
              problem,
              content: (fields) =>
                fields.choice({
                  name: "type",
                  label: "Type",
                  value: "payment_intent.succeeded",
                  options: typeOptions(TRIGGERABLE_EVENT_TYPES),
                  hint: "Creates real objects in test mode and notifies your endpoints."
                })
            }),
            html`<p class="hint">From a shell: <code>till trigger payment_intent.succeeded</code></p>`
          ]
        }
  )

const make = action({
  name: "event.trigger",
  right: "build",
  page: "/developers/trigger",
  path: "/developers/trigger/make",
  show,
  notice: "Event triggered. Events that follow also appear here.",
  prepare: ({ account }, _, values) => {
    const type = chosenType(values.get("type") ?? "")
    if (type instanceof Invalid) return Effect.succeed(type)
    const command = trigger(account, type)
    return Effect.succeed({ entered: { type }, detail: type, command, next: ({ id = "" }) => madePath(id) })
  }
})

const showMade: Show = Effect.fnUntraced(function* (visit, { id = "" }) {
  const entry = yield* Accounts.use((accounts) => accounts.read(visit.account, id))
  if (visit.livemode || entry === undefined) return undefined
  return {
    title: "Triggered event",
    section: "Developers",
    back: ["/developers/trigger", "Trigger an event"],
    live: ["event", "delivery"],
    aside: html`<a class="button" href="${visit.to("/developers/clock")}">Test clock</a>`,
    content: [
      facts([
        ["Object", objectLink(visit, id)],
        ["Type", entry.kind.replaceAll(/[._]/g, " ")]
      ]),
      // Charges and refunds belong to the payment by this label.
      yield* historySection(visit, { ids: [id], labels: { payment_intent: id } })
    ]
  }
})

export const layer = Layer.mergeAll(
  page("/developers/trigger", "build", show),
  make,
  page("/developers/trigger/:id", "build", showMade)
)
