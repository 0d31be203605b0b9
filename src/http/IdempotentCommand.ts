/**
 * The commands of requests, each of which runs once per idempotency key (semantics idempotency.*), whether the request
 * came over the API or with a page's form: `claim` the key, decode, `carryOut` the command.
 *
 * The answer is part of the command's record. So one function, `rendered`, writes it inside of the account's actor,
 * where the command ends: the answer has to be sealed into the record before the record is. It is pure.
 *
 * The journal may not hold secrets. An answer with a secret is sealed before the journal gets it, and opened on its way
 * to the client. A sealed answer is a JSON string; every other answer is an object, so that the two differ.
 */
import { Effect, Redacted, Result } from "effect"
import type { CardDeclined } from "../domain/Errors.ts"
import type { PaymentMethodData } from "../domain/PaymentMethod.ts"
import { Accounts, type Claim, type Outcome, type Rendered } from "../engine/Accounts.ts"
import { type AccountId, encode } from "../engine/log/Document.ts"
import type { RequestIdentity, StoredAnswer } from "../engine/log/Record.ts"
import { parseJson } from "../json/JsonParse.ts"
import { INSTALLATION } from "../payments/AccountIds.ts"
import { PaymentsConfig, type PaymentsConfigShape } from "../payments/PaymentsConfig.ts"
import { tokenize, type TokenizedPaymentMethodData } from "../payments/PaymentMethods.ts"
import { Processor } from "../payments/Processor.ts"
import { open, seal } from "../payments/Sealing.ts"
import { HttpConfig } from "../server/HttpConfig.ts"
import { type Failure, refusal } from "./ErrorTable.ts"
import { makeRemember } from "./forward/Calls.ts"
import { Forwarder } from "./forward/Forwarder.ts"
import { type Answered, type CommandServices, withCommandServices } from "./handlers/Handler.ts"
import { firstAnswer, Revealed } from "./OneTimeSecrets.ts"
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
  /** Converts an answer of the newest API version to the request's; undefined if that is the newest. */
  readonly inItsVersion?: <A extends StoredAnswer>(newest: A) => A
}

/** Succeeds with an object, or with a decline that is kept; fails with a refusal that leaves nothing behind. */
export type Command = Effect.Effect<Answered<object>, Failure, CommandServices>

/** A request whose key has no answer yet. Its command has to run, and the key has to be released in any case. */
export interface Claimed {
  readonly request: CommandRequest
  readonly claim: Claim
  readonly replay: null
  readonly release: Effect.Effect<void>
}

/** The key's answer, as its client gets it. */
export interface Replayed {
  readonly replay: Outcome
}

export const make = Effect.gen(function* () {
  const accounts = yield* Accounts
  const config = yield* PaymentsConfig
  const processors = yield* Processor
  const { docsUrl } = yield* HttpConfig
  const remember = makeRemember(accounts, yield* Forwarder)
  const fingerprintKey = Redacted.value(config.fingerprintKey)
  const provide = withCommandServices(config, processors)

  const identityOf = ({ apiVersion, body, id, idempotencyKey, method, path }: CommandRequest): RequestIdentity => ({
    id,
    idempotencyKey,
    fingerprint: idempotencyKey === null ? null : fingerprint(method, path, body, fingerprintKey),
    apiVersion
  })

  const opened = (
    { account }: CommandRequest,
    { apiVersion, body, headers, replayOf, shown, status }: Outcome
  ): Outcome => ({
    status,
    body: shown ?? openAnswer(config, account, body),
    ...(headers !== undefined && { headers }),
    apiVersion,
    replayOf
  })

  /**
   * A key means one request wherever a merchant uses it (semantics idempotency.reuse), so the merchant's account
   * remembers the keys of requests that ran in the installation's account. It learns of a key after the request has
   * run: a crash in between forgets the key for other requests, never the effect of this one.
   */
  const rememberDone = (request: CommandRequest, outcome: Outcome): Effect.Effect<void> => {
    if (request.idempotencyKey === null || outcome.status !== 200) return Effect.void
    const identity = { ...identityOf(request), id: outcome.replayOf ?? request.id }
    return Effect.ignore(remember(request.account, identity, { status: 200, body: outcome.body, stored: true }))
  }

  /**
   * Claims the key in the installation's account, which all merchants share, under a name with the merchant's account.
   */
  const claimInstallationWide = ({ account }: CommandRequest, identity: RequestIdentity) => {
    if (identity.idempotencyKey === null) return accounts.claim(INSTALLATION, identity)
    const shared = { ...identity, idempotencyKey: `${account}/${identity.idempotencyKey}` }
    return Effect.andThen(remember(account, identity, null), accounts.claim(INSTALLATION, shared))
  }

  return {
    /** Claims the key of a request, or returns the answer that it has (see `Accounts.claim`). */
    claim: (request: CommandRequest) => {
      const identity = identityOf(request)
      const claimed =
        request.installationWide === true
          ? claimInstallationWide(request, identity)
          : accounts.claim(request.account, identity)
      return Effect.flatMap(claimed, (claimed): Effect.Effect<Claimed | Replayed> => {
        const { replay } = claimed
        if (replay === null) {
          return Effect.succeed({ request, claim: claimed, replay, release: claimed.release })
        }
        const replayed = { replay: opened(request, replay) }
        return request.installationWide === true
          ? Effect.as(rememberDone(request, replay), replayed)
          : Effect.succeed(replayed)
      })
    },

    /** Runs the command of a claimed request. */
    carryOut: ({ claim, request }: Claimed, command: Command) => {
      const { account, inItsVersion = asItIs } = request
      const rendering: Rendering = { account, config, docsUrl, inItsVersion }
      const done = accounts.carryOut(claim, provide(rendered(command, rendering)))
      const remembered =
        request.installationWide === true ? Effect.tap(done, (outcome) => rememberDone(request, outcome)) : done
      return Effect.map(remembered, (outcome) => opened(request, outcome))
    },

    /** Gives card data to the account's processor, for a token. */
    tokenize: (account: AccountId, data: PaymentMethodData): TokenizedPaymentMethodData =>
      tokenize({ config, processors, account }, data)
  }
})

const asItIs = <A>(newest: A): A => newest

export type IdempotentCommand = Effect.Success<typeof make>

interface Rendering {
  readonly account: AccountId
  readonly config: PaymentsConfigShape
  readonly docsUrl: string
  readonly inItsVersion: <A extends StoredAnswer>(newest: A) => A
}

/** Turns what a command ends with into its answer, in the request's version. */
const rendered = <R>(
  command: Effect.Effect<Answered<object>, Failure, R>,
  rendering: Rendering
): Effect.Effect<Rendered, Rendered, R> =>
  Effect.mapBoth(command, {
    onSuccess: (result) => {
      const outcome = outcomeOf(result)
      return Result.isFailure(outcome) ? refusedAs(outcome.failure, rendering) : successAs(outcome.success, rendering)
    },
    onFailure: (failure) => refusedAs(failure, rendering)
  })

const outcomeOf = <A extends object>(answered: Answered<A>): Result.Result<A, CardDeclined> =>
  Result.isResult(answered) ? answered : Result.succeed(answered)

const refusedAs = (failure: Failure, { docsUrl, inItsVersion }: Rendering): Rendered =>
  inItsVersion(refusal(failure, docsUrl))

const successAs = (success: object, rendering: Rendering): Rendered => {
  const first = firstAnswer(success)
  const answer: Rendered = { ...storedAnswer(rendering, success), stored: true }
  return first === undefined ? answer : { ...answer, shown: rendering.inItsVersion({ status: 200, body: first }).body }
}

/** Renders an answer as the journal may keep it. */
const storedAnswer = ({ account, config, inItsVersion }: Rendering, answer: object): StoredAnswer => {
  const written = (body: string) => inItsVersion({ status: 200, body })
  if (!(answer instanceof Revealed)) return written(encode(answer))
  if (answer.repetition === "object") return written(encode(answer.value))
  const { body, status } = written(JSON.stringify(answer.shown))
  return { status, body: JSON.stringify(seal(sealingOf(config, account), body)) }
}

const openAnswer = (config: PaymentsConfigShape, account: AccountId, stored: string): string =>
  stored.startsWith('"') ? open(sealingOf(config, account), parseJson(stored) as string) : stored

const sealingOf = ({ sealingKey }: PaymentsConfigShape, account: AccountId) => ({
  key: sealingKey,
  purpose: `answer ${account}`
})
