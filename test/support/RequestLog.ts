/** The request log in a fresh database of its own. */
import type { PgClient } from "@effect/sql-pg"
import { Layer } from "effect"
import type { Placement } from "../../src/engine/process/Placement.ts"
import { Pruning } from "../../src/engine/process/Pruning.ts"
import * as Migrations from "../../src/postgres/Migrations.ts"
import * as RequestLogPostgres from "../../src/postgres/RequestLogPostgres.ts"
import { layerFreshDatabase } from "./Postgres.ts"

export const layerFreshLog = (
  limits: Partial<RequestLogPostgres.Limits> = {}
): Layer.Layer<PgClient.PgClient, never, Placement> =>
  RequestLogPostgres.layer(15, limits).pipe(
    Layer.provide([Migrations.layer, Pruning.layer]),
    Layer.provideMerge(layerFreshDatabase),
    Layer.orDie
  )
