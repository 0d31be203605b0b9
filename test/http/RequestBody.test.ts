/** The sum of all bodies in memory is bounded, so every request must take its own out of it again. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { HttpServerRequest } from "effect/http"
import { Readable } from "node:stream"
import { BODY_BYTES_MAX, makeReadBody } from "../../src/http/RequestBody.ts"

const readBody = makeReadBody()
const LONG = Buffer.alloc(BODY_BYTES_MAX)

/** A request, and the side of it that its client writes to. */
const begin = () => {
  const source = Object.assign(new Readable({ read: () => {} }), { headers: { "transfer-encoding": "chunked" } })
  return { source, request: { source } as unknown as HttpServerRequest.HttpServerRequest }
}

describe("a body", () => {
  it.effect("that nobody waits for any more takes up nothing, though its client may send on for good", () =>
    Effect.gen(function* () {
      for (let i = 0; i < 70; i++) {
        const { request, source } = begin()
        const reader = yield* Effect.forkChild(readBody(request), { startImmediately: true })
        const read = new Promise((resolve) => source.once("data", resolve))
        source.push(LONG)
        yield* Effect.promise(() => read)
        yield* Fiber.interrupt(reader)
      }
      const { request, source } = begin()
      source.push(LONG)
      source.push(null)
      assert.lengthOf(yield* readBody(request), BODY_BYTES_MAX)
    })
  )
})
