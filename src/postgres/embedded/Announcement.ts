/** Lines about steps of a start that take long, for the person who waits. Without a provided service none is shown. */
import { Context, Effect } from "effect"

export const Announcement = Context.Reference<(line: string) => Effect.Effect<void>>("till/postgres/Announcement", {
  defaultValue: () => () => Effect.void
})

/** Announces a step before it begins. */
export const announce = (line: string): Effect.Effect<void> => Effect.flatMap(Announcement, (show) => show(line))
