/**
 * Requests that change what the installation keeps of a merchant. They are carried out in the installation's account,
 * which all merchants share, and once per key of the merchant's account that they came from (semantics I4).
 *
 * The merchant's account remembers their keys too, so that a key means one request wherever it is used (I7). It learns of
 * a key once the request is done: a crash in between forgets the key for other requests, never what the request did.
 */
import { Effect } from "effect"
import type { AccountsShape, Response } from "../engine/Accounts.ts"
import type { AccountId } from "../engine/Document.ts"
import type { RequestIdentity } from "../engine/Record.ts"
import type { Transaction } from "../engine/Transaction.ts"
import { INSTALLATION } from "../payments/AccountIds.ts"

/** Leaves nothing behind: only whether the key is another request's comes out of it. */
const nothing = Effect.fail<Response>({ status: 500, body: "{}", stored: false })

/** Carries a request's command out in the installation's account, for the merchant's `account`. */
export const execute = Effect.fnUntraced(function* (
  accounts: AccountsShape,
  account: AccountId,
  request: RequestIdentity,
  command: Effect.Effect<Response, Response, Transaction>
) {
  const { idempotencyKey } = request
  if (idempotencyKey === null) return yield* accounts.execute(INSTALLATION, request, command)
  yield* accounts.execute(account, request, nothing)
  const shared = { ...request, idempotencyKey: `${account}/${idempotencyKey}` }
  const reply = yield* accounts.execute(INSTALLATION, shared, command)
  if (reply.status === 200) {
    const done: Response = { status: reply.status, body: reply.body, stored: true }
    yield* Effect.ignore(
      accounts.execute(account, { ...request, id: reply.replayOf ?? request.id }, Effect.succeed(done))
    )
  }
  return reply
})
