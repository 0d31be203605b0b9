/**
 * One reading of a request's target (semantics T26; RFC 9112, 3.2). Whatever form a client sends, all of the service
 * sees the origin form, path and query as they were written: routes, pages, the log of requests and other processes.
 */
import type { IncomingMessage } from "node:http"

/** What a client sends that takes the server for a proxy, such as `curl -x`. */
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
 * Tells whether a target, in origin form if it has one, is none that a client may send. A fragment is never sent, and
 * the asterisk stands for the server itself, of which only OPTIONS asks something.
 */
export const isWrongTarget = ({ method, url = "" }: Pick<IncomingMessage, "method" | "url">): boolean =>
  url.startsWith("/") ? url.includes("#") : !(url === "*" && method === "OPTIONS")
