/**
 * Examines an installation: what a support engineer asks first, and how to mend what is wrong. It changes nothing,
 * works with and without a running service, and shows no secret (semantics operation.doctor).
 */
import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import * as Config from "../config.ts"
import type { InvalidConfiguration, TillConfigShape } from "../config.ts"
import * as Database from "../postgres/Database.ts"
import * as DatabaseChecks from "./DatabaseChecks.ts"
import { type Finding, ok, problem } from "./Finding.ts"
import * as MachineChecks from "./MachineChecks.ts"
import * as ServiceChecks from "./ServiceChecks.ts"
import * as Upkeep from "./Upkeep.ts"

interface Questions {
  /** Fails with the reason for which a service could not listen on the configured port. */
  readonly freePort: (config: TillConfigShape) => Effect.Effect<unknown, InvalidConfiguration>
  /** Fails unless the database was written with the secret of the configuration, which must exist. */
  readonly secretRoll: (
    config: TillConfigShape
  ) => Effect.Effect<Upkeep.SecretRoll, { readonly message: string }, PgClient.PgClient | Database.Database>
}

export const examine = Effect.fnUntraced(function* (questions: Questions) {
  const program = MachineChecks.program()
  const loaded = yield* Effect.result(Config.load)
  const variables = yield* Config.setVariables
  const configuration = MachineChecks.configuration(variables, yield* Config.unknownVariables)
  if (loaded._tag === "Failure") {
    const wrong = problem("configuration", loaded.failure.message, "Correct the variable; nothing else was checked.")
    return [program, wrong, ...MachineChecks.limits()]
  }
  const config = loaded.success
  const now = yield* Clock.currentTimeMillis
  return [
    program,
    ...configuration,
    ...MachineChecks.settings(config),
    ...MachineChecks.files(config),
    ...MachineChecks.limits(),
    yield* ServiceChecks.service(config, questions.freePort(config)),
    ...(yield* database(config, questions, now)),
    Upkeep.backup(config.dataFolder, now),
    ...(config.scrubDays === 0 ? [] : [Upkeep.scrub(config.dataFolder, config.scrubDays, now)])
  ] satisfies ReadonlyArray<Finding> as ReadonlyArray<Finding>
})

const database = (config: TillConfigShape, { secretRoll }: Questions, now: number) => {
  const free = config.isEmbedded ? MachineChecks.freeBytesOf(config.dataFolder)?.free : undefined
  const secret = Effect.match(secretRoll(config), {
    onSuccess: (roll) => [
      ok("files.secret.own", "The database was written with this secret"),
      ...Upkeep.secretRoll(roll, now)
    ],
    onFailure: ({ message }) => [
      problem("files.secret.own", message, "With another secret nobody can sign in and no webhook can be signed.")
    ]
  })
  return DatabaseChecks.checks(free, MachineChecks.isThere(config.secretFile) ? secret : undefined).pipe(
    Effect.provide(Database.layerReading(config)),
    Effect.catch(({ message }) =>
      Effect.succeed<ReadonlyArray<Finding>>([
        problem("database", message, "Till cannot work without its database: docs/configuration.md, DATABASE_URL.")
      ])
    )
  )
}
