/** Searches: the envelope and the parameters of every search (semantics search.*). */
import { Schema } from "effect"
import { text } from "../domain/Text.ts"
import { listQuery } from "./List.ts"

export const QUERY_LENGTH_MAX = 1000

/** The query parameters of a search, with an example query. */
export const searchQuery = (example: string) => ({
  query: text(QUERY_LENGTH_MAX)
    .check(Schema.isMinLength(1))
    .annotate({
      rule: `a search query of at most ${QUERY_LENGTH_MAX} characters`,
      description:
        `The search query, such as \`${example}\`: clauses of a field, one of ` +
        "`:` `~` `>` `>=` `<` `<=` and a value, with `-` before it for the negation, and `AND` or `OR` between them.",
      examples: [example]
    }),
  limit: listQuery.limit,
  page: Schema.optionalKey(
    text().check(Schema.isMinLength(1)).annotate({
      rule: "the `next_page` of an earlier answer",
      description: "The `next_page` of an earlier response."
    })
  )
})

export const SearchResult = <S extends Schema.Top>(item: S) =>
  Schema.Struct({
    object: Schema.Literal("search_result"),
    data: Schema.Array(item),
    has_more: Schema.Boolean,
    url: Schema.String,
    next_page: Schema.NullOr(Schema.String)
  })
