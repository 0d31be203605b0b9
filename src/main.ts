/**
 * The `till` command. SIGINT and SIGTERM end it in order: nothing new is accepted, what is under way is answered and
 * written, the database stops. Where others are first given time to do without a service, a second signal ends that
 * time; further ones change nothing. Exit code 0 then, but 1 for a command that was not done; 1 after a failure.
 */
// First: parsers that exist before it would stay interpreted.
import "effect/schema/SchemaJITCompiler/enable"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Exit, Logger } from "effect"
import { reportFailure, run } from "./cli/Till.ts"

run.pipe(
  reportFailure,
  // Other programs read what commands print, so logs go where errors go.
  Effect.provide([NodeServices.layer, Logger.layer([Logger.withConsoleError(Logger.formatSimple)])]),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    teardown: (exit, onExit) =>
      onExit(Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause) ? Number(process.exitCode ?? 0) : 1)
  })
)
