/** Creates in one account, in a closed loop; all of them must be stored in the end. */
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

/** Name of the database. */
export const NAME = "till"

/** A Till with the account of the creates. */
export interface Ground {
  readonly database: Database
  readonly account: Seed.Account
  readonly server: StartedServer
}

export interface Creates {
  /** Creates for a number of seconds; returns the creates per second. */
  readonly run: (seconds: number) => Effect.Effect<number, BenchFailure>
  /** Fails unless the account has one additional PaymentIntent for each acknowledged create, and no other. */
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

/** Runs rounds of both in turn; the first one changes. */
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
