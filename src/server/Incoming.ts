/**
 * A request under /v1 as the path of the API takes it, whoever has parsed its bytes: node's own parser, or the one for
 * plain requests.
 */
import type { IncomingHttpHeaders } from "node:http"
import type { Effect } from "effect"
import type { Unavailable } from "../engine/Accounts.ts"
import type { RequestTooLarge } from "./HttpErrors.ts"

/** How much of a body may be read, and for whom. */
export interface BodyLimits {
  /** Whoever the bytes of an unfinished body count for. */
  readonly holder: string
  readonly bytesMax: number
}

export interface Incoming {
  readonly method: string
  /** Path and query, as they were sent. */
  readonly url: string
  /** By names in lower case, as node joins them. */
  readonly headers: IncomingHttpHeaders
  /** Names and values by turns, as they were sent. */
  readonly rawHeaders: ReadonlyArray<string>
  /** Tells of a header, by its name in lower case, whether it was sent more than once. */
  readonly isRepeated: (name: string) => boolean
  /** By `performance.now()`: when it had arrived, as far as `isWhole` says. */
  readonly arrivedAt: number
  /** True if its body, if any, has arrived with it. */
  readonly isWhole: boolean
  /** Reads the whole body: an `Exit` if it is there, whatever its length. Not to be called while it is being read. */
  readonly readBody: (limits?: BodyLimits) => Effect.Effect<Buffer, RequestTooLarge | Unavailable>
  /** The client's address; undefined once it is gone. */
  readonly remoteAddress: string | undefined
  /**
   * True once nobody is there any more who could read an answer. A client that has ended its side still is.
   */
  readonly isGone: boolean
  /** Has a function called when the client goes away before its answer. */
  readonly onGone: (listener: () => void) => void
  /** Writes the response; `body` is JSON text, or empty for a 204. To be called once. */
  readonly answer: (status: number, headers: Readonly<Record<string, string>>, body: string) => void
}
