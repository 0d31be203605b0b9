/**
 * Whatever is asked for below the paths of payers' pages is answered with a page: a link that was cut off or mangled on
 * its way is followed by a person. Only what a page's own route can take goes on to it.
 */
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { NOT_FOUND, notice } from "../html/Notice.ts"
import { page } from "../html/PageResponse.ts"

/** The methods of the pages that have an id. */
const METHODS: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ["authenticate", ["GET", "HEAD", "POST"]],
  ["challenge", ["GET", "HEAD"]],
  ["checkout", ["GET", "HEAD", "POST"]]
])

/** Nothing that the router would have to decode, or that is too long for it. */
const ID = /^[0-9A-Za-z_]{1,100}$/

/**
 * Folders between Till's base address and a stray page at this path; undefined if the path is no stray one: it is
 * somebody else's, or that of a page which may be there. A slash at its end leads to the page (`withoutSlash`).
 */
export const strayDepth = (method: string, url: string): number | undefined => {
  const [first, ...rest] = url.split("?", 1)[0]!.slice(1).split("/") as [string, ...Array<string>]
  const methods = METHODS.get(first)
  if (methods === undefined) return undefined
  const [id = "", ...behind] = rest
  const isPage = ID.test(id) && (behind.length === 0 || (behind.length === 1 && behind[0] === ""))
  return isPage && methods.includes(method) ? undefined : rest.length
}

export const layer = HttpRouter.use((router) =>
  router.addGlobalMiddleware((routed) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method, url }) => {
      const depth = strayDepth(method, url)
      return depth === undefined ? routed : Effect.succeed(page(notice({ ...NOT_FOUND, depth }), { status: 404 }))
    })
  )
)
