/** What the HTTP layer is told about the installation. */
import { Context } from "effect"

export interface HttpConfigShape {
  /** Where links to error documentation lead, without a slash at the end: `doc_url` is `{docsUrl}/errors/<code>`. */
  readonly docsUrl: string
  /** Keys the HMAC that stands for card data in fingerprints. Lasts as long as the journal does. */
  readonly fingerprintKey: Uint8Array
}

export class HttpConfig extends Context.Service<HttpConfig, HttpConfigShape>()("till/http/HttpConfig") {}
