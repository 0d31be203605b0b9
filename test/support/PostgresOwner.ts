/**
 * A process that owns an embedded Postgres, for tests that kill such a process: `node PostgresOwner.ts <data folder>`.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect } from "effect"
import * as EmbeddedPostgres from "../../src/postgres/embedded/EmbeddedPostgres.ts"

Effect.scoped(
  Effect.gen(function* () {
    const server = yield* EmbeddedPostgres.make({ dataFolder: process.argv[2] ?? "" })
    const processId = yield* server.processId
    process.stdout.write(`${JSON.stringify({ processId, port: server.port, adopted: server.adopted })}\n`)
    return yield* Effect.never
  })
).pipe(
  Effect.tapError((error) => Effect.sync(() => process.stderr.write(`${error.message}\n`))),
  NodeRuntime.runMain({ disableErrorReporting: true })
)
