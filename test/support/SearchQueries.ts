import type { SearchQuery } from "../../src/domain/SearchQuery.ts"

/** Returns the text of a query, which parses to the same query. */
export const print = ({ clauses, connective }: SearchQuery): string =>
  clauses
    .map(({ field, key, negated, operator, value }) => {
      const name = key === undefined ? field : `${field}[${quoted(key)}]`
      const text = typeof value === "string" ? quoted(value) : String(value)
      return `${negated ? "-" : ""}${name}${operator}${text}`
    })
    .join(` ${connective} `)

const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, (character) => `\\${character}`)}"`
