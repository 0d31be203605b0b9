/** The `till` command: its subcommands, and the report of a failure to the person at the terminal. */
import { Cause, Effect, Exit, Option } from "effect"
import { Command } from "effect/cli"
import { VERSION } from "../app.ts"
import { backup } from "./Backup.ts"
import { cluster } from "./Cluster.ts"
import { dashboard } from "./Dashboard.ts"
import { listen } from "./Listen.ts"
import { logs } from "./Logs.ts"
import { keys, merchants } from "./Merchants.ts"
import { rebuild, scrub, verify } from "./Maintenance.ts"
import { restore } from "./Restore.ts"
import { serve } from "./Serve.ts"
import { trigger } from "./Trigger.ts"

const till = Command.make("till").pipe(
  Command.withDescription("A payments service that you run yourself"),
  Command.withSubcommands([
    serve,
    dashboard,
    cluster,
    merchants,
    keys,
    listen,
    trigger,
    logs,
    verify,
    scrub,
    rebuild,
    backup,
    restore
  ])
)

/** Runs the command line of this process. */
export const run = Command.run(till, { version: VERSION })

/**
 * Reports a failure that an operator can mend as one line on standard error, without a stack; a defect is a bug and is
 * printed in full. Interruption by a signal prints nothing.
 */
export const reportFailure = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.onExit(effect, (exit) => (Exit.isFailure(exit) ? report(exit.cause) : Effect.void))

const report = (cause: Cause.Cause<unknown>) =>
  Effect.sync(() => {
    if (Cause.hasInterruptsOnly(cause)) return
    const failure = Cause.findErrorOption(cause)
    if (Option.isNone(failure)) {
      process.stderr.write(`till: ${Cause.pretty(cause)}\n`)
      return
    }
    const error = failure.value
    // The command line's parser has already printed the mistake in the arguments.
    if (typeof error === "object" && error !== null && "_tag" in error && error._tag === "ShowHelp") return
    process.stderr.write(`till: ${error instanceof Error ? error.message : String(error)}\n`)
  })
