/** The command that runs the service. */
import { Effect, Fiber, Option } from "effect"
import { Command, GlobalFlag } from "effect/cli"
import cluster from "node:cluster"
import { summaryOf } from "../Summaries.ts"
import { within } from "./Flags.ts"
import { lazily } from "./Lazily.ts"

const RUNNERS_MAX = 64

const runners = within(
  "runners",
  [1, RUNNERS_MAX],
  1,
  "Processes that serve the port together, about one per core; 1 by default"
)

/** Loads the command, and the service unless other processes run it. */
const load = async (runners: number) => {
  const [command] = await Promise.all([
    import("../Serve.ts"),
    ...(runners === 1 || cluster.isWorker ? [import("../../service.ts")] : [])
  ])
  return command
}

/** Prepares the database, and loads the service while another process works on that. */
const loadPrepared = Effect.fnUntraced(function* (runners: number) {
  const waiting = Promise.withResolvers<void>()
  const preparing = yield* lazily(import("../Prepare.ts"), ({ prepare }) => prepare(waiting.resolve)).pipe(
    Effect.ensuring(Effect.sync(waiting.resolve)),
    Effect.forkChild
  )
  yield* Effect.promise(() => waiting.promise)
  const command = yield* Effect.promise(() => load(runners))
  yield* Fiber.join(preparing)
  return command
})

export const serve = Command.make("serve", { runners }, ({ runners }) =>
  Effect.gen(function* () {
    const level = Option.getOrUndefined(yield* GlobalFlag.LogLevel)
    const { serve } = yield* cluster.isWorker ? Effect.promise(() => load(runners)) : loadPrepared(runners)
    return yield* serve(runners, level)
  })
).pipe(
  Command.withShortDescription(summaryOf("serve")),
  Command.withDescription(
    "Run the service until it receives SIGINT or SIGTERM. Its settings are environment variables, listed in " +
      "docs/configuration.md: PORT (4242; 0 for any free port), TILL_DATA_DIR (./.till), DATABASE_URL (by default an embedded " +
      "Postgres), TILL_SK_TEST and the other keys (generated and printed once; if the output is no terminal, live-mode " +
      "keys are written to a file in TILL_DATA_DIR). The service accepts requests once it has printed its address. With " +
      "DATABASE_URL, several services may share one database: a service that shuts down answers 503 at /readyz, goes " +
      "on answering requests until load balancers have noticed, and exits within TILL_DRAIN_SECONDS (10). A second " +
      "signal skips that wait. --runners N serves the port with N processes, also with the embedded Postgres; a process " +
      "that dies is restarted."
  )
)
