/** `till dashboard` prints a link that signs a merchant's owner in to the dashboard (semantics dashboard.links). */
import { Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import * as app from "../app.ts"

/** Prints the link alone, so that a shell can use it. */
export const dashboard = Command.make(
  "dashboard",
  {
    merchant: Flag.String("merchant").pipe(
      Flag.optional,
      Flag.withDescription("ID of the merchant, mer_…; the default merchant if omitted")
    )
  },
  ({ merchant }) =>
    app.Administration.use(({ carryOut }) =>
      carryOut({ _tag: "LinkToDashboard", merchant: Option.getOrNull(merchant) })
    ).pipe(
      Effect.provide(app.administration),
      Effect.flatMap(({ link }) => Console.log(link))
    )
).pipe(
  Command.withDescription("Print a link that signs the merchant's owner in to the dashboard, once, within 10 minutes")
)
