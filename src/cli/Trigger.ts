/**
 * `till trigger`: causes an event through the API, and prints the event's ID once it exists.
 *
 * `charge.expired` moves the test environment's clock forward by the life of an authorization, which affects the whole
 * environment, and prints a note. No other type changes the clock.
 */
import { Console, Data, Duration, Effect, Option, Stream } from "effect"
import {
  type RecipeInput,
  TRIGGER_RECIPES,
  TRIGGERABLE_EVENT_TYPES,
  type TriggerableEventType
} from "../domain/TriggerRecipes.ts"
import { type EffectMethods } from "../client/effect.ts"
import { EMITTED_EVENT_TYPES, EVENT_TYPES, type TillError } from "../client/index.ts"
import { connect, type ConnectionFlags } from "./Connection.ts"
import { applyOverrides, type Override } from "./Overrides.ts"
import { didYouMean } from "./Suggestion.ts"
import { WrongArguments } from "./WrongArguments.ts"

/**
 * The longest wait for an event after its request: asynchronous payments and refunds take 2 s (semantics test_cards.*).
 */
const WAIT_MILLIS_MAX = 15_000
const POLL_MILLIS = 100

/** The requests succeeded but did not cause the event. */
export class NoEvent extends Data.TaggedError("NoEvent")<{ readonly type: string; readonly subject: string }> {
  override get message(): string {
    return `${this.type} did not happen for ${this.subject}. One of the --override flags may prevent it.`
  }
}

/** Returns the event type. Fails if it does not exist or cannot be triggered. */
export const triggerableOf = (type: string): Effect.Effect<TriggerableEventType, WrongArguments> => {
  const triggerable = TRIGGERABLE_EVENT_TYPES.find((candidate) => candidate === type)
  if (triggerable !== undefined) return Effect.succeed(triggerable)
  if (!EVENT_TYPES.some((candidate) => candidate === type)) {
    return Effect.fail(
      new WrongArguments({
        message:
          `there is no event type ${JSON.stringify(type)}` +
          (didYouMean(type, TRIGGERABLE_EVENT_TYPES) || "; see till trigger --help")
      })
    )
  }
  const isEmitted = Object.hasOwn(EMITTED_EVENT_TYPES, type)
  const why = isEmitted ? "only a processor behind a network causes it" : "Till does not emit it"
  return Effect.fail(new WrongArguments({ message: `${type} cannot be triggered: ${why}` }))
}

export interface TriggerInput {
  readonly till: EffectMethods
  readonly overrides: ReadonlyArray<Override>
  /** How long an authorization holds, in seconds of the environment's clock. */
  readonly authorizationHoldSeconds: number
}

/** Runs the recipes' steps as API requests. */
const byRequests = ({ authorizationHoldSeconds, overrides, till }: TriggerInput): RecipeInput<TillError, never> => {
  const seconds = authorizationHoldSeconds + 1
  return {
    till,
    changed: (body) => applyOverrides(body, overrides),
    orDeclined: Effect.catchTag("PaymentError", (error) =>
      error.payment_intent === undefined ? Effect.fail(error) : Effect.succeed(error.payment_intent)
    ),
    // The clock's change outlasts the command and affects the whole environment.
    passHold: Effect.andThen(
      till.test_helpers.advance_clock({ seconds }),
      Console.error(
        `The clock of the test environment was moved ahead by ${Duration.format(Duration.seconds(seconds))}; only ` +
          "DELETE /v1/test_helpers/data sets it back, and deletes all data there."
      )
    )
  }
}

/** Causes the event and returns its ID. */
export const triggerEvent = Effect.fnUntraced(function* (type: TriggerableEventType, input: TriggerInput) {
  const before = yield* input.till.events.list({ type, limit: 1 })
  const subject = yield* TRIGGER_RECIPES[type](byRequests(input))
  const cursor = before.data[0]?.id
  return yield* Effect.gen(function* () {
    for (;;) {
      const id = yield* eventAfter(input.till, type, cursor, subject)
      if (id !== undefined) return id
      yield* Effect.sleep(POLL_MILLIS)
    }
  }).pipe(
    Effect.timeoutOrElse({ duration: WAIT_MILLIS_MAX, orElse: () => Effect.fail(new NoEvent({ type, subject })) })
  )
})

/** Finds the event of the type that concerns the subject and is newer than the cursor. Returns its ID. */
const eventAfter = (
  till: EffectMethods,
  type: TriggerableEventType,
  ending_before: string | undefined,
  subject: string
) =>
  till.events.list.stream({ type, limit: 100, ...(ending_before !== undefined && { ending_before }) }).pipe(
    Stream.filter(({ data: { object } }) => object["id"] === subject || object["payment_intent"] === subject),
    Stream.runHead,
    Effect.map((event) => Option.getOrUndefined(event)?.id)
  )

/** The event to cause. */
export interface TriggerOptions extends ConnectionFlags {
  readonly type: string
  readonly override: ReadonlyArray<Override>
  readonly json: boolean
}

/** Causes an event, and prints its ID, or the event as JSON. */
export const trigger = Effect.fnUntraced(function* ({ json, override, type, ...flags }: TriggerOptions) {
  const triggerable = yield* triggerableOf(type)
  const { authorizationHoldSeconds, till } = yield* connect(flags)
  const id = yield* triggerEvent(triggerable, { till, overrides: override, authorizationHoldSeconds })
  yield* Console.log(json ? JSON.stringify(yield* till.events.retrieve(id)) : id)
})
