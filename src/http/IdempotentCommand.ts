/**
 * The commands of requests, each of which runs once per idempotency key (semantics idempotency.*), whether the request
 * came over the API or with a page's form: `claim` the key, decode, `carryOut` the command.
 *
 * The answer is part of the command's record. So one function, `rendered`, writes it inside of the account's actor,
 * where the command ends: it has to be sealed into the record before the record is. It is pure.
 *
 * The journal may not hold secrets. An answer with a secret is sealed before the journal gets it, and opened on its way
 * to the client. A sealed answer is a JSON string; every other answer is an object, so that the two differ.
 */
import { Effect, Redacted, Result } from "effect"
import type { OlderVersion } from "../domain/ApiVersions.ts"
import type { CardDeclined } from "../domain/Errors.ts"
import type { PaymentMethodData } from "../domain/PaymentMethod.ts"
import { Accounts, type Claim, type CommandResult, type Replay } from "../engine/Accounts.ts"
import { type AccountId, encode } from "../engine/log/Document.ts"
import type { RequestIdentity } from "../engine/log/Record.ts"
import { parseJson } from "../json/JsonParse.ts"
import { INSTALLATION } from "../payments/AccountIds.ts"
import { PaymentsConfig, type PaymentsConfigShape } from "../payments/PaymentsConfig.ts"
import { tokenize, type TokenizedPaymentMethodData } from "../payments/PaymentMethods.ts"
import { Processor } from "../payments/Processor.ts"
import { open, seal } from "../payments/Sealing.ts"
import { HttpConfig } from "../server/HttpConfig.ts"
import { answerOf, type Failure, wireErrorOf } from "./ErrorTable.ts"
import { makeRemember } from "./forward/Calls.ts"
import { Forwarder } from "./forward/Forwarder.ts"
import { type Answered, type CommandServices, withCommandServices } from "./handlers/Handler.ts"
import { Revealed } from "./OneTimeSecrets.ts"
import { type Answer, inItsVersion } from "./RequestContext.ts"
import { fingerprint } from "./RequestFingerprint.ts"

/** A request that changes something. */
export interface CommandRequest {
  /** `req_…` */
  readonly id: string
  readonly account: AccountId
  /** Null for a request that runs as often as it comes (semantics idempotency.required). */
  readonly idempotencyKey: string | null
  /** API version of the first answer. */
  readonly apiVersion: string
  readonly method: string
  readonly path: string
  /** The request's JSON, not validated. A repetition has the same method, path and body. */
  readonly body: unknown
  /** True if the command changes merchants or keys, which lie in the installation's account. */
  readonly installationWide?: boolean
  /** Conversions of the request's API version; undefined for the newest. */
  readonly older?: OlderVersion | undefined
  readonly route?: string | undefined
}

/** Succeeds with an object, or with a decline that is kept; fails with a refusal that leaves nothing behind. */
export type Command = Effect.Effect<Answered<object>, Failure, CommandServices>

/** A command's answer, as its client gets it, with the one that its record keeps. */
export type FirstAnswer = Answer & CommandResult

export const make = Effect.gen(function* () {
  const accounts = yield* Accounts
  const config = yield* PaymentsConfig
  const processors = yield* Processor
  const { docsUrl } = yield* HttpConfig
  const remember = makeRemember(accounts, yield* Forwarder)
  const fingerprintKey = Redacted.value(config.fingerprintKey)
  const provide = withCommandServices(config, processors)

  /**
   * A key means one request wherever a merchant uses it (semantics idempotency.reuse), so the merchant's account
   * remembers the keys of requests that ran in the installation's account. It learns of a key after the request has
   * run: a crash in between forgets the key for other requests, never the effect of this one.
   */
  const rememberDone = (
    { account, idempotencyKey }: CommandRequest,
    identity: RequestIdentity,
    done: FirstAnswer | Replay
  ): Effect.Effect<void> => {
    if (idempotencyKey === null || done.status !== 200) return Effect.void
    const { body, status } = done.replayOf === null ? done.kept! : done
    const original = { ...identity, id: done.replayOf ?? identity.id, idempotencyKey }
    return Effect.ignore(remember(account, original, { status, body }))
  }

  /**
   * Claims the key in the installation's account, which all merchants share, under a name with the merchant's account.
   */
  const claimInstallationWide = (request: CommandRequest, identity: RequestIdentity) => {
    const { account, idempotencyKey } = request
    if (idempotencyKey === null) return accounts.claim(INSTALLATION, identity)
    const shared = { ...identity, idempotencyKey: `${account}/${idempotencyKey}` }
    const claimed = Effect.andThen(remember(account, identity, null), accounts.claim(INSTALLATION, shared))
    return Effect.tap(claimed, (claimed) =>
      claimed.replayOf === null ? Effect.void : rememberDone(request, identity, claimed)
    )
  }

  return {
    /** Claims the key of a request, or returns the answer that it has (see `Accounts.claim`). */
    claim: (request: CommandRequest) => {
      const { account, apiVersion, body, id, idempotencyKey, method, path } = request
      const print = idempotencyKey === null ? null : fingerprint(method, path, body, fingerprintKey)
      const identity = { id, idempotencyKey, fingerprint: print, apiVersion }
      return request.installationWide === true
        ? claimInstallationWide(request, identity)
        : accounts.claim(account, identity)
    },

    /** Runs the command of a claimed request. */
    carryOut: (claim: Claim, request: CommandRequest, command: Command) => {
      const done = accounts.carryOut(claim, provide(rendered(command, { request, config, docsUrl })))
      return request.installationWide === true
        ? Effect.tap(done, (done) => rememberDone(request, claim.request, done))
        : done
    },

    /** Returns the answer to a request of an account: its command's, or that of the request which it repeats. */
    answerOf: (account: AccountId, done: FirstAnswer | Replay): Answer =>
      done.replayOf === null
        ? done
        : {
            status: done.status,
            body: openAnswer(config, account, done.body),
            headers: { "idempotent-replayed": "true", "original-request": done.replayOf }
          },

    /** Gives card data to the account's processor, for a token. */
    tokenize: (account: AccountId, data: PaymentMethodData): TokenizedPaymentMethodData =>
      tokenize({ config, processors, account }, data)
  }
})

export type IdempotentCommand = Effect.Success<typeof make>

interface Rendering {
  readonly request: CommandRequest
  readonly config: PaymentsConfigShape
  readonly docsUrl: string
}

/** Turns the end of a command into its answer, in the request's version. */
const rendered = <R>(
  command: Effect.Effect<Answered<object>, Failure, R>,
  rendering: Rendering
): Effect.Effect<FirstAnswer, FirstAnswer, R> =>
  Effect.mapBoth(command, {
    onSuccess: (answered) => {
      const result = resultOf(answered)
      return Result.isFailure(result) ? refusedAs(result.failure, rendering) : successAs(result.success, rendering)
    },
    onFailure: (failure) => refusedAs(failure, rendering)
  })

const resultOf = <A extends object>(answered: Answered<A>): Result.Result<A, CardDeclined> =>
  Result.isResult(answered) ? answered : Result.succeed(answered)

const refusedAs = (failure: Failure, { docsUrl, request }: Rendering): FirstAnswer => {
  const error = wireErrorOf(failure)
  const { body, headers, status } = inItsVersion(request, answerOf(error, docsUrl))
  return { status, body, headers, kept: error.stored ? { status, body } : null, replayOf: null }
}

/** Answers with an object. The journal gets secrets sealed, or not at all if repetitions do not get them either. */
const successAs = (success: object, { config, request }: Rendering): FirstAnswer => {
  const isRevealed = success instanceof Revealed
  const text = isRevealed ? JSON.stringify(success.shown) : encode(success)
  const { body, status } = inItsVersion(request, { status: 200, body: text })
  if (!isRevealed) return { status, body, kept: { status, body }, replayOf: null }
  const kept =
    success.repetition === "object"
      ? inItsVersion(request, { status: 200, body: encode(success.value) })
      : { status, body: JSON.stringify(seal(sealingOf(config, request.account), body)) }
  return { status, body, kept, replayOf: null }
}

const openAnswer = (config: PaymentsConfigShape, account: AccountId, stored: string): string =>
  stored.startsWith('"') ? open(sealingOf(config, account), parseJson(stored) as string) : stored

const sealingOf = ({ sealingKey }: PaymentsConfigShape, account: AccountId) => ({
  key: sealingKey,
  purpose: `answer ${account}`
})
