/**
 * Where a page is, and how its links lead to others. Till's base address may have a path of its own, of which only a
 * proxy in front of it knows, so every link is relative to the page.
 */
import type { HttpServerRequest } from "effect/http"

/** Below the dashboard, such as `/test/payments/pi_…`; empty for the dashboard itself. */
export type DashboardPath = "" | `/${string}`

export interface PageLocation {
  /** Of the page itself, as it was asked for, without its query. */
  readonly path: DashboardPath
  /** Folders between Till's base address and the page. */
  readonly depth: number
}

const ROOT = "/dashboard"

export const locationOf = ({ url }: Pick<HttpServerRequest.HttpServerRequest, "url">): PageLocation => {
  const path = url.split("?", 1)[0]!
  return { path: path.slice(ROOT.length) as DashboardPath, depth: path.split("/").length - 2 }
}

/** A query as a link has it, without what is undefined or empty. */
export type Query = Readonly<Record<string, string | number | null | undefined>>

/** A link from one page to another. */
export const link = ({ depth }: Pick<PageLocation, "depth">, path: DashboardPath, query: Query = {}): string => {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value == null || value === "" ? [] : [[name, String(value)]]
  )
  const text = given.length === 0 ? "" : `?${new URLSearchParams(given).toString()}`
  return `${depth === 0 ? "." : Array.from({ length: depth }, () => "..").join("/")}${ROOT}${path}${text}`
}

/** The pages that somebody may be led to after signing in: those of an environment, and nothing else. */
export const isReturnPath = (path: string): path is DashboardPath =>
  /^\/(?:test|live)(?:\/[0-9A-Za-z_-]{1,64}){0,4}$/.test(path)
