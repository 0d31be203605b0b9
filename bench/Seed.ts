/**
 * Fills Till's database before Till starts: merchants, one account each, and their keys. The engine creates them in
 * this process, because one start of the `till` command per merchant would take a minute.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted } from "effect"
import { accountsAlone } from "../src/app.ts"
import { Accounts } from "../src/engine/Accounts.ts"
import type { AccountId } from "../src/engine/log/Document.ts"
import { accountOf, INSTALLATION } from "../src/payments/shared/AccountIds.ts"
import { createWithKeys } from "../src/payments/merchants/Merchants.ts"
import * as JournalPostgres from "../src/postgres/JournalPostgres.ts"
import * as Migrations from "../src/postgres/Migrations.ts"
import * as ViewsPostgres from "../src/postgres/ViewsPostgres.ts"
import { type BenchFailure, failureOf } from "./BenchFailure.ts"
import * as Objects from "./Objects.ts"

const MERCHANTS = 100
/** Merchants per command. */
const AT_ONCE = 100

const engine = (databaseUrl: string) =>
  accountsAlone.pipe(
    Layer.provide([JournalPostgres.layer, ViewsPostgres.layer]),
    Layer.provide(Migrations.layer),
    Layer.provide(PgClient.layer({ url: Redacted.make(databaseUrl) }))
  )

const merchants = (count: number) =>
  Effect.forEach(Array.from({ length: Math.ceil(count / AT_ONCE) }), (_, i) =>
    Effect.flatMap(Accounts, (accounts) =>
      accounts.run(
        INSTALLATION,
        Effect.replicateEffect(createWithKeys("Bench"), Math.min(AT_ONCE, count - i * AT_ONCE))
      )
    )
  )

export interface Wanted {
  readonly merchants?: number
  /** PaymentIntents of the last merchant. */
  readonly objects?: number
}

/** A merchant's account in test mode, and its secret keys. */
export interface Account {
  readonly id: AccountId
  readonly apiKey: string
  /** The secret key of live mode. */
  readonly liveKey: string
}

const accountsOf = (count: number) =>
  Effect.map(Effect.mapError(merchants(count), failureOf("The merchants could not be made")), (made) =>
    made.flat().map(({ generated, merchant }): Account => ({
      id: accountOf(merchant.id, false),
      apiKey: Redacted.value(generated.secretTest!),
      liveKey: Redacted.value(generated.secretLive!)
    }))
  )

const notFilled = Effect.mapError(failureOf("The database could not be filled"))

/** Creates the merchants; returns the secret test key of each. */
export const make = (databaseUrl: string, wanted: Wanted = {}) =>
  Effect.map(accounts(databaseUrl, wanted), (made) => made.map(({ apiKey }) => apiKey))

/** Creates the merchants; returns the account of each. */
export const accounts = (databaseUrl: string, { merchants: count = MERCHANTS, objects = 0 }: Wanted = {}) =>
  Effect.gen(function* () {
    const made = yield* accountsOf(count)
    if (objects > 0) yield* Objects.fill(made.at(-1)!.id, objects)
    return made
  }).pipe(Effect.provide(engine(databaseUrl)), notFilled)

/** Creates one merchant; returns its account and its content. */
export const filled = <A>(
  databaseUrl: string,
  fill: (account: AccountId) => Effect.Effect<A, BenchFailure, Accounts>
) =>
  Effect.gen(function* () {
    const [account] = yield* accountsOf(1)
    return [account!, yield* fill(account!.id)] as const
  }).pipe(Effect.provide(engine(databaseUrl)), notFilled)
