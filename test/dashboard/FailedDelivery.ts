/** Has an attempt at an endpoint's newest delivery fail, by default its last: no dispatcher runs in pages' tests. */
import { Effect } from "effect"
import type { AttemptOutcome } from "../../src/engine/log/Record.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import type { PagesServer } from "../pages/PagesServer.ts"

export const fail = async (
  { accounts, merchantId }: PagesServer,
  destination: string,
  next: AttemptOutcome["next"] = "exhausted",
  error: string | null = null,
  attempt = 1
) => {
  const account = `${merchantId}:test`
  const { deliveries } = await Effect.runPromise(accounts.deliveries(account, { destination, limit: 1 }))
  const { event, id } = deliveries[0]!
  const attempted = Effect.map(Transaction, (transaction) =>
    transaction.attempted({
      id,
      destination,
      attempt,
      startedAt: 1_800_000_000_000,
      durationMillis: 12,
      ...(error === null ? { status: 500, error, body: "the database is <down>" } : { status: null, error }),
      next
    })
  )
  await Effect.runPromise(accounts.run(account, attempted))
  return { delivery: id, event }
}
