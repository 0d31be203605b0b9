/**
 * Walks searches (semantics 9.19) from page to page, and lists (spec: Pagination) always away from the cursor: without
 * one or with `starting_after` in their own order, with `ending_before` against it. No item comes twice and none is
 * left out, whatever is added or removed meanwhile, because a cursor is the last item seen.
 */
import { Effect, Option, Stream } from "effect"

/** Parameters of a list. */
export type ListParameters = Readonly<Record<string, unknown>>

/** A page, as far as walking needs to know it. */
export interface Page {
  readonly data: ReadonlyArray<{ readonly id: string }>
  readonly has_more: boolean
  /** A search names its next page; a list goes on from the last item. */
  readonly next_page?: string | null
}

const isBackward = (parameters: ListParameters): boolean => parameters["ending_before"] !== undefined

/** The items of a page, in the order of walking. */
const itemsOf = (page: Page, parameters: ListParameters): Page["data"] =>
  isBackward(parameters) ? page.data.toReversed() : page.data

/** Makes the query for the next page; undefined after the last one. */
const nextParameters = (page: Page, parameters: ListParameters): ListParameters | undefined => {
  if (page.next_page !== undefined) return page.next_page === null ? undefined : { ...parameters, page: page.next_page }
  const last = itemsOf(page, parameters).at(-1)
  if (!page.has_more || last === undefined) return undefined
  return { ...parameters, [isBackward(parameters) ? "ending_before" : "starting_after"]: last.id }
}

/** All items, from the page with the given parameters on. */
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

/** All items, from a page on that is fetched already. */
export const iteratePages = async function* (
  fetchPage: (parameters: ListParameters) => Promise<Page>,
  parameters: ListParameters,
  first: Promise<Page>
): AsyncGenerator<Page["data"][number], void> {
  let page = await first
  let current: ListParameters | undefined = parameters
  for (;;) {
    yield* itemsOf(page, current)
    current = nextParameters(page, current)
    if (current === undefined) return
    page = await fetchPage(current)
  }
}
