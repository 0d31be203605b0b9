/** Calls a gateway for the rules of its check, and compares its answers with the protocol. */
import { Clock, Effect, Option, type Redacted, Schema } from "effect"
import { randomBytes } from "node:crypto"
import * as StandardWebhooks from "../../domain/StandardWebhooks.ts"
import { secondsOf } from "../../domain/Time.ts"
import type { Exchange } from "../Exchange.ts"
import { Checked, ErrorBody, Listed, type Operation, type Request, State } from "./Messages.ts"
import { type Called, calledOf, type Signed } from "./SignedCall.ts"

/** The gateway breaks a rule. */
export class Broken extends Schema.TaggedError<Broken>()("Broken", { message: Schema.String }) {}

/** A rule cannot be tried at this gateway. */
export class NotTried extends Schema.TaggedError<NotTried>()("NotTried", { message: Schema.String }) {}

export interface ProbeOptions {
  readonly url: string
  readonly secret: Redacted.Redacted
  readonly exchange: Exchange
  readonly restart: Effect.Effect<void, Error> | null
}

/** A deviation from a correctly signed request. */
export interface Forgery {
  /** Added to the time of the signature, in seconds. */
  readonly late?: number
  readonly signature?: string
}

/** An answer that has the protocol's form. */
export type Reaction =
  | { readonly kind: "state"; readonly state: State }
  | { readonly kind: "error"; readonly status: number; readonly code: string }

const decodeState = Schema.decodeUnknownOption(State)
const decodeError = Schema.decodeUnknownOption(ErrorBody)
const decodeListed = Schema.decodeUnknownOption(Listed)
const decodeChecked = Schema.decodeUnknownOption(Checked)

const ID_BYTES = 9
/** Pauses between looks at an operation that is in progress; 10 seconds in all. */
const PROGRESS_PAUSE_MILLIS = 200
const PROGRESS_LOOKS_MAX = 50

export const broken = (message: string): Effect.Effect<never, Broken> => Effect.fail(new Broken({ message }))

/** Fails unless a condition holds. The sentence is in the past tense, about the gateway. */
export const ensure = (condition: boolean, message: string): Effect.Effect<void, Broken> =>
  condition ? Effect.void : broken(message)

/** Describes an answer for a sentence about it. */
export const shown = (reaction: Reaction): string =>
  reaction.kind === "state" ? `the status ${reaction.state.status}` : `${reaction.status} ${reaction.code}`

export class GatewayProbe {
  readonly options: ProbeOptions
  readonly #name: string
  #count = 0

  /** `name` is unique to the rule and the run. Ids derive from it. */
  constructor(options: ProbeOptions, name: string) {
    this.options = options
    this.#name = name.replaceAll(".", "_")
  }

  /** Makes an id that the gateway has never seen. */
  newId(prefix: "op" | "pi"): string {
    this.#count++
    return `${prefix}_check_${this.#name}_${this.#count}`
  }

  /** Makes an operation of its own payment, unless it names one. */
  operation(part: Partial<Operation> & Pick<Operation, "kind">): Operation {
    return {
      id: this.newId("op"),
      payment: part.payment ?? this.newId("pi"),
      reference: null,
      amount: 1000,
      currency: "usd",
      token: null,
      capture: "automatic",
      authenticated: false,
      off_session: false,
      return_url: "http://localhost/return",
      customer: null,
      description: null,
      descriptor: null,
      billing_details: null,
      ...part
    }
  }

  /** Sends a text as it is. */
  send(text: string, { late = 0, signature }: Forgery = {}): Effect.Effect<Called> {
    const { exchange, secret, url } = this.options
    return Effect.gen(function* () {
      const body = Buffer.from(text)
      const id = `msg_${randomBytes(ID_BYTES).toString("hex")}`
      const time = secondsOf(yield* Clock.currentTimeMillis) + late
      const headers = { ...StandardWebhooks.sign([secret], id, time, body), "till-protocol": "1" }
      const forged = signature === undefined ? {} : { "webhook-signature": signature }
      const reply = yield* exchange.post({ url, headers: { ...headers, ...forged }, body })
      return calledOf([secret], id, reply, secondsOf(yield* Clock.currentTimeMillis))
    })
  }

  /** Returns the signed answer; an unsigned one breaks the rule. */
  signed(message: Request, forgery?: Forgery): Effect.Effect<Signed, Broken> {
    return Effect.flatMap(this.send(JSON.stringify(message), forgery), (called) =>
      called.kind === "signed" ? Effect.succeed(called) : broken(`${message.type}: ${called.why}`)
    )
  }

  check(): Effect.Effect<Checked, Broken> {
    return Effect.flatMap(this.signed({ type: "check" }), ({ body }) =>
      Option.match(decodeChecked(body), {
        onNone: () => broken("The answer to check does not have the protocol's form."),
        onSome: Effect.succeed
      })
    )
  }

  /** Returns a test token of the gateway. */
  token(behaviour: "approve" | "decline" | "challenge" | "pending"): Effect.Effect<string, Broken | NotTried> {
    return Effect.flatMap(this.check(), ({ test_tokens: tokens = null }) => {
      const token = tokens?.[behaviour] ?? null
      const message = tokens === null ? "The gateway has no test tokens." : `The gateway has no token to ${behaviour}.`
      return token === null ? Effect.fail(new NotTried({ message })) : Effect.succeed(token)
    })
  }

  react(message: Request): Effect.Effect<Reaction, Broken> {
    return Effect.flatMap(this.signed(message), (answer) => {
      const reaction = reactionOf(answer)
      return reaction === undefined
        ? broken(`The answer to ${message.type} with status ${answer.status} does not have the protocol's form.`)
        : Effect.succeed(reaction)
    })
  }

  execute(operation: Operation): Effect.Effect<Reaction, Broken> {
    return this.react({ type: "operation.execute", operation })
  }

  /** Executes an operation, and looks until it is not in progress any longer. */
  settled(operation: Operation): Effect.Effect<Reaction, Broken> {
    return Effect.flatMap(this.execute(operation), (reaction) => this.#finished(operation, reaction, 0))
  }

  #finished(operation: Operation, reaction: Reaction, looks: number): Effect.Effect<Reaction, Broken> {
    if (reaction.kind === "error" || reaction.state.status !== "in_progress") return Effect.succeed(reaction)
    if (looks === PROGRESS_LOOKS_MAX) return broken("An operation was in progress for more than 10 seconds.")
    return Effect.flatMap(Effect.delay(this.execute(operation), PROGRESS_PAUSE_MILLIS), (next) =>
      this.#finished(operation, next, looks + 1)
    )
  }

  /** Executes an operation that has to get this status. */
  expect(operation: Operation, status: State["status"]): Effect.Effect<State, Broken> {
    return Effect.flatMap(this.settled(operation), (reaction) =>
      reaction.kind === "state" && reaction.state.status === status
        ? Effect.succeed(reaction.state)
        : broken(`A ${operation.kind} got ${shown(reaction)} instead of the status ${status}.`)
    )
  }

  /** Executes an operation that has to be refused with a code. */
  refused(operation: Operation, code: string): Effect.Effect<void, Broken> {
    return Effect.flatMap(this.settled(operation), (reaction) =>
      ensure(
        reaction.kind === "error" && reaction.status === 400 && reaction.code === code,
        `A ${operation.kind} got ${shown(reaction)} instead of 400 ${code}.`
      )
    )
  }

  retrieve(id: string): Effect.Effect<State, Broken> {
    return Effect.flatMap(this.react({ type: "operation.retrieve", id }), stateOf)
  }

  abandon(id: string): Effect.Effect<State, Broken> {
    return Effect.flatMap(this.react({ type: "operation.abandon", id }), stateOf)
  }

  list(since: number, after: string | null, limit: number): Effect.Effect<typeof Listed.Type, Broken> {
    return Effect.flatMap(this.signed({ type: "operation.list", since, after, limit }), ({ body }) =>
      Option.match(decodeListed(body), {
        onNone: () => broken("The answer to operation.list does not have the protocol's form."),
        onSome: Effect.succeed
      })
    )
  }

  /** Holds or takes an amount with the token that is approved. Returns the operation. */
  authorized(
    capture: Operation["capture"],
    part: Partial<Operation> = {}
  ): Effect.Effect<Operation, Broken | NotTried> {
    return Effect.flatMap(this.token("approve"), (token) => {
      const operation = this.operation({ kind: "authorize", token, capture, ...part })
      return Effect.as(this.expect(operation, "approved"), operation)
    })
  }
}

const stateOf = (reaction: Reaction): Effect.Effect<State, Broken> =>
  reaction.kind === "state"
    ? Effect.succeed(reaction.state)
    : broken(`A question about an operation got ${shown(reaction)}.`)

const reactionOf = ({ body, status }: Signed): Reaction | undefined => {
  if (status === 200) {
    const state = decodeState(body)
    return Option.isSome(state) ? { kind: "state", state: state.value } : undefined
  }
  const error = decodeError(body)
  return Option.isSome(error) ? { kind: "error", status, code: error.value.error.code } : undefined
}
