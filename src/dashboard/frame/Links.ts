/** Addresses of pages. Every link is relative, because a proxy may serve Till below a path. */
import type { HttpServerRequest } from "effect/http"

/** A path below `/dashboard`, such as `/test/payments/pi_…`; empty for `/dashboard` itself. */
export type DashboardPath = "" | `/${string}`

export interface PageLocation {
  readonly path: DashboardPath
  /** Folders between Till's base address and the page. */
  readonly depth: number
}

const ROOT = "/dashboard"

export const locationOf = ({ url }: Pick<HttpServerRequest.HttpServerRequest, "url">): PageLocation => {
  const path = url.split("?", 1)[0]!
  return { path: path.slice(ROOT.length) as DashboardPath, depth: path.split("/").length - 2 }
}

/** Query parameters of a link. Undefined, null and empty values are left out. */
export type Query = Readonly<Record<string, string | number | null | undefined>>

/** Returns a relative link from a page at this depth. */
export const link = ({ depth }: Pick<PageLocation, "depth">, path: DashboardPath, query: Query = {}): string => {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value == null || value === "" ? [] : [[name, String(value)]]
  )
  const text = given.length === 0 ? "" : `?${new URLSearchParams(given).toString()}`
  return `${depth === 0 ? "." : Array.from({ length: depth }, () => "..").join("/")}${ROOT}${path}${text}`
}

/** The longest query of a page that sign-in leads back to; without a longer one the page itself is shown. */
const RETURN_QUERY_MAX = 1000

/**
 * Returns the page that sign-in leads back to, with its filters, or an empty path: only pages of an environment, which
 * excludes other sites. The address of a file leads to its list, and a notice is not shown a second time.
 */
export const returnPathOf = (asked: string): DashboardPath => {
  const [path = "", query = ""] = asked.split(/\?(.*)/s, 2)
  const page = /^(\/(?:test|live)(?:\/[0-9A-Za-z_-]{1,64}){0,4})(?:\.csv)?$/.exec(path)?.[1]
  if (page === undefined) return ""
  const kept = new URLSearchParams(query)
  kept.delete("done")
  const text = kept.toString()
  return (text === "" || text.length > RETURN_QUERY_MAX ? page : `${page}?${text}`) as DashboardPath
}
