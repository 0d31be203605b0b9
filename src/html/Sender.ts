/** The address that a page's request came from (semantics limits.addresses). */
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { remoteAddressOf } from "../http/forward/ForwardPage.ts"
import { sourceOf } from "../http/RequestContext.ts"
import { clientAddressOf } from "../server/ClientAddress.ts"
import { HttpConfig } from "../server/HttpConfig.ts"

/** Returns the sender's address, also behind trusted proxies and where another process has forwarded the request. */
export const senderOf = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<string, never, HttpConfig> =>
  Effect.map(HttpConfig, ({ trustedProxies }) =>
    clientAddressOf(trustedProxies)({
      headers: sourceOf(request).headers,
      remoteAddress: remoteAddressOf(request)
    })
  )
