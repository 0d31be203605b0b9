/**
 * Fills Till's database before Till starts on it: with merchants, one account each, and their keys. They are made by
 * the engine itself, in this process, because starting the `till` command once per merchant would take a minute.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted } from "effect"
import { accountsAlone } from "../src/app.ts"
import { Accounts } from "../src/engine/Accounts.ts"
import { INSTALLATION } from "../src/payments/AccountIds.ts"
import { createWithKeys } from "../src/payments/Merchants.ts"
import * as JournalPostgres from "../src/postgres/JournalPostgres.ts"
import * as Migrations from "../src/postgres/Migrations.ts"
import * as ViewsPostgres from "../src/postgres/ViewsPostgres.ts"
import { failureOf } from "./BenchFailure.ts"

const MERCHANTS = 100

const engine = (databaseUrl: string) =>
  accountsAlone.pipe(
    Layer.provide([JournalPostgres.layer, ViewsPostgres.layer]),
    Layer.provide(Migrations.layer),
    Layer.provide(PgClient.layer({ url: Redacted.make(databaseUrl) }))
  )

const merchants = Effect.replicateEffect(createWithKeys("Bench"), MERCHANTS)

/** Makes the merchants; gives the secret test key of each. */
export const make = (databaseUrl: string) =>
  Effect.flatMap(Accounts, (accounts) => accounts.run(INSTALLATION, merchants)).pipe(
    Effect.map((created) => created.map(({ generated }) => Redacted.value(generated.secretTest!))),
    Effect.provide(engine(databaseUrl)),
    Effect.mapError(failureOf("The merchants could not be made"))
  )
