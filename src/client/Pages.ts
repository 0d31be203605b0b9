/**
 * Iterates over the pages of searches (semantics search.*) and lists (spec: Pagination), in the direction away from the
 * cursor: in list order without a cursor or with `starting_after`, in reverse order with `ending_before`. The cursor is
 * the last item seen, so additions and removals during the iteration neither repeat nor skip an item.
 */

/** The parameters of a list. */
export type ListParameters = Readonly<Record<string, unknown>>

/** The part of a page that the iteration needs. */
export interface Page {
  readonly data: ReadonlyArray<{ readonly id: string }>
  readonly has_more: boolean
  /** The next page of a search; a list continues from the last item instead. */
  readonly next_page?: string | null
}

const isBackward = (parameters: ListParameters): boolean => parameters["ending_before"] !== undefined

/** Returns the items of a page, in the order of the iteration. */
export const itemsOf = (page: Page, parameters: ListParameters): Page["data"] =>
  isBackward(parameters) ? page.data.toReversed() : page.data

/** Returns the parameters for the next page; undefined after the last one. */
export const nextParameters = (page: Page, parameters: ListParameters): ListParameters | undefined => {
  if (page.next_page !== undefined) return page.next_page === null ? undefined : { ...parameters, page: page.next_page }
  const last = itemsOf(page, parameters).at(-1)
  if (!page.has_more || last === undefined) return undefined
  return { ...parameters, [isBackward(parameters) ? "ending_before" : "starting_after"]: last.id }
}

/** Yields all items, from a page that was requested before. */
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
