/** The sum of all bodies in memory is bounded, so every request must take its own out of it again. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber } from "effect"
import type { IncomingMessage } from "node:http"
import { Readable } from "node:stream"
import { Unavailable } from "../../src/engine/Accounts.ts"
import type { ReadBody } from "../../src/http/RequestBody.ts"
import { BODY_BYTES_MAX, makeReadBody } from "../../src/http/RequestBody.ts"

const readBody = makeReadBody()
/** Nobody asks these requests to go on. */
const response = { headersSent: false, writeContinue: () => {} }
const LONG = Buffer.alloc(BODY_BYTES_MAX)

/** A request, and the side of it that its client writes to. */
const begin = () => {
  const source = Object.assign(new Readable({ read: () => {} }), { headers: { "transfer-encoding": "chunked" } })
  return { source, request: source as unknown as IncomingMessage }
}

describe("a body", () => {
  it.effect("that nobody waits for any more takes up nothing, though its client may send on for good", () =>
    Effect.gen(function* () {
      for (let i = 0; i < 70; i++) {
        const { request, source } = begin()
        const reader = yield* Effect.forkChild(readBody(request, response), { startImmediately: true })
        const read = new Promise((resolve) => source.once("data", resolve))
        source.push(LONG)
        yield* Effect.promise(() => read)
        yield* Fiber.interrupt(reader)
      }
      const { request, source } = begin()
      source.push(LONG)
      source.push(null)
      assert.lengthOf(yield* readBody(request, response), BODY_BYTES_MAX)
    })
  )

  it.effect("counts with the other long ones of its own server, and with no other server's", () =>
    Effect.gen(function* () {
      const one = makeReadBody()
      const other = makeReadBody()
      const unfinished = yield* Effect.forEach(Array.from({ length: 64 }), () =>
        Effect.gen(function* () {
          const { request, source } = begin()
          const reader = yield* Effect.forkChild(one(request, response), { startImmediately: true })
          const read = new Promise((resolve) => source.once("data", resolve))
          source.push(LONG)
          yield* Effect.promise(() => read)
          return reader
        })
      )
      const whole = (readBody: ReadBody) => {
        const { request, source } = begin()
        source.push(LONG)
        source.push(null)
        return Effect.exit(readBody(request, response))
      }
      const refused = yield* whole(one)
      assert.instanceOf(Exit.isFailure(refused) ? Cause.squash(refused.cause) : refused, Unavailable)
      assert.isTrue(Exit.isSuccess(yield* whole(other)))
      yield* Effect.forEach(unfinished, Fiber.interrupt)
      assert.isTrue(Exit.isSuccess(yield* whole(one)))
    })
  )
})
