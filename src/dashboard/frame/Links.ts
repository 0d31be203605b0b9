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

/** True for pages that sign-in may lead back to: those of an environment. This excludes other sites. */
export const isReturnPath = (path: string): path is DashboardPath =>
  /^\/(?:test|live)(?:\/[0-9A-Za-z_-]{1,64}){0,4}$/.test(path)
