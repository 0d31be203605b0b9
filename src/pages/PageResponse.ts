/**
 * Pages as HTTP responses. Every page gets the same headers: nothing from elsewhere, no script and no style within the
 * page, no address of it told to others, no copy kept.
 */
import { HttpServerResponse } from "effect/http"
import type { Html } from "./Html.ts"

export interface PageOptions {
  /** 200 unless said otherwise. */
  readonly status?: number
  /** Where a form of the page may be redirected to, beside Till itself: URLs, of which only the origin counts. */
  readonly formTargets?: ReadonlyArray<string | null>
  /** Who may show the page in a frame: nobody, unless said otherwise. */
  readonly frameAncestors?: ReadonlyArray<string>
  /** How long browsers may keep the page; payers' pages are never kept. */
  readonly cacheControl?: string
}

/** A whole page, sent as HTML. */
export const page = (document: Html, options: PageOptions = {}): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(document.text, {
    status: options.status ?? 200,
    contentType: "text/html; charset=utf-8",
    headers: headersOf(options)
  })

/** Leads a browser on with GET. The URL has to be one of Till's own or of the merchant's own. */
export const seeOther = (location: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.empty({ status: 303, headers: { ...COMMON, "cache-control": "no-store", location } })

const COMMON = { "referrer-policy": "no-referrer", "x-content-type-options": "nosniff" }

const headersOf = ({ cacheControl = "no-store", formTargets = [], frameAncestors = [] }: PageOptions) => ({
  ...COMMON,
  "cache-control": cacheControl,
  "content-security-policy": contentSecurityPolicy({ formTargets, frameAncestors }),
  "cross-origin-opener-policy": "same-origin",
  // Old browsers know this one only; it cannot name origins.
  ...(frameAncestors.length === 0 && { "x-frame-options": "DENY" })
})

/** Browsers hold the redirects that a form leads to against `form-action`, so the merchant's origin has to be in it. */
const contentSecurityPolicy = ({
  formTargets,
  frameAncestors
}: Required<Pick<PageOptions, "formTargets" | "frameAncestors">>): string =>
  [
    "default-src 'self'",
    "img-src 'self' data:",
    "object-src 'none'",
    "base-uri 'none'",
    `form-action ${[...new Set(["'self'", ...formTargets.flatMap(sourceOf)])].join(" ")}`,
    `frame-ancestors ${frameAncestors.length === 0 ? "'none'" : frameAncestors.join(" ")}`
  ].join("; ")

/** A URL as a source of the policy; what that grammar cannot express (an app's scheme, IPv6) by its scheme. */
const sourceOf = (url: string | null): ReadonlyArray<string> => {
  const parsed = url === null ? null : URL.parse(url)
  if (parsed === null) return []
  const isHost = /^https?:$/.test(parsed.protocol) && /^[a-z0-9.-]+$/.test(parsed.hostname)
  return [isHost ? parsed.origin : parsed.protocol]
}
