/**
 * Searches, in pages, newest first (semantics search.*). A page begins after an object, so that no object comes twice
 * or is left out if others change between two pages.
 */
import { Effect, Result } from "effect"
import { LIMIT_DEFAULT } from "../../api/List.ts"
import { ParameterInvalid } from "../../domain/Errors.ts"
import { parse } from "../../domain/SearchQuery.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { AccountId, Identified } from "../../engine/log/Document.ts"
import type { Resource } from "../../payments/shared/Documents.ts"
import { queryCondition, type SearchedBy } from "../../payments/shared/Search.ts"
import type { Json } from "./Handler.ts"

/** Parameters of every search, decoded. */
interface SearchParameters {
  readonly query: string
  readonly limit?: number
  readonly page?: string
}

/** A search for `A` answers with this. */
export interface SearchResultOf<A> {
  readonly object: "search_result"
  readonly data: ReadonlyArray<A>
  readonly has_more: boolean
  readonly url: string
  readonly next_page: string | null
}

/** Looks for an account's documents of a kind. Fails with `ParameterInvalid` for a query or a page that is none. */
export const searchDocuments = Effect.fnUntraced(function* <A extends Identified, H>(
  input: { readonly account: AccountId; readonly path: string; readonly query: SearchParameters },
  kind: Resource<A, H>,
  searched: SearchedBy<A>
) {
  const { account, path } = input
  const { limit = LIMIT_DEFAULT, page, query: text } = input.query
  const parsed = parse(text, searched.fields)
  if (Result.isFailure(parsed)) {
    const { position, problem } = parsed.failure
    return yield* new ParameterInvalid({ param: "query", rule: `a search query: at character ${position}, ${problem}` })
  }
  const { filters, matches } = queryCondition(parsed.success, searched)
  const prefix = kind.prefix!
  const olderThan = page === undefined ? undefined : idOf(page, prefix)
  if (olderThan === null) {
    return yield* new ParameterInvalid({ param: "page", rule: "the `next_page` of an earlier answer" })
  }
  const { documents, hasMore } = yield* Accounts.use((accounts) =>
    accounts.search(account, {
      kind: kind.name,
      prefix,
      filters,
      matches: (value) => matches(value as A),
      limit,
      ...(olderThan !== undefined && { olderThan })
    })
  )
  return searchJson<A>(documents, hasMore ? pageBehind(documents.at(-1)!.id) : null, path)
})

/** The opaque name of the page that begins after an object. */
const pageBehind = (id: string): string => Buffer.from(id).toString("base64url")

/** Returns the id that a page begins after; null if the page's id does not have the prefix. */
const idOf = (page: string, prefix: string): string | null => {
  const id = Buffer.from(page, "base64url").toString("latin1")
  return pageBehind(id) === page && id.startsWith(`${prefix}_`) && /^\w+$/u.test(id) ? id : null
}

const searchJson = <A>(
  items: ReadonlyArray<{ readonly json: string }>,
  nextPage: string | null,
  path: string
): Json<SearchResultOf<A>> => {
  const data = items.map(({ json }) => json).join(",")
  const [url, next] = [path, nextPage].map((text) => JSON.stringify(text))
  return `{"object":"search_result","data":[${data}],"has_more":${nextPage !== null},"url":${url},"next_page":${next}}`
}
