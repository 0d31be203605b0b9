/** What the HTTP layer is told about the installation. */
import { Context } from "effect"

export interface HttpConfigShape {
  /** Where links to error documentation lead, without a slash at the end: `doc_url` is `{docsUrl}/errors/<code>`. */
  readonly docsUrl: string
  /** How long a request may wait for the service, in milliseconds; as long as `RequestTimeouts.ts` says if left out. */
  readonly requestMillisMax?: number
  /** Whether requests are limited (semantics R1); they are not if left out. */
  readonly rateLimit?: boolean
}

export class HttpConfig extends Context.Service<HttpConfig, HttpConfigShape>()("till/http/HttpConfig") {}
