/** Pages as HTTP responses, whose headers restrict the browser to the page's own resources. */
import { HttpServerResponse } from "effect/http"
import type { Html } from "./Html.ts"
import { sourcesOf } from "./Images.ts"

export interface PageOptions {
  /** 200 by default. */
  readonly status?: number
  /** URLs that a form may redirect to, besides Till's own. Only the scheme is used. */
  readonly formTargets?: ReadonlyArray<string | null>
  /** URLs of external images on the page; null for none. */
  readonly pictures?: ReadonlyArray<string | null>
  /** The page of another origin that this one shows in a frame; without it, frames show Till's own pages only. */
  readonly framed?: string | null
  /** Origins that may frame the page; none by default. */
  readonly frameAncestors?: ReadonlyArray<string>
  /** The `Referrer-Policy` header. The default, for payers' pages, sends no referrer. */
  readonly referrerPolicy?: "no-referrer" | "same-origin"
  /** The `Cache-Control` header. The default, for payers' pages, forbids caching. */
  readonly cacheControl?: string
}

export const page = (document: Html, options: PageOptions = {}): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(document.text, {
    status: options.status ?? 200,
    contentType: "text/html; charset=utf-8",
    headers: headersOf(options)
  })

/** Redirects with GET. The location must be Till's own or the merchant's own. */
export const seeOther = (location: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.empty({ status: 303, headers: { ...COMMON, "cache-control": "no-store", location } })

/** Redirects. The page's script gets the location as data instead. */
export const redirect = (wantsData: boolean, location: string): HttpServerResponse.HttpServerResponse =>
  wantsData ? data(200, { location }) : seeOther(location)

export const data = (status: number, body: object): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(body, { status, headers: { ...COMMON, "cache-control": "no-store" } })

const COMMON = { "referrer-policy": "no-referrer" }

const headersOf = ({
  cacheControl = "no-store",
  formTargets = [],
  frameAncestors = [],
  framed = null,
  pictures = [],
  referrerPolicy = "no-referrer"
}: PageOptions) => ({
  "referrer-policy": referrerPolicy,
  "cache-control": cacheControl,
  "content-security-policy": contentSecurityPolicy({ formTargets, frameAncestors, framed, pictures }),
  "cross-origin-opener-policy": "same-origin",
  // For old browsers without `frame-ancestors`. The header cannot name origins, so it is left out where a frame is
  // allowed.
  ...(frameAncestors.length === 0 && { "x-frame-options": "DENY" })
})

/**
 * Browsers check every redirect after a form against `form-action`, including redirects of the merchant's server, which
 * Till does not know. A blocked redirect would leave a payer who has paid on the form, so the policy allows the scheme
 * instead of the origin.
 */
const contentSecurityPolicy = ({
  formTargets,
  frameAncestors,
  framed,
  pictures
}: Required<Pick<PageOptions, "formTargets" | "frameAncestors" | "framed" | "pictures">>): string =>
  [
    "default-src 'self'",
    ["img-src 'self' data:", ...sourcesOf(pictures)].join(" "),
    "object-src 'none'",
    "base-uri 'none'",
    `form-action ${[...new Set(["'self'", ...formTargets.flatMap(sourceOf)])].join(" ")}`,
    `frame-ancestors ${frameAncestors.length === 0 ? "'none'" : frameAncestors.join(" ")}`,
    ...(framed === null ? [] : [`frame-src ${new URL(framed).origin}`])
  ].join("; ")

const sourceOf = (url: string | null): ReadonlyArray<string> => {
  const parsed = url === null ? null : URL.parse(url)
  return parsed === null ? [] : [parsed.protocol]
}
