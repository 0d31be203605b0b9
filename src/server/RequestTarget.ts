/**
 * Normalises a request's target (semantics requests.target; RFC 9112, 3.2). Routes, pages, the request log and other
 * processes see every target in origin form: path and query as sent.
 */
import type { IncomingMessage } from "node:http"

/** The start of a target in absolute form, which a client sends to a proxy, such as `curl -x`. */
const ABSOLUTE = /^https?:\/\/[^/?#]+/i

/** Returns the origin form of a target in absolute form. Any other target stays as it is. */
export const originFormOf = (target: string): string => {
  if (target.startsWith("/")) return target
  const [origin] = ABSOLUTE.exec(target) ?? []
  if (origin === undefined) return target
  const rest = target.slice(origin.length)
  return rest.startsWith("/") ? rest : `/${rest}`
}

/**
 * True for a target that no client may send, after `originFormOf`. A fragment is never sent, and the asterisk stands
 * for the server itself, which only OPTIONS addresses.
 */
export const isWrongTarget = ({ method, url = "" }: Pick<IncomingMessage, "method" | "url">): boolean =>
  url.startsWith("/") ? url.includes("#") : !(url === "*" && method === "OPTIONS")
