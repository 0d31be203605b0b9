/** Several runners of one service, each as a process of its own, on one Postgres database. */
import { Effect, Redacted, type Scope } from "effect"
import { freshDatabase } from "./Postgres.ts"
import { serverPort } from "./ServerPort.ts"
import { temporaryFolder } from "./TemporaryFolder.ts"
import { prepareTill, type TillProcess } from "./TillProcess.ts"

/**
 * Runners that are not started yet, on an empty database. They share a secret, which the first one to start creates.
 * Each `TILL_RUNNER_PORT` is known, so that a test finds the runner at an address that Till reports.
 */
export const prepareFleet = (
  count: number,
  variables: Readonly<Record<string, string>> = {}
): Effect.Effect<ReadonlyArray<TillProcess>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const shared = {
      DATABASE_URL: Redacted.value(yield* freshDatabase),
      TILL_SECRET_FILE: `${yield* temporaryFolder()}/secret`,
      ...variables
    }
    const prepare = Effect.flatMap(serverPort, (port) =>
      prepareTill({ variables: { ...shared, TILL_RUNNER_PORT: String(port) } })
    )
    return yield* Effect.replicateEffect(prepare, count)
  })

/** Runners that have started at the same time and are ready. */
export const startFleet = (
  count: number,
  variables?: Readonly<Record<string, string>>
): Effect.Effect<ReadonlyArray<TillProcess>, never, Scope.Scope> =>
  Effect.tap(prepareFleet(count, variables), (runners) =>
    Effect.promise(() => Promise.all(runners.map((runner) => runner.start())))
  )
