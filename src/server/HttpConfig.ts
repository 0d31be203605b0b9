/** Settings of the HTTP layer, provided by the composition root. */
import { Context } from "effect"
import type { BlockList } from "node:net"

export interface HttpConfigShape {
  /** Base URL of the error documentation, without a trailing slash: `doc_url` is `{docsUrl}/errors/<code>`. */
  readonly docsUrl: string
  /** The longest wait of a request for the service, in milliseconds; the default is in `RequestTimeouts.ts`. */
  readonly requestMillisMax?: number
  /** True if rate limits apply (semantics limits.rate); false if omitted. */
  readonly rateLimit?: boolean
  /** Proxies whose forwarding headers are trusted (semantics limits.addresses); none if omitted. */
  readonly trustedProxies?: BlockList | undefined
}

/** Returns the base URL of the documentation of an installation with this public URL. */
export const docsUrlOf = (publicUrl: string): string => `${publicUrl}/docs`

export class HttpConfig extends Context.Service<HttpConfig, HttpConfigShape>()("till/http/HttpConfig") {}
