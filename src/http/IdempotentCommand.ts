/**
 * A request's command is carried out once per idempotency key (semantics §1.3), whether it came over the API or with a
 * form of a page. Whoever repeats a request gets what came of it the first time.
 *
 * The engine looks the key up before a command is made, so only what is carried out is ever decoded (T14, 9 before 10).
 * The answer is part of the command's record, so its text is made where the command ends, by pure functions of what it
 * came to.
 */
import { Effect, Redacted } from "effect"
import type { PaymentMethodData } from "../domain/PaymentMethod.ts"
import type { AccountsShape, MakeCommand, Reply } from "../engine/Accounts.ts"
import { Accounts } from "../engine/Accounts.ts"
import type { AccountId } from "../engine/log/Document.ts"
import type { RequestIdentity } from "../engine/log/Record.ts"
import { INSTALLATION } from "../payments/AccountIds.ts"
import { PaymentsConfig } from "../payments/PaymentsConfig.ts"
import { Processor } from "../payments/Processor.ts"
import type { TokenizedPaymentMethodData } from "../payments/PaymentMethods.ts"
import { tokenize } from "../payments/PaymentMethods.ts"
import type { Rendering } from "./CommandAnswers.ts"
import { answerOf, openAnswer, refusedAs } from "./CommandAnswers.ts"
import type { Failure } from "./ErrorTable.ts"
import { fingerprint } from "./RequestFingerprint.ts"
import { makeRemember } from "./forward/Calls.ts"
import { Forwarder } from "./forward/Forwarder.ts"
import type { Answered, CommandServices } from "./handlers/Handler.ts"
import { withCommandServices } from "./handlers/Handler.ts"
import { HttpConfig } from "../server/HttpConfig.ts"

/** A request that wants something done. */
export interface OnceRequest {
  /** `req_…` */
  readonly id: string
  readonly account: AccountId
  /** Null for a request that is carried out however often it comes (I3). */
  readonly idempotencyKey: string | null
  /** The version that the first answer is given in. */
  readonly apiVersion: string
  readonly method: string
  readonly path: string
  /**
   * The JSON that the request came with, which nobody has checked yet. A repetition has the same method, path and body.
   */
  readonly body: unknown
  /** True if the command changes what the installation keeps of a merchant. */
  readonly installationWide?: boolean
  /** Makes an answer one of that version, unless that is the newest. */
  readonly inItsVersion?: Rendering["inItsVersion"]
}

/** Comes to an object, to a decline that is kept, or to a refusal that leaves nothing behind. */
export type Command = Effect.Effect<Answered<object>, Failure, CommandServices>

/** The answer to a request, from this time or from the first time. */
export interface Carried {
  readonly status: number
  /** JSON text for the one who asks. */
  readonly body: string
  /** What a refusal says beside its body, this time only. */
  readonly headers?: Readonly<Record<string, string>>
  /** The version that the request was answered in when it was carried out. */
  readonly apiVersion: string
  /** Id of the request that was really carried out, if this one repeats it. */
  readonly replayOf: string | null
}

export const make = Effect.gen(function* () {
  const accounts = yield* Accounts
  const config = yield* PaymentsConfig
  const processors = yield* Processor
  const { docsUrl } = yield* HttpConfig
  const remember = makeRemember(accounts, yield* Forwarder)
  const fingerprintKey = Redacted.value(config.fingerprintKey)
  const provide = withCommandServices(config, processors)

  return {
    /** Makes the command and runs it, unless the key has an answer already. */
    carryOutOnce: (request: OnceRequest, makeCommand: () => Command) => {
      const { account, apiVersion, body, id, idempotencyKey, installationWide, method, path } = request
      const identity: RequestIdentity = {
        id,
        idempotencyKey,
        fingerprint: idempotencyKey === null ? null : fingerprint(method, path, body, fingerprintKey),
        apiVersion
      }
      const rendering: Rendering = { account, config, docsUrl, inItsVersion: request.inItsVersion ?? asItIs }
      const answered = {
        onSuccess: (result: object) => answerOf(result, rendering),
        onFailure: (failure: Failure) => refusedAs(failure, rendering)
      }
      const command: MakeCommand = () => provide(Effect.mapBoth(makeCommand(), answered))
      const reply =
        installationWide === true
          ? executeInstallationWide(accounts, remember, account, identity, command)
          : accounts.execute(account, identity, command)
      return Effect.map(reply, ({ apiVersion, body, headers, replayOf, shown, status }): Carried => ({
        status,
        body: shown ?? openAnswer(config, account, body),
        ...(headers !== undefined && { headers }),
        apiVersion,
        replayOf
      }))
    },

    /** Gives card data to the account's processor, for a token. */
    tokenize: (account: AccountId, data: PaymentMethodData): TokenizedPaymentMethodData =>
      tokenize({ config, processors, account }, data)
  }
})

const asItIs: Rendering["inItsVersion"] = (newest) => newest

export type IdempotentCommand = Effect.Success<typeof make>

/**
 * Carries out in the installation's account, which all merchants share, what changes what the installation keeps of a
 * merchant: once per key of the merchant's account that the request came from (semantics I4).
 *
 * The merchant's account remembers their keys too, so that a key means one request wherever it is used (I7). It learns
 * of a key once the request is done: a crash in between forgets the key for other requests, never what the request did.
 */
const executeInstallationWide = Effect.fnUntraced(function* (
  accounts: AccountsShape,
  remember: ReturnType<typeof makeRemember>,
  account: AccountId,
  request: RequestIdentity,
  command: MakeCommand
) {
  const { idempotencyKey } = request
  if (idempotencyKey === null) return yield* accounts.execute(INSTALLATION, request, command)
  yield* remember(account, request, null)
  const shared = { ...request, idempotencyKey: `${account}/${idempotencyKey}` }
  const reply: Reply = yield* accounts.execute(INSTALLATION, shared, command)
  if (reply.status === 200) {
    const done = { status: reply.status, body: reply.body, stored: true }
    yield* Effect.ignore(remember(account, { ...request, id: reply.replayOf ?? request.id }, done))
  }
  return reply
})
