/** `till serve`: runs the service until it is told to stop. */
import { Command } from "effect/cli"
import * as app from "../app.ts"

export const serve = Command.make("serve", {}, () => app.serve).pipe(Command.withDescription("Run the service"))
