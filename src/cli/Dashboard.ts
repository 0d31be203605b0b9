/** `till dashboard` prints a link that signs a merchant's owner in to the dashboard (semantics dashboard.links). */
import { Console, Effect } from "effect"
import * as app from "../app.ts"

/** Makes a link for a merchant; for the default merchant without one. */
export const linkFor = (merchant: string | null) =>
  app.Administration.use(({ carryOut }) => carryOut({ _tag: "LinkToDashboard", merchant })).pipe(
    Effect.provide(app.administration),
    Effect.map(({ link }) => link ?? "")
  )

/** Prints the link alone, so that a shell can use it, or as JSON. */
export const dashboard = (merchant: string | null, json: boolean) =>
  Effect.flatMap(linkFor(merchant), (link) => Console.log(json ? JSON.stringify({ link }) : link))
