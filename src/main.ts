#!/usr/bin/env node
/**
 * The `till` command. SIGINT and SIGTERM end it in order: nothing new is accepted, what is under way is answered and written,
 * the database stops. Further signals while that goes on change nothing. Exit code 0 then; 1 after a failure, or if the
 * database hangs: what was answered is durable, and whoever sent the signal does not wait for good.
 */
// First of all: parsers that exist before it would stay interpreted.
import "effect/schema/SchemaJITCompiler/enable"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Cause, Effect, Exit } from "effect"
import { reportFailure, run } from "./cli/Till.ts"

/** How long an end may take, in milliseconds. */
const END_MILLIS_MAX = 9500

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => {
    setTimeout(() => {
      process.stderr.write("till: The database did not answer in time; what was answered is durable.\n")
      process.exit(1)
    }, END_MILLIS_MAX).unref()
  })
}

run.pipe(
  reportFailure,
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause) ? 0 : 1)
  })
)
