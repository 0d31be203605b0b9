/** URLs that merchants hand over (semantics T23): absolute, as the WHATWG parser reads them. */
import { Schema } from "effect"
import { text, TEXT_LENGTH_MAX } from "./Text.ts"

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
      toJsonSchema: () => ({ format: "uri", minLength: 1 })
    })
  )
  .annotate({ rule: `an absolute http or https URL of at most ${TEXT_LENGTH_MAX} characters` })

/** Where a browser is sent back to; an app's own scheme is fine. */
export const RedirectUrl = text()
  .check(
    Schema.makeFilter(
      (url: string) => {
        const scheme = schemeOf(url)
        return scheme !== undefined && !REDIRECT_SCHEMES_FORBIDDEN.has(scheme)
      },
      { toJsonSchema: () => ({ format: "uri", minLength: 1 }) }
    )
  )
  .annotate({ rule: `an absolute URL of at most ${TEXT_LENGTH_MAX} characters that a browser can be redirected to` })

/** Whether this is an origin as browsers write it and as a content security policy, whose grammar knows no IPv6, can name it. */
export const isWebOrigin = (text: string): boolean =>
  /^https?:\/\/[a-z0-9.-]+(?::[0-9]{1,5})?$/.test(text) && URL.parse(text)?.origin === text

/** As parsed, because the parser ignores what a pattern would stumble over, such as a line feed within the scheme. */
const schemeOf = (url: string): string | undefined => URL.parse(url)?.protocol
