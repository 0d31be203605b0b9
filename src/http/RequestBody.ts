/**
 * Reads a request's body, and never more of it than the limit (semantics T6): what is declared larger is not read at
 * all, and what turns out larger is given up at the first byte too many.
 */
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect, Exit } from "effect"
import type { HttpServerRequest } from "effect/http"
import { sourceOf } from "./Exchange.ts"
import { RequestTooLarge } from "./HttpErrors.ts"

/** 1 MiB, in bytes. */
export const BODY_BYTES_MAX = 1_048_576

const empty = Exit.succeed(Buffer.alloc(0))
const tooLarge = Exit.fail(new RequestTooLarge())

/** The whole body; `RequestTooLarge` if it is longer than the limit, in bytes. */
export const readBody = (
  request: HttpServerRequest.HttpServerRequest,
  bytesMax: number = BODY_BYTES_MAX
): Effect.Effect<Buffer, RequestTooLarge> =>
  Effect.suspend((): Effect.Effect<Buffer, RequestTooLarge> => {
    const source = sourceOf(request)
    const { "content-length": declared, "transfer-encoding": encoding, expect } = source.headers
    if (encoding === undefined && (declared === undefined || declared === "0")) return empty
    if (Number(declared ?? 0) > bytesMax) return tooLarge
    if (expect?.toLowerCase() === "100-continue") {
      const response = NodeHttpServerRequest.toServerResponse(request)
      if (!response.headersSent) response.writeContinue()
    }
    return Effect.callback<Buffer, RequestTooLarge>((resume) => {
      const chunks: Array<Buffer> = []
      let length = 0
      // Only the first outcome counts, so the listeners may stay; after it, what is left of a body is others' to drain.
      source.on("data", (chunk: Buffer) => {
        if (length > bytesMax) return
        length += chunk.length
        if (length <= bytesMax) return void chunks.push(chunk)
        chunks.length = 0
        source.pause()
        resume(tooLarge)
      })
      source.on("end", () => resume(Exit.succeed(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))))
      // The client went away in the middle of its body: there is nobody left to answer.
      source.on("close", () => resume(Effect.interrupt))
    })
  })
