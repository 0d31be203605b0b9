/**
 * Pages as HTTP responses. Every page gets the same headers, by which the browser loads nothing from elsewhere but the
 * page's own pictures, runs no script and no style within the page, tells the page's address to nobody, and keeps no
 * copy.
 */
import { HttpServerResponse } from "effect/http"
import type { Html } from "./Html.ts"
import { sourcesOf } from "./Images.ts"

export interface PageOptions {
  /** 200 by default. */
  readonly status?: number
  /** URLs that a form of the page may be redirected to, beside Till's own. Only their scheme counts. */
  readonly formTargets?: ReadonlyArray<string | null>
  /** Addresses of the pictures that the page shows from elsewhere; null stands for none. */
  readonly pictures?: ReadonlyArray<string | null>
  /** Origins that may show the page in a frame; none by default. */
  readonly frameAncestors?: ReadonlyArray<string>
  /** The `Referrer-Policy` header. By default nobody is told the page's address, as payers' pages need. */
  readonly referrerPolicy?: "no-referrer" | "same-origin"
  /** The `Cache-Control` header. By default browsers keep nothing, as payers' pages need. */
  readonly cacheControl?: string
}

/** A whole page, sent as HTML. */
export const page = (document: Html, options: PageOptions = {}): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(document.text, {
    status: options.status ?? 200,
    contentType: "text/html; charset=utf-8",
    headers: headersOf(options)
  })

/** Leads a browser on with GET. Callers pass only URLs of Till's own or of the merchant's own. */
export const seeOther = (location: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.empty({ status: 303, headers: { ...COMMON, "cache-control": "no-store", location } })

/** Leads a browser on. The page's script gets the location as data instead. */
export const redirect = (wantsData: boolean, location: string): HttpServerResponse.HttpServerResponse =>
  wantsData ? data(200, { location }) : seeOther(location)

/** An answer for a page's script, which wants data instead of a page. */
export const data = (status: number, body: object): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(body, { status, headers: { ...COMMON, "cache-control": "no-store" } })

const COMMON = { "referrer-policy": "no-referrer" }

const headersOf = ({
  cacheControl = "no-store",
  formTargets = [],
  frameAncestors = [],
  pictures = [],
  referrerPolicy = "no-referrer"
}: PageOptions) => ({
  "referrer-policy": referrerPolicy,
  "cache-control": cacheControl,
  "content-security-policy": contentSecurityPolicy({ formTargets, frameAncestors, pictures }),
  "cross-origin-opener-policy": "same-origin",
  // Old browsers know no `frame-ancestors`. This header cannot name origins, so it is left out where some are allowed.
  ...(frameAncestors.length === 0 && { "x-frame-options": "DENY" })
})

/**
 * Browsers hold every redirect that a form leads to against `form-action`: those of Till, and those that the merchant's
 * own address goes on with, of which Till knows nothing. One that is refused would leave a payer who has paid on the
 * form, so the policy names the scheme and not the origin.
 */
const contentSecurityPolicy = ({
  formTargets,
  frameAncestors,
  pictures
}: Required<Pick<PageOptions, "formTargets" | "frameAncestors" | "pictures">>): string =>
  [
    "default-src 'self'",
    ["img-src 'self' data:", ...sourcesOf(pictures)].join(" "),
    "object-src 'none'",
    "base-uri 'none'",
    `form-action ${[...new Set(["'self'", ...formTargets.flatMap(sourceOf)])].join(" ")}`,
    `frame-ancestors ${frameAncestors.length === 0 ? "'none'" : frameAncestors.join(" ")}`
  ].join("; ")

const sourceOf = (url: string | null): ReadonlyArray<string> => {
  const parsed = url === null ? null : URL.parse(url)
  return parsed === null ? [] : [parsed.protocol]
}
