/** The items of pages as a stream, in the direction away from the cursor (Pages.ts). */
import { Effect, Option, Stream } from "effect"
import { itemsOf, type ListParameters, nextParameters, type Page } from "./Pages.ts"

export type { Page } from "./Pages.ts"

/** Streams all items, from the page with these parameters on. */
export const streamPages = <E>(
  fetchPage: (parameters: ListParameters) => Effect.Effect<Page, E>,
  parameters: ListParameters
): Stream.Stream<Page["data"][number], E> =>
  Stream.paginate(parameters, (current) =>
    Effect.map(
      fetchPage(current),
      (page) => [itemsOf(page, current), Option.fromUndefinedOr(nextParameters(page, current))] as const
    )
  )
