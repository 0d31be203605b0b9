/**
 * The URLs that lead a payer's browser back to a merchant: `success_url`, `cancel_url` and `return_url` (semantics
 * parameters.urls.redirect, pages.redirects).
 *
 * The merchant's text is kept. Shops sign their URLs, and a parser that serializes a URL changes its bytes:
 * `?next=/a&flag` would become `?next=%2Fa&flag=`, and the shop would refuse a payer who has paid. So nothing here
 * builds a URL from its parts: parameters are appended to the text, and only characters that a header cannot carry are
 * escaped.
 */
import { Schema } from "effect"
import { hasAuthority, text, TEXT_LENGTH_MAX } from "./Text.ts"

/** An app's own scheme. A reverse domain name (RFC 8252) can be followed by a single slash. */
const APP = /^(?:[a-z][a-z0-9+.-]*:\/\/|[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+:\/)/i

/** Schemes with a meaning to browsers or operating systems, none of which opens a merchant's own app. */
const TAKEN: ReadonlySet<string> = new Set(
  `about acap afp android-app blob cid content data dav dict dns edge facetime feed file filesystem finger ftp ftps
  git googlechrome gopher hcp imap intent intents irc jar javascript ldap ldaps livescript mailto market mhtml mid mk
  mms mocha news nfs nntp opera pop res resource rlogin rtsp search search-ms sftp shell shortcuts sip sips smb sms
  snews ssh svn tel telnet tftp urn vbs vbscript view-source vivaldi vnc webcal webcals ws wss wyciwyg xmpp`.split(
    /\s+/
  )
)
/** Families of such schemes: `ms-settings`, `chrome-extension`, `git+ssh`. */
const OF_A_FAMILY = /^(?:ms-|chrome|moz-|safari|webkit|itms|x-apple)|-extension$|\+/

/** Control characters, and blanks at the ends, which a parser would remove. */
// oxlint-disable-next-line no-control-regex
const LEFT_OUT = /[\x00-\x1f\x7f]|^ | $/

const isRedirectUrl = (url: string): boolean => {
  const parsed = URL.parse(url)
  if (parsed === null || LEFT_OUT.test(url) || parsed.username !== "" || parsed.password !== "") return false
  const scheme = parsed.protocol.slice(0, -1)
  return hasAuthority(url) || (APP.test(url) && !isWeb(parsed) && !TAKEN.has(scheme) && !OF_A_FAMILY.test(scheme))
}

const isWeb = ({ protocol }: URL): boolean => protocol === "https:" || protocol === "http:"

/** A URL to which a browser can be redirected: a web page, or an app by its own scheme. */
export const RedirectUrl = text()
  .check(Schema.makeFilter(isRedirectUrl, { toJsonSchema: () => ({ format: "uri", minLength: 1 }) }))
  .annotate({
    rule:
      `an absolute URL of at most ${TEXT_LENGTH_MAX} characters that a browser can be redirected to: https://…, ` +
      "http://…, or an app's own scheme (app://…), without username and password"
  })

/** The placeholder, also with encoded braces, which some libraries send. */
const SESSION_ID = /\{CHECKOUT_SESSION_ID\}|%7BCHECKOUT_SESSION_ID%7D/gi

/** Replaces every placeholder by the session's id, in path, query and fragment. */
export const withSessionId = (url: string, sessionId: string): string => url.replaceAll(SESSION_ID, sessionId)

/** Appends parameters to the query. All other bytes stay, including a parameter with the same name. */
export const withParameters = (url: string, parameters: Readonly<Record<string, string>>): string => {
  const hash = url.indexOf("#")
  const end = hash === -1 ? url.length : hash
  const given = url.slice(0, end)
  const mark = given.indexOf("?")
  const joint = mark === -1 ? "?" : mark === end - 1 || given.endsWith("&") ? "" : "&"
  return `${given}${joint}${new URLSearchParams(parameters).toString()}${url.slice(end)}`
}

/**
 * Returns a URL in the form that a `Location` header can carry. Printable ASCII stays; blanks and characters outside of
 * ASCII are percent-encoded in UTF-8, or in Punycode in the host of a web page, as every browser does.
 */
export const locationOf = (url: string): string => {
  if (!NOT_PRINTABLE.test(url)) return url
  const [scheme = ""] = /^[^:/?#]+:\/\//u.exec(url) ?? []
  const behind = url.slice(scheme.length)
  const [authority = ""] = scheme === "" ? [] : (/^[^/\\?#]*/u.exec(behind) ?? [])
  const rest = behind.slice(authority.length)
  const parsed = URL.parse(url)
  const isForeign = NOT_PRINTABLE.test(authority) && parsed !== null && isWeb(parsed)
  return scheme + (isForeign ? parsed.host : escaped(authority)) + escaped(rest)
}

const NOT_PRINTABLE = /[^\x21-\x7e]/

const escaped = (part: string): string => part.toWellFormed().replace(/[^\x21-\x7e]+/gu, encodeURIComponent)
