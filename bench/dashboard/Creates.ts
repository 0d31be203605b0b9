/** Creates in one account, in a closed loop, all of which must be there in the end. */
import { Effect } from "effect"
import { BenchFailure } from "../BenchFailure.ts"
import type { StartedServer } from "../Contender.ts"
import type { Database } from "../Database.ts"
import type { Load } from "../load/Load.ts"
import { intentBody, INTENTS } from "../scenarios/Scenario.ts"
import type * as Seed from "../Seed.ts"
import * as Suite from "../Suite.ts"
import type { CreatesPair } from "./DashboardResults.ts"

const CONNECTIONS = 64

/** The database of a ground is created under this name. */
export const NAME = "till"

/** A Till with the account that is created in. */
export interface Ground {
  readonly database: Database
  readonly account: Seed.Account
  readonly server: StartedServer
}

export interface Creates {
  /** Goes on for so many seconds; gives how many there were per second. */
  readonly run: (seconds: number) => Effect.Effect<number, BenchFailure>
  /** Fails unless the account has one PaymentIntent more for each that was acknowledged, and no other. */
  readonly requireAll: Effect.Effect<void, BenchFailure>
}

export const make = Effect.fnUntraced(function* ({ account, database, server }: Ground, load: Load) {
  const count = database.count(
    NAME,
    `SELECT count(*) FROM objects WHERE account = '${account.id}' AND kind = 'payment_intent'`
  )
  const before = yield* count
  let acknowledged = 0
  return {
    run: (seconds) =>
      Effect.map(
        load.run({
          port: server.port,
          connections: CONNECTIONS,
          seconds,
          requests: { method: "POST", paths: [INTENTS], apiKeys: [account.apiKey], body: JSON.stringify(intentBody) },
          expect: `"object":"payment_intent"`
        }),
        (result) => {
          acknowledged += result.acknowledged
          return result.requestsPerSecond
        }
      ),
    requireAll: Effect.gen(function* () {
      yield* Suite.settled(server, database)
      const made = (yield* count) - before
      if (made === acknowledged) return
      const problem = `${acknowledged} creates were acknowledged, and there are ${made} PaymentIntents more.`
      return yield* new BenchFailure({ problem })
    })
  } satisfies Creates as Creates
})

/** Rounds of both in turn; who is first changes. */
export const inTurn = Effect.fnUntraced(function* <E, R>(
  rounds: number,
  measureWith: Effect.Effect<number, E, R>,
  measureWithout: Effect.Effect<number, E, R>
) {
  const pairs: Array<CreatesPair> = []
  for (let round = 0; round < rounds; round++) {
    const isFirst = round % 2 === 0
    const first = yield* isFirst ? measureWith : measureWithout
    const second = yield* isFirst ? measureWithout : measureWith
    pairs.push(isFirst ? { with: first, without: second } : { with: second, without: first })
  }
  return pairs
})
