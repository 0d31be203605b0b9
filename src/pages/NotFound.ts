/**
 * Answers invalid addresses below the paths of payers' pages with a page, because people follow links that were
 * truncated or mangled. Addresses that a page's own route can handle go to that route.
 */
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { notFound, notice } from "../html/Notice.ts"
import { page } from "../html/PageResponse.ts"
import { translationOf } from "../html/Routing.ts"

/** Methods of the pages with an id. */
const METHODS: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ["authenticate", ["GET", "HEAD", "POST"]],
  ["challenge", ["GET", "HEAD"]],
  ["checkout", ["GET", "HEAD", "POST"]],
  ["pay", ["GET", "HEAD", "POST"]]
])

/** The page behind an id, of GET and HEAD. */
const BEHIND: ReadonlyMap<string, string> = new Map([
  ["authenticate", "return"],
  ["checkout", "fields"]
])

/** The format of ids that the router handles without decoding. */
const ID = /^[0-9A-Za-z_]{1,100}$/

/**
 * Number of folders between Till's base address and an invalid address; undefined if the path may be a page's own or is
 * not one of these paths. A trailing slash is redirected to the page (`withoutSlash`).
 */
const strayDepth = (method: string, url: string): number | undefined => {
  const [first, ...rest] = url.split("?", 1)[0]!.slice(1).split("/") as [string, ...Array<string>]
  const methods = METHODS.get(first)
  if (methods === undefined) return undefined
  const [id = "", ...behind] = rest
  const isBehind = behind[0] === BEHIND.get(first) && method !== "POST"
  const isPage = ID.test(id) && (behind.length === 0 || (behind.length === 1 && (behind[0] === "" || isBehind)))
  return isPage && methods.includes(method) ? undefined : rest.length
}

export const layer = HttpRouter.use((router) =>
  router.addGlobalMiddleware((routed) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
      const depth = strayDepth(request.method, request.url)
      if (depth === undefined) return routed
      return Effect.succeed(page(notice({ ...notFound(translationOf(request)), depth }), { status: 404 }))
    })
  )
)
