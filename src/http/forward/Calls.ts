/**
 * What one process of the installation asks another, beside the requests of clients: commands on the merchants and keys
 * of the installation, which only the process does that serves its account; and what a merchant's account is to
 * remember of an idempotency key whose request was done in the installation's account.
 */
import { Effect, Schema } from "effect"
import type { AccountsShape } from "../../engine/Accounts.ts"
import { Accounts, IdempotencyKeyInUse, IdempotencyKeyReuse, runOnce, Unavailable } from "../../engine/Accounts.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import type { RequestIdentity } from "../../engine/log/Record.ts"
import { parseJson } from "../../json/JsonParse.ts"
import { INSTALLATION } from "../../payments/AccountIds.ts"
import type { Answer } from "../../payments/Administration.ts"
import { AdministrationFailed, administer, Command } from "../../payments/Administration.ts"
import type { ForwarderShape } from "./Forwarder.ts"
import { Forwarder, HERE } from "./Forwarder.ts"
import type { Reply } from "./Forwarder.ts"
import type { Called, Handlers } from "./Listener.ts"

const ADMINISTRATION = "/administration"
const IDEMPOTENCY_KEYS = "/idempotency_keys"

const Response = Schema.Struct({ status: Schema.Int, body: Schema.String, stored: Schema.Boolean })

const Remembered = Schema.Struct({
  account: Schema.String,
  request: Schema.Struct({
    id: Schema.String,
    idempotencyKey: Schema.NullOr(Schema.String),
    fingerprint: Schema.NullOr(Schema.String),
    apiVersion: Schema.String
  }),
  /** Null only looks whether the key is another request's. */
  response: Schema.NullOr(Response)
})

const Administered = Schema.Struct({ command: Command })

const rememberHere = (
  accounts: AccountsShape,
  { account, request, response }: typeof Remembered.Type
): Effect.Effect<void, Unavailable | IdempotencyKeyInUse | IdempotencyKeyReuse> =>
  response === null
    ? Effect.uninterruptible(
        Effect.flatMap(accounts.claim(account, request), (claimed) =>
          claimed.replay === null ? claimed.release : Effect.void
        )
      )
    : Effect.asVoid(runOnce(accounts, account, request, () => Effect.succeed(response)))

/** Makes the answers to what others ask. */
export const make: Effect.Effect<Handlers["call"], never, Accounts> = Effect.map(Accounts, (accounts) => {
  const answers: Readonly<Record<string, (body: unknown) => Effect.Effect<Called, unknown>>> = {
    [ADMINISTRATION]: (body) =>
      Effect.flatMap(Schema.decodeUnknownEffect(Administered)(body), ({ command }) =>
        Effect.map(Effect.provideService(administer(command), Accounts, accounts), (body) => ({ status: 200, body }))
      ),
    [IDEMPOTENCY_KEYS]: (body) =>
      Effect.flatMap(Schema.decodeUnknownEffect(Remembered)(body), (remembered) =>
        Effect.as(rememberHere(accounts, remembered), { status: 200, body: {} })
      )
  }
  return (path, body) =>
    Effect.catch(answers[path]?.(body) ?? unknown, (failure) => {
      if (failure instanceof Unavailable && failure.isElsewhere) return Effect.undefined
      if (failure instanceof Unavailable) return refused(503, failure.reason)
      if (failure instanceof IdempotencyKeyInUse) return refused(409, failure._tag)
      if (failure instanceof IdempotencyKeyReuse) return refused(422, failure._tag)
      if (failure instanceof AdministrationFailed) return refused(400, failure.message)
      return refused(404, "This process of Till does not know what it is asked for.")
    })
})

const unknown = Effect.fail("unknown")

const refused = (status: number, message: string): Effect.Effect<Called> =>
  Effect.succeed({ status, body: { message } })

/** A command has no key by which it would be done once. */
const administration = (command: Command) => ({ path: ADMINISTRATION, body: { command }, mayRepeat: false })

const messageOf = ({ body }: Reply): string => {
  const { message } = parseJson(body.toString()) as { readonly message?: unknown }
  return typeof message === "string" ? message : "The service failed."
}

const answerOf = (reply: Reply): Effect.Effect<Answer, AdministrationFailed | Unavailable> => {
  if (reply.status === 200) return Effect.succeed(parseJson(reply.body.toString()) as Answer)
  if (reply.status === 503) return Effect.fail(new Unavailable({ reason: messageOf(reply) }))
  return Effect.fail(new AdministrationFailed({ message: messageOf(reply) }))
}

/**
 * Has a command on the installation carried out by the process at that address, if it serves the installation's
 * account; otherwise it fails with `Unavailable` whose `isElsewhere` is true, and nothing was done. The same for a
 * process that cannot be reached.
 */
export const carryOut = (url: string, command: Command): Effect.Effect<Answer, AdministrationFailed | Unavailable> =>
  Effect.gen(function* () {
    const forwarder = yield* Forwarder
    const reply = yield* forwarder.call({ url }, administration(command))
    return yield* reply === HERE ? Effect.fail(Unavailable.elsewhere(INSTALLATION)) : answerOf(reply)
  })

/** Has a command on the installation carried out wherever its account is. */
export const administerAnywhere = (
  command: Command
): Effect.Effect<Answer, AdministrationFailed | Unavailable, Accounts> =>
  Effect.gen(function* () {
    const forwarder = yield* Forwarder
    const hereOrThere: Effect.Effect<Answer, AdministrationFailed | Unavailable, Accounts> = forwarder.isHere(
      INSTALLATION
    )
      ? administer(command)
      : Effect.flatMap(forwarder.call({ account: INSTALLATION }, administration(command)), (reply) =>
          reply === HERE ? administer(command) : answerOf(reply)
        )
    return yield* hereOrThere
  }).pipe(followed)

/** So often something follows its account. */
const MOVES_MAX = 4

/** Does it again if the account has moved meanwhile: then nothing was done. */
function followed<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
  return Effect.retry(effect, {
    times: MOVES_MAX,
    while: (failure) => failure instanceof Unavailable && failure.isElsewhere
  })
}

/** Has an account remember of an idempotency key what a request has come to, wherever the account is. */
export const makeRemember =
  (accounts: AccountsShape, forwarder: ForwarderShape) =>
  (
    account: AccountId,
    request: RequestIdentity,
    response: typeof Response.Type | null
  ): Effect.Effect<void, Unavailable | IdempotencyKeyInUse | IdempotencyKeyReuse> => {
    const remembered = { account, request, response }
    return followed(
      Effect.suspend(() => {
        if (forwarder.isHere(account)) return rememberHere(accounts, remembered)
        return Effect.flatMap(
          forwarder.call({ account }, { path: IDEMPOTENCY_KEYS, body: remembered, mayRepeat: true }),
          (reply) => {
            if (reply === HERE) return rememberHere(accounts, remembered)
            if (reply.status === 409) return Effect.fail(new IdempotencyKeyInUse())
            if (reply.status === 422) return Effect.fail(new IdempotencyKeyReuse())
            return reply.status === 200 ? Effect.void : Effect.fail(new Unavailable({ reason: messageOf(reply) }))
          }
        )
      })
    )
  }
