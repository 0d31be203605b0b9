/**
 * Runs a command of `till`. SIGINT and SIGTERM end it in order: it accepts no new work, finishes and stores running
 * work, and stops the database. While a service waits for other processes to take over, a second signal ends that wait;
 * further signals have no effect. The exit code is then 0, but 1 for an unfinished command or a failure.
 */
// First, because parsers that were made before it would stay interpreted.
import "effect/schema/SchemaJITCompiler/enable"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Exit, Logger } from "effect"
import { reportFailure, run } from "./Till.ts"

run.pipe(
  reportFailure,
  // Logs go to standard error, because other programs read a command's standard output.
  Effect.provide([NodeServices.layer, Logger.layer([Logger.withConsoleError(Logger.formatSimple)])]),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    teardown: (exit, onExit) =>
      onExit(Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause) ? Number(process.exitCode ?? 0) : 1)
  })
)
