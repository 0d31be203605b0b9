/**
 * `till trigger`: makes an event happen for real, through the API, and prints its ID once it is there.
 *
 * `charge.expired` moves the test environment's clock forward by the life of an authorization, which everything else
 * there notices too, and says so; nothing else touches the clock.
 */
import { Console, Data, Duration, Effect, Option, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { RecipeInput } from "../app.ts"
import { TRIGGER_RECIPES } from "../app.ts"
import type { EffectMethods, EmittedEventType, EventType, TillError } from "../client/index.ts"
import { EMITTED_EVENT_TYPES, EVENT_TYPES } from "../client/index.ts"
import { connect, connectionFlags, WrongArguments } from "./Connection.ts"
import type { Override } from "./Overrides.ts"
import { overridden, overrideOf } from "./Overrides.ts"

/** The longest that an event is behind its request: asynchronous payments and refunds take 2 s (semantics §5). */
const WAIT_MILLIS_MAX = 15_000
const LOOK_AGAIN_MILLIS = 100

/** The requests were answered as they should, but did not cause the event. */
export class NoEvent extends Data.TaggedError("NoEvent")<{ readonly type: string; readonly subject: string }> {
  override get message(): string {
    return `${this.type} did not happen to ${this.subject}; is it because of an override?`
  }
}

const isEmitted = (type: EventType): type is EmittedEventType => Object.hasOwn(EMITTED_EVENT_TYPES, type)

/** The type, if it can be triggered. */
export const triggerableOf = (type: string): Effect.Effect<EmittedEventType, WrongArguments> => {
  const known = EVENT_TYPES.find((candidate) => candidate === type)
  if (known === undefined) {
    return Effect.fail(
      new WrongArguments({ message: `there is no event type ${JSON.stringify(type)}; see till trigger --help` })
    )
  }
  return isEmitted(known)
    ? Effect.succeed(known)
    : Effect.fail(new WrongArguments({ message: `${type} cannot be triggered: nothing emits it so far` }))
}

export interface TriggerInput {
  readonly till: EffectMethods
  readonly overrides: ReadonlyArray<Override>
  /** An authorization holds this long, in seconds of the environment's clock. */
  readonly authorizationHoldSeconds: number
}

/** The recipes by requests. */
const byRequests = ({ authorizationHoldSeconds, overrides, till }: TriggerInput): RecipeInput<TillError, never> => {
  const seconds = authorizationHoldSeconds + 1
  return {
    till,
    changed: (body) => overridden(body, overrides),
    orDeclined: Effect.catchTag("PaymentError", (error) =>
      error.payment_intent === undefined ? Effect.fail(error) : Effect.succeed(error.payment_intent)
    ),
    // The clock's move outlasts the command, and everything else in the environment notices it.
    passHold: Effect.andThen(
      till.test_helpers.advance_clock({ seconds }),
      Console.error(
        `The clock of the test environment was moved ahead by ${Duration.format(Duration.seconds(seconds))}; only ` +
          "DELETE /v1/test_helpers/data sets it back, and deletes all data there."
      )
    )
  }
}

/** Makes the event happen; answers with its ID. */
export const triggered = Effect.fnUntraced(function* (type: EmittedEventType, input: TriggerInput) {
  const before = yield* input.till.events.list({ type, limit: 1 })
  const subject = yield* TRIGGER_RECIPES[type](byRequests(input))
  const cursor = before.data[0]?.id
  return yield* Effect.gen(function* () {
    for (;;) {
      const id = yield* eventAfter(input.till, type, cursor, subject)
      if (id !== undefined) return id
      yield* Effect.sleep(LOOK_AGAIN_MILLIS)
    }
  }).pipe(
    Effect.timeoutOrElse({ duration: WAIT_MILLIS_MAX, orElse: () => Effect.fail(new NoEvent({ type, subject })) })
  )
})

/** The ID of the type's event that is about the subject, and newer than the cursor. */
const eventAfter = (till: EffectMethods, type: EmittedEventType, ending_before: string | undefined, subject: string) =>
  till.events.list.stream({ type, limit: 100, ...(ending_before !== undefined && { ending_before }) }).pipe(
    Stream.filter(({ data: { object } }) => object["id"] === subject || object["payment_intent"] === subject),
    Stream.runHead,
    Effect.map((event) => Option.getOrUndefined(event)?.id)
  )

const override = Flag.String("override").pipe(
  Flag.filterMap(
    (text) => Option.fromUndefinedOr(overrideOf(text)),
    () => "path=value, as amount=5000 or metadata[order]=7"
  ),
  Flag.atLeast(0),
  Flag.withDescription(
    "Set a field of the request that makes the object: amount=5000, metadata[order]=7. Repeat it for more"
  )
)

const WHAT = "Make an event happen in test mode, and print its ID"

export const trigger = Command.make(
  "trigger",
  {
    type: Argument.String("type").pipe(Argument.withDescription("What shall happen: payment_intent.succeeded")),
    override,
    ...connectionFlags
  },
  ({ override, type, ...flags }) =>
    Effect.gen(function* () {
      const triggerable = yield* triggerableOf(type)
      const { authorizationHoldSeconds, till } = yield* connect(flags)
      yield* Console.log(yield* triggered(triggerable, { till, overrides: override, authorizationHoldSeconds }))
    })
).pipe(
  Command.withShortDescription(WHAT),
  Command.withDescription(
    `${WHAT}. charge.expired moves the clock of the test environment ahead, ` +
      `by 7 days by default; no other type does. Types: ${Object.keys(EMITTED_EVENT_TYPES).join(", ")}`
  )
)
