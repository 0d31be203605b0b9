/** A request under /v1, read by Node's parser or by the one for plain requests. */
import type { IncomingHttpHeaders } from "node:http"
import type { Effect } from "effect"
import type { Unavailable } from "../engine/Accounts.ts"
import type { RequestTooLarge } from "./HttpErrors.ts"

/** The limit of a body's length, and the holder of its memory. */
export interface BodyLimits {
  /** The account or address that the bytes of an unfinished body count for. */
  readonly holder: string
  readonly bytesMax: number
}

export interface Incoming {
  readonly method: string
  /** Path and query as sent. */
  readonly url: string
  /** Values by name in lower case, joined as Node joins them. */
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn, as sent. */
  readonly rawHeaders: ReadonlyArray<string>
  /** True if the header, named in lower case, was sent more than once. */
  readonly isRepeated: (name: string) => boolean
  /** When the request had arrived, with its body if `isWhole`, by `performance.now()`. */
  readonly arrivedAt: number
  /** True if the body, if any, has arrived. */
  readonly isWhole: boolean
  /**
   * Reads the whole body: an `Exit` if it has arrived, at any length. Not to be called while the body is being read.
   */
  readonly readBody: (limits?: BodyLimits) => Effect.Effect<Buffer, RequestTooLarge | Unavailable>
  /** Counts the connection's next requests for an account or an address (`ReadTurns.ts`). */
  readonly countFor: (holder: string) => void
  /** The client's address; undefined once it is gone. */
  readonly remoteAddress: string | undefined
  /** True once the client can no longer read an answer. A client that has ended its side still can. */
  readonly isGone: boolean
  /** Registers a function for the case that the client leaves before its answer. */
  readonly onGone: (listener: () => void) => void
  /** Writes the response; `body` is JSON text, or empty for a 204. To be called once. */
  readonly answer: (status: number, headers: Readonly<Record<string, string>>, body: string) => void
}
