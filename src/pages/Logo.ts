/**
 * Serves merchants' logos (semantics pages.logo). The address contains a hash of the image, so browsers cache it for
 * good. Nothing in the file can run: the response has the type of the pixels, which browsers must not guess anew, and
 * as a document of its own it may neither load nor run anything.
 */
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { PREFIXES } from "../domain/Identifiers.ts"
import { route } from "../html/Routing.ts"
import * as Logos from "../payments/merchants/Logos.ts"
import { isId } from "./checkout/FindSession.ts"

const HEADERS = {
  "cache-control": "public, max-age=31536000, immutable",
  "content-security-policy": "default-src 'none'; sandbox",
  "cross-origin-resource-policy": "cross-origin"
}

export const layer = route("GET", "/logos/:merchant/:name", (request, { merchant = "", name = "" }) =>
  Effect.gen(function* () {
    const logo = isId(PREFIXES.merchant, merchant) ? yield* Logos.read(merchant, name) : undefined
    if (logo === undefined) return HttpServerResponse.empty({ status: 404 })
    const headers = { ...HEADERS, etag: `"${name}"` }
    return request.headers["if-none-match"]?.includes(headers.etag) === true
      ? HttpServerResponse.empty({ status: 304, headers })
      : HttpServerResponse.uint8Array(logo.bytes, { contentType: logo.type, headers })
  })
)
