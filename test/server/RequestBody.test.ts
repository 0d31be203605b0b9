/** The memory of all bodies is bounded, so every request must release its own share. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber } from "effect"
import type { IncomingMessage } from "node:http"
import { Readable } from "node:stream"
import { Unavailable } from "../../src/engine/Accounts.ts"
import { BODY_BYTES_MAX, makeReadBody, type ReadBody } from "../../src/server/RequestBody.ts"

const readBody = makeReadBody()
/** These requests receive no `100 Continue`. */
const response = { headersSent: false, writeContinue: () => {} }
const LONG = Buffer.alloc(BODY_BYTES_MAX)

/** A request, and the stream that its client writes to. */
const begin = () => {
  const source = Object.assign(new Readable({ read: () => {} }), { headers: { "transfer-encoding": "chunked" } })
  return { source, request: source as unknown as IncomingMessage }
}

describe("a body", () => {
  it.effect("that is no longer needed takes up no memory, though its client may go on sending for ever", () =>
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

  const pushed = (source: Readable, bytes: Buffer) =>
    Effect.promise(() => {
      const read = new Promise((resolve) => source.once("data", resolve))
      source.push(bytes)
      return read
    })

  /** Bodies that never end. */
  const hoard = (readBody: ReadBody, count: number, holder: string) =>
    Effect.forEach(Array.from({ length: count }), () =>
      Effect.gen(function* () {
        const { request, source } = begin()
        const reader = yield* Effect.forkChild(readBody(request, response, BODY_BYTES_MAX, holder), {
          startImmediately: true
        })
        yield* pushed(source, LONG)
        return reader
      })
    )

  const whole = (readBody: ReadBody, holder: string) => {
    const { request, source } = begin()
    source.push(LONG)
    source.push(null)
    return Effect.exit(readBody(request, response, BODY_BYTES_MAX, holder))
  }

  const refused = (readers: ReadonlyArray<Fiber.Fiber<Buffer, unknown>>) =>
    readers.filter((reader) => {
      const exit = reader.pollUnsafe()
      return exit !== undefined && Exit.isFailure(exit) && Cause.squash(exit.cause) instanceof Unavailable
    })

  it.effect(
    "makes room for another by refusing the slowest body of the holder with the most bytes, on the same server",
    () =>
      Effect.gen(function* () {
        const one = makeReadBody()
        const other = makeReadBody()
        const small = yield* hoard(one, 10, "a neighbour")
        const large = yield* hoard(one, 54, "the largest")
        assert.isTrue(Exit.isSuccess(yield* whole(other, "the largest")))
        assert.lengthOf(refused([...small, ...large]), 0)
        for (let i = 1; i <= 5; i++) {
          assert.isTrue(Exit.isSuccess(yield* whole(one, "a newcomer")))
          assert.isTrue(Exit.isSuccess(yield* whole(one, "a neighbour")))
        }
        // Only as many bodies as necessary are refused: complete ones no longer take up memory.
        assert.lengthOf(refused(small), 0)
        assert.lengthOf(refused(large), 1)
        assert.strictEqual(refused(large)[0], large[0])
        yield* Effect.forEach([...small, ...large], Fiber.interrupt)
        assert.isTrue(Exit.isSuccess(yield* whole(one, "the largest")))
      })
  )

  it.effect("of the holder with the most bytes is refused itself, if it is the slowest", () =>
    Effect.gen(function* () {
      const readBody = makeReadBody()
      const { request, source } = begin()
      const drip = yield* Effect.forkChild(readBody(request, response, BODY_BYTES_MAX, "a"), { startImmediately: true })
      yield* pushed(source, LONG.subarray(0, 20_000))
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20)))
      const others = yield* hoard(readBody, 63, "a")
      assert.lengthOf(refused([drip]), 0)
      yield* pushed(source, LONG.subarray(0, BODY_BYTES_MAX - 20_000))
      const last = yield* hoard(readBody, 1, "b")
      assert.lengthOf(refused([drip]), 1)
      assert.lengthOf(refused([...others, ...last]), 0)
      yield* Effect.forEach([...others, ...last], Fiber.interrupt)
    })
  )
})
