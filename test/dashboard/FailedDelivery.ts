/** Has an endpoint's newest delivery fail for good, as its last attempt would: no dispatcher runs in pages' tests. */
import { Effect } from "effect"
import { Transaction } from "../../src/engine/Transaction.ts"
import type { PagesServer } from "../pages/PagesServer.ts"

export const fail = async ({ accounts, merchantId }: PagesServer, destination: string) => {
  const account = `${merchantId}:test`
  const { deliveries } = await Effect.runPromise(accounts.deliveries(account, { destination, limit: 1 }))
  const { event, id } = deliveries[0]!
  const attempted = Effect.map(Transaction, (transaction) =>
    transaction.attempted({
      id,
      destination,
      attempt: 1,
      startedAt: 1_800_000_000_000,
      durationMillis: 12,
      status: 500,
      error: null,
      next: "exhausted"
    })
  )
  await Effect.runPromise(accounts.run(account, attempted))
  return { delivery: id, event }
}
