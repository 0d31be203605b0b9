/**
 * Calls between processes of an installation, beside forwarded requests of clients. Two calls exist: an administration
 * command, which only the process that serves the command's account runs; and the answer to an idempotent request
 * that ran in the installation's account, for the merchant's account to store under the idempotency key.
 */
import { Effect, Schema } from "effect"
import {
  Accounts,
  type AccountsShape,
  IdempotencyKeyInUse,
  IdempotencyKeyReuse,
  runOnce,
  Unavailable
} from "../../engine/Accounts.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import type { RequestIdentity, StoredAnswer } from "../../engine/log/Record.ts"
import { parseJson } from "../../json/JsonParse.ts"
import { INSTALLATION, merchantIdOf } from "../../payments/shared/AccountIds.ts"
import {
  accountOfCommand,
  administer,
  type Administered,
  type AdministrationFailed,
  Command,
  type DecideOperation
} from "../../payments/administration/Administration.ts"
import * as Wire from "../../payments/administration/AdministrationWire.ts"
import type { ForwarderShape } from "./Forwarder.ts"
import { Forwarder, HERE, type RunnerResponse } from "./Forwarder.ts"
import type { Handlers } from "./Listener.ts"

const ADMINISTRATION = "/administration"
const IDEMPOTENCY_KEYS = "/idempotency_keys"

const KeyResult = Schema.Struct({
  account: Schema.String,
  request: Schema.Struct({
    id: Schema.String,
    idempotencyKey: Schema.NullOr(Schema.String),
    fingerprint: Schema.NullOr(Schema.String),
    apiVersion: Schema.String
  }),
  /** Null stores nothing and only checks that the key is not another request's. */
  answer: Schema.NullOr(Schema.Struct({ status: Schema.Int, body: Schema.String }))
})

const AdministrationCall = Schema.Struct({ command: Command })

const storeHere = (
  accounts: AccountsShape,
  { account, answer, request }: typeof KeyResult.Type
): Effect.Effect<void, Unavailable | IdempotencyKeyInUse | IdempotencyKeyReuse> =>
  answer === null
    ? Effect.uninterruptible(
        Effect.flatMap(accounts.claim(account, request), (claimed) =>
          claimed.replayOf === null ? claimed.release : Effect.void
        )
      )
    : Effect.asVoid(runOnce(accounts, account, request, () => Effect.succeed({ kept: answer, replayOf: null })))

/** Makes the handler of calls from other processes. */
export const make: Effect.Effect<Handlers["call"], never, Accounts> = Effect.gen(function* () {
  const accounts = yield* Accounts
  const services = yield* Effect.context<Accounts>()
  const handlers: Readonly<Record<string, (body: unknown) => Effect.Effect<Wire.JsonResponse, unknown>>> = {
    [ADMINISTRATION]: (body) =>
      Effect.flatMap(decode(AdministrationCall, body), ({ command }) =>
        administer(command).pipe(Effect.provideContext(services), Effect.map(Wire.success))
      ),
    [IDEMPOTENCY_KEYS]: (body) =>
      Effect.flatMap(decode(KeyResult, body), (result) =>
        Effect.as(storeHere(accounts, result), { status: 200, body: {} })
      )
  }
  return (path, body) =>
    Effect.catch(handlers[path]?.(body) ?? unsupported, (failure) => {
      if (failure instanceof Unavailable && failure.isElsewhere) return Effect.undefined
      if (failure === UNSUPPORTED) {
        return Effect.succeed(Wire.refusal(404, "This process of Till does not support the call."))
      }
      if (failure instanceof IdempotencyKeyInUse) return Effect.succeed(Wire.refusal(409, failure._tag))
      if (failure instanceof IdempotencyKeyReuse) return Effect.succeed(Wire.refusal(422, failure._tag))
      return Effect.succeed(Wire.refusalOf(failure))
    })
})

const UNSUPPORTED = "unsupported"
const unsupported = Effect.fail(UNSUPPORTED)

const decode = <A, I>(schema: Schema.Codec<A, I>, body: unknown): Effect.Effect<A, typeof UNSUPPORTED> =>
  Effect.mapError(Schema.decodeUnknownEffect(schema)(body), () => UNSUPPORTED)

/** An administration command has no idempotency key, so it must not be sent twice. */
const administration = (command: Command) => ({ path: ADMINISTRATION, body: { command }, mayRepeat: false })

const parsed = ({ body, status }: RunnerResponse): Wire.JsonResponse => ({ status, body: parseJson(body.toString()) })

/**
 * Runs a command on the installation in the process at that address. Fails with an `Unavailable` whose `isElsewhere` is
 * true, without having run the command, if that process does not serve the installation's account or is unreachable.
 */
export const carryOut = (
  url: string,
  command: Command
): Effect.Effect<Administered, AdministrationFailed | Unavailable> =>
  Effect.gen(function* () {
    const forwarder = yield* Forwarder
    const reply = yield* forwarder.call({ url }, administration(command))
    return yield* reply === HERE ? Effect.fail(Unavailable.elsewhere(INSTALLATION)) : Wire.readResponse(parsed(reply))
  })

/** Runs a command in whichever process serves the account that it is about. */
export const administerAnywhere = (
  command: Command | DecideOperation
): Effect.Effect<Administered, AdministrationFailed | Unavailable, Accounts> =>
  command._tag === "DecideOperation" ? decideAnywhere(command) : administerWhereServed(command)

/** Has the process of the installation's account identify the owner, and that of the merchant's record the decision. */
const decideAnywhere = Effect.fnUntraced(function* ({
  code,
  email,
  operation,
  password,
  reason,
  reference
}: DecideOperation): Effect.fn.Return<Administered, AdministrationFailed | Unavailable, Accounts> {
  const account = yield* accountOfCommand({ _tag: "ShowOperation", operation })
  const credentials = { merchant: merchantIdOf(account), email, password, code }
  const { owner } = yield* administerWhereServed({ _tag: "IdentifyOwner", ...credentials })
  return yield* administerWhereServed({ _tag: "RecordDecision", operation, reason, reference, person: owner! })
})

const administerWhereServed = (
  command: Command
): Effect.Effect<Administered, AdministrationFailed | Unavailable, Accounts> =>
  Effect.gen(function* () {
    const forwarder = yield* Forwarder
    const account = yield* accountOfCommand(command)
    if (forwarder.isHere(account)) return yield* administer(command)
    const reply = yield* forwarder.call({ account }, administration(command))
    return yield* reply === HERE ? administer(command) : Wire.readResponse(parsed(reply))
  }).pipe(retryMoved)

/** How often a call follows its account to another process. */
const MOVES_MAX = 4

/** Repeats a call that failed because its account moved: such a call has done nothing. */
function retryMoved<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
  return Effect.retry(effect, {
    times: MOVES_MAX,
    while: (failure) => failure instanceof Unavailable && failure.isElsewhere
  })
}

/**
 * Makes the function that stores the answer to a request under its idempotency key, in the process that has the
 * account.
 */
export const makeRemember =
  (accounts: AccountsShape, forwarder: ForwarderShape) =>
  (
    account: AccountId,
    request: RequestIdentity,
    answer: StoredAnswer | null
  ): Effect.Effect<void, Unavailable | IdempotencyKeyInUse | IdempotencyKeyReuse> => {
    const result = { account, answer, request }
    return retryMoved(
      Effect.suspend(() => {
        if (forwarder.isHere(account)) return storeHere(accounts, result)
        return Effect.flatMap(
          forwarder.call({ account }, { path: IDEMPOTENCY_KEYS, body: result, mayRepeat: true }),
          (reply) => {
            if (reply === HERE) return storeHere(accounts, result)
            if (reply.status === 409) return Effect.fail(new IdempotencyKeyInUse())
            if (reply.status === 422) return Effect.fail(new IdempotencyKeyReuse())
            if (reply.status === 200) return Effect.void
            return Effect.fail(new Unavailable({ reason: Wire.messageOf(parsed(reply)) }))
          }
        )
      })
    )
  }
