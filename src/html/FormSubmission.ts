/** A form is a command that runs once per form, by the same lifecycles and stored answers as over the API. */
import { Effect, Exit } from "effect"
import { API_VERSION_NEWEST } from "../domain/ApiVersion.ts"
import type { PaymentMethodData } from "../domain/PaymentMethod.ts"
import type { AccountId } from "../engine/log/Document.ts"
import type { Command } from "../http/IdempotentCommand.ts"
import * as IdempotentCommand from "../http/IdempotentCommand.ts"
import { type Answer, RequestIds, traceOfPage } from "../http/RequestContext.ts"
import { parseJson } from "../json/JsonParse.ts"
import type { TokenFailure, TokenizedPaymentMethodData } from "../payments/lifecycles/PaymentMethods.ts"

export interface FormSubmission {
  readonly account: AccountId
  readonly path: string
  /** Null for what changes nothing: it is carried out however often it is sent. */
  readonly idempotencyKey: string | null
  /** The payer's entries, for the fingerprint: card data under `card`. */
  readonly entered: unknown
  /** Id of the request, if something else was to know it before. */
  readonly id?: string
}

/** A command with a card or token that the payer has entered. */
export interface WithCard {
  readonly data: PaymentMethodData
  readonly make: (data: TokenizedPaymentMethodData) => Command
}

/** A submission comes to one of these, this time or the first time. */
export type Submitted =
  | { readonly ok: true; readonly body: unknown }
  | {
      readonly ok: false
      readonly status: number
      readonly code: string
      readonly message: string
      readonly param: string | null
      /** The message beside the parameter's field, whose label has the name; undefined if it is the same message. */
      readonly besideField?: string | undefined
    }

export const make = Effect.gen(function* () {
  const requestIds = yield* RequestIds
  const { answerOf, runOnce, tokenize } = yield* IdempotentCommand.make

  return {
    newId: requestIds.next,

    submit: (
      { account, entered, id = requestIds.next(), idempotencyKey, path }: FormSubmission,
      command: Command | WithCard
    ) => {
      const apiVersion = API_VERSION_NEWEST
      const request = {
        id,
        account,
        idempotencyKey,
        apiVersion,
        method: "POST",
        path,
        body: entered
      }
      // A replay has no text for beside a field: a refusal of a parameter is never kept.
      let besideField: string | undefined
      const noted = (command: Command) =>
        Effect.tapError(command, (failure) =>
          Effect.sync(() => {
            besideField = besideFieldOf(failure)
          })
        )
      const prepare = (): Effect.Effect<Command> => {
        if (!("data" in command)) return Exit.succeed(noted(command))
        const { data, make } = command
        const tokenized = tokenize(account)(data, (name) => `payment_method_data[${name}]`)
        // A refused card is a refusal of the command.
        const made = (exit: Exit.Exit<TokenizedPaymentMethodData, TokenFailure>) => noted(Effect.flatMap(exit, make))
        return isDone(tokenized) ? Exit.succeed(made(tokenized)) : Effect.map(Effect.exit(tokenized), made)
      }
      const done = Effect.flatMap(traceOfPage, (trace) => runOnce({ ...request, trace }, prepare))
      return Effect.map(done, (done) => submittedOf(answerOf(request, done), besideField))
    }
  }
})

/** True unless the processor is asked first. */
const isDone = <A, E>(tokenized: Effect.Effect<A, E>): tokenized is Exit.Exit<A, E> => Exit.isExit(tokenized)

export type Submissions = Effect.Success<typeof make>

interface Body {
  readonly error?: Omit<Submitted & { ok: false }, "ok">
}

const submittedOf = ({ body: text, status }: Answer, besideField: string | undefined): Submitted => {
  const body = parseJson(text) as Body
  if (body.error === undefined || status < 400) return { ok: true, body }
  const { code, message, param } = body.error
  return { ok: false, status, code, message, param, besideField }
}

const besideFieldOf = (failure: Effect.Error<Command>): string | undefined => {
  if (failure._tag === "ParameterMissing") return "This is required."
  return failure._tag === "ParameterInvalid" ? `This must be ${failure.rule}.` : undefined
}
