/**
 * Forms as commands: what a payer's form does to an account happens once per form, however often the form is sent, and
 * by the same lifecycles, errors and stored answers as over the API.
 */
import { Effect, Redacted, Result } from "effect"
import { API_VERSION_DEFAULT } from "../domain/ApiVersion.ts"
import type { DomainError } from "../domain/Errors.ts"
import type { PaymentMethodData } from "../domain/PaymentMethod.ts"
import type { Response } from "../engine/Accounts.ts"
import { Accounts } from "../engine/Accounts.ts"
import type { AccountId } from "../engine/Document.ts"
import type { Failure } from "../http/ErrorTable.ts"
import { refusal } from "../http/ErrorTable.ts"
import { fingerprint } from "../http/Fingerprint.ts"
import type { Answered, CommandServices } from "../http/Handlers.ts"
import { outcomeOf } from "../http/Handlers.ts"
import { HttpConfig } from "../http/HttpConfig.ts"
import { nextRequestId } from "../http/RequestIds.ts"
import { PaymentsConfig } from "../payments/PaymentsConfig.ts"
import { Processor } from "../payments/Processor.ts"
import type { TokenizedPaymentMethodData } from "../payments/Tokenization.ts"
import { tokenize } from "../payments/Tokenization.ts"

export interface Submission {
  readonly account: AccountId
  readonly path: string
  readonly idempotencyKey: string
  /** What was entered, for the fingerprint: card data under `card`. */
  readonly entered: unknown
}

/** What came of a submission, this time or the first time. */
export type Submitted =
  | { readonly ok: true; readonly body: unknown }
  | {
      readonly ok: false
      readonly status: number
      readonly code: string
      readonly message: string
      readonly param: string | null
    }

/** Carries out forms. */
export const make = Effect.gen(function* () {
  const accounts = yield* Accounts
  const config = yield* PaymentsConfig
  const processors = yield* Processor
  const { docsUrl } = yield* HttpConfig
  const key = Redacted.value(config.fingerprintKey)

  const refuse = (failure: Failure): Response => refusal(failure, docsUrl)

  return {
    /** Runs a command once for a form. `answer` makes the JSON text that is kept for repetitions. */
    submit: Effect.fnUntraced(function* <A extends object>(
      { account, entered, idempotencyKey, path }: Submission,
      command: Effect.Effect<Answered<A>, DomainError, CommandServices>,
      answer: (result: A) => string
    ) {
      const identity = {
        id: nextRequestId(),
        idempotencyKey,
        fingerprint: fingerprint("POST", path, entered, key),
        apiVersion: API_VERSION_DEFAULT
      }
      const run = Effect.mapBoth(command, {
        onSuccess: (answered): Response => {
          const result = outcomeOf(answered)
          return Result.isFailure(result)
            ? refuse(result.failure)
            : { status: 200, body: answer(result.success), stored: true }
        },
        onFailure: refuse
      }).pipe(Effect.provideService(PaymentsConfig, config), Effect.provideService(Processor, processors))
      const reply = yield* accounts.execute(account, identity, run)
      return submittedOf(reply.status, JSON.parse(reply.body))
    }),

    /** Gives card data to the processor, for a token. */
    tokenize: (account: AccountId, data: PaymentMethodData): TokenizedPaymentMethodData =>
      tokenize({ config, processors, account }, data)
  }
})

export type Submissions = Effect.Success<typeof make>

const submittedOf = (status: number, body: { readonly error?: Omit<Submitted & { ok: false }, "ok"> }): Submitted =>
  body.error === undefined || status < 400
    ? { ok: true, body }
    : { ok: false, status, code: body.error.code, message: body.error.message, param: body.error.param }
