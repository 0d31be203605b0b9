/** The composition root tells the HTTP layer this about the installation. */
import { Context } from "effect"
import type { BlockList } from "node:net"

export interface HttpConfigShape {
  /** Links to error documentation begin with it, without a slash at its end: `doc_url` is `{docsUrl}/errors/<code>`. */
  readonly docsUrl: string
  /** A request may wait so long for the service, in milliseconds; as long as `RequestTimeouts.ts` says if left out. */
  readonly requestMillisMax?: number
  /** True if requests are limited (semantics R1); they are not if left out. */
  readonly rateLimit?: boolean
  /** What these proxies say of their clients is believed (semantics 9.45); nobody is if left out. */
  readonly trustedProxies?: BlockList | undefined
}

export class HttpConfig extends Context.Service<HttpConfig, HttpConfigShape>()("till/http/HttpConfig") {}
