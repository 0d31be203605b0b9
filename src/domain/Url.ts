/** URLs that merchants hand over (semantics T23): absolute, as the WHATWG parser reads them. */
import { Schema } from "effect"
import { text } from "./Text.ts"

/** Schemes that would run or read something instead of leading somewhere. */
const REDIRECT_SCHEMES_FORBIDDEN: ReadonlySet<string> = new Set([
  "javascript:",
  "data:",
  "vbscript:",
  "file:",
  "about:",
  "blob:"
])

/** Where something is fetched from or sent to. */
export const WebUrl = text()
  .check(
    Schema.makeFilter((url: string) => ["http:", "https:"].includes(schemeOf(url) ?? ""), {
      toJsonSchema: () => ({ format: "uri" })
    })
  )
  .annotate({ rule: "an absolute http or https URL" })

/** Where a browser is sent back to; an app's own scheme is fine. */
export const RedirectUrl = text()
  .check(
    Schema.makeFilter(
      (url: string) => {
        const scheme = schemeOf(url)
        return scheme !== undefined && !REDIRECT_SCHEMES_FORBIDDEN.has(scheme)
      },
      { toJsonSchema: () => ({ format: "uri" }) }
    )
  )
  .annotate({ rule: "an absolute URL that a browser can be redirected to" })

/** As parsed, because the parser ignores what a pattern would stumble over, such as a line feed within the scheme. */
const schemeOf = (url: string): string | undefined => URL.parse(url)?.protocol
