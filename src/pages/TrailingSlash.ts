/**
 * Paths match with and without a slash at their end, but links of pages are relative, because Till may lie below a
 * path: behind a slash they would lead elsewhere.
 */
import { HttpServerResponse } from "effect/http"

/** Leads to the same page without the slash; undefined if there is none. */
export const withoutSlash = (url: string): HttpServerResponse.HttpServerResponse | undefined => {
  const mark = url.indexOf("?")
  const end = mark === -1 ? url.length : mark
  if (!url.startsWith("/", end - 1)) return undefined
  const last = url.slice(url.lastIndexOf("/", end - 2) + 1, end - 1)
  return HttpServerResponse.redirect(`../${last}${url.slice(end)}`, { status: 308 })
}
