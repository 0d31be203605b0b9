/**
 * Reads a request's body up to the limit (semantics requests.size.memory): a body that is declared larger is not read
 * at all, and one that turns out larger is dropped at the first byte too many.
 *
 * A client can leave a body unfinished, and its bytes stay in memory. So all long bodies that are arriving share one
 * limit (`UnfinishedBodies.ts`); short ones are always read.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Context, Effect, Exit, Layer } from "effect"
import { addressGroup } from "../domain/Networks.ts"
import { Unavailable } from "../engine/Accounts.ts"
import { clientAddressOf, type ClientAddressOf } from "./ClientAddress.ts"
import { HttpConfig } from "./HttpConfig.ts"
import { RequestTooLarge } from "./HttpErrors.ts"
import { type Unfinished, UnfinishedBodies } from "./UnfinishedBodies.ts"

/** The longest body: 1 MiB. */
export const BODY_BYTES_MAX = 1_048_576

/**
 * The longest body with a publishable key: 64 KiB. Every visitor of a merchant's page has such a key, and no form is
 * longer (semantics requests.size).
 */
export const PUBLISHABLE_BODY_BYTES_MAX = 65_536

/** Bodies longer than this share the limit of unfinished bodies, in bytes. */
const LONG_BYTES = 16_384
/** The most memory of all unfinished long bodies: 64 MiB. */
const UNFINISHED_BYTES_MAX = 64 * BODY_BYTES_MAX

const empty = Exit.succeed(Buffer.alloc(0))
const tooLarge = Exit.fail(new RequestTooLarge())
const tooMany = Exit.fail(new Unavailable({ reason: "Too many long requests are being sent." }))

const connected = clientAddressOf(undefined)

/**
 * Reads the whole body. Fails with `RequestTooLarge` if it is longer than the limit, in bytes; with `Unavailable` if
 * too many bytes are arriving and most of them count for this holder.
 */
export type ReadBody = (
  source: IncomingMessage,
  response: Pick<ServerResponse, "headersSent" | "writeContinue">,
  bytesMax?: number,
  holder?: string
) => Effect.Effect<Buffer, RequestTooLarge | Unavailable>

/**
 * Makes a reader of bodies; all its long bodies share one limit. Without a holder, a body counts for the address that
 * `clientAddressOf` returns.
 */
export const makeReadBody = (clientAddressOf: ClientAddressOf = connected): ReadBody => {
  const unfinished = new UnfinishedBodies(UNFINISHED_BYTES_MAX)
  return (source, response, bytesMax = BODY_BYTES_MAX, holder = undefined) => {
    const { "content-length": declared, "transfer-encoding": encoding, expect } = source.headers
    if (encoding === undefined && (declared === undefined || declared === "0")) return empty
    if (Number(declared ?? 0) > bytesMax) return tooLarge
    if (expect?.toLowerCase() === "100-continue" && !response.headersSent) response.writeContinue()
    return Effect.callback<Buffer, RequestTooLarge | Unavailable>((resume) => {
      let chunks: Array<Buffer> | null = []
      let length = 0
      let counted: Unfinished | undefined
      const since = performance.now()
      const begin = (): Unfinished => {
        const { headers, socket } = source
        const address = () => addressGroup(clientAddressOf({ headers, remoteAddress: socket?.remoteAddress }))
        return { holder: holder ?? `at ${address()}`, since, bytes: 0, giveWay: () => giveUp(tooMany) }
      }
      const end = () => {
        if (counted !== undefined) unfinished.leave(counted)
      }
      const forget = () => {
        chunks = null
        end()
      }
      const giveUp = (failure: typeof tooLarge | typeof tooMany) => {
        forget()
        source.pause()
        resume(failure)
      }
      // Only the first outcome counts, so the listeners may stay; later bytes of the body are drained elsewhere.
      source.on("data", (chunk: Buffer) => {
        if (chunks === null) return
        length += chunk.length
        if (length > bytesMax) return giveUp(tooLarge)
        chunks.push(chunk)
        if (length > LONG_BYTES) unfinished.grow((counted ??= begin()), length)
      })
      source.on("end", () => {
        end()
        if (chunks !== null) resume(Exit.succeed(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
      })
      // The client left before the end of its body, so no answer is needed.
      source.on("close", () => {
        end()
        resume(Effect.interrupt)
      })
      // An answer may precede the end of the body; Node then reports neither the end nor a client that leaves.
      return Effect.sync(forget)
    })
  }
}

/** The one reader of bodies for pages and the API, which share its limit. */
export class RequestBodies extends Context.Service<RequestBodies, { readonly readBody: ReadBody }>()(
  "till/http/RequestBodies"
) {
  static readonly layer: Layer.Layer<RequestBodies, never, HttpConfig> = Layer.effect(
    RequestBodies,
    Effect.map(HttpConfig, ({ trustedProxies }) => ({ readBody: makeReadBody(clientAddressOf(trustedProxies)) }))
  )
}
