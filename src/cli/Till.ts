/** The `till` command: its subcommands, and the report of a failure to the person at the terminal. */
import { Cause, Console, Effect, Exit, Option } from "effect"
import { Argument, Command, Completions } from "effect/cli"
import { VERSION } from "../version.ts"
import { cluster, dashboard, keys, merchants, open } from "./commands/Administration.ts"
import { events, fixtures, listen, logs, trigger } from "./commands/Develop.ts"
import { backup, doctor, erase, purge, rebuild, restore, scrub, secret, verify } from "./commands/Maintenance.ts"
import { operations } from "./commands/Operations.ts"
import { processor, processors } from "./commands/Processors.ts"
import { delete_, get, list, post } from "./commands/Resources.ts"
import { serve } from "./commands/Serve.ts"
import { summaryOf } from "./Summaries.ts"

const commands = [
  serve,
  dashboard,
  open,
  cluster,
  listen,
  trigger,
  events,
  logs,
  fixtures,
  processor,
  get,
  list,
  post,
  delete_,
  merchants,
  keys,
  processors,
  operations,
  erase,
  purge,
  doctor,
  verify,
  scrub,
  rebuild,
  secret,
  backup,
  restore
] as const

const root = Command.make("till").pipe(Command.withDescription("A payments service that you run yourself"))

const completion = Command.make(
  "completion",
  { shell: Argument.Literals("shell", ["bash", "zsh", "fish"]).pipe(Argument.withDescription("bash, zsh or fish")) },
  ({ shell }) => {
    const till = Completions.fromCommand(root.pipe(Command.withSubcommands(commands)))
    return Console.log(Completions.generate("till", shell, till))
  }
).pipe(
  Command.withShortDescription(summaryOf("completion")),
  Command.withDescription(`${summaryOf("completion")}: source <(till completion bash)`)
)

const till = root.pipe(Command.withSubcommands([...commands, completion]))

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
