/** `till dashboard` prints a link that signs a merchant's owner in to the dashboard (semantics dashboard.links). */
import { Console, Effect } from "effect"
import * as app from "../app.ts"

interface Asked {
  /** Null for the default merchant. */
  readonly merchant: string | null
  /** True turns the owner's two-step verification off. */
  readonly turnOffTwoStep?: boolean
}

/** Makes a link for a merchant. */
export const linkFor = (asked: Asked) =>
  app.Administration.use(({ carryOut }) => carryOut({ _tag: "LinkToDashboard", ...asked })).pipe(
    Effect.provide(app.administration),
    Effect.map(({ link }) => link ?? "")
  )

/** Prints the link alone, so that a shell can use it, or as JSON. */
export const dashboard = (asked: Asked, json: boolean) =>
  Effect.flatMap(linkFor(asked), (link) => Console.log(json ? JSON.stringify({ link }) : link))
