/**
 * Mailboxes: whatever was offered is taken once and in order, or given back at the end.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Schema } from "effect"
import { Mailbox } from "../../src/engine/Mailbox.ts"

const Steps = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: -1500, maximum: 1500 })))

describe("a mailbox", () => {
  it.effect.prop("gives everything once and in order, taken or left", { steps: Steps }, ({ steps }) =>
    Effect.gen(function* () {
      const mailbox = new Mailbox<number>()
      const received: Array<number> = []
      let offered = 0
      // A positive step offers so many, a negative one takes so many at most.
      for (const step of steps) {
        for (let i = 0; i < step; i++) mailbox.offer(offered++)
        for (let i = 0; i > step && received.length < offered; i--) received.push(yield* mailbox.take)
      }
      assert.deepStrictEqual(
        [...received, ...mailbox.end()],
        Array.from({ length: offered }, (_, i) => i)
      )
    })
  )

  it.effect("lets who takes wait for the next one, and ends who waits at its end", () =>
    Effect.gen(function* () {
      const mailbox = new Mailbox<string>()
      const received: Array<string> = []
      const taker = yield* Effect.forkChild(Effect.forever(Effect.map(mailbox.take, (mail) => received.push(mail))), {
        startImmediately: true
      })
      mailbox.offer("one")
      mailbox.offer("two")
      yield* Effect.yieldNow
      assert.deepStrictEqual(received, ["one", "two"])
      assert.deepStrictEqual(mailbox.end(), [])
      const exit = yield* Fiber.await(taker)
      assert.isTrue(Exit.isFailure(exit) && Exit.hasInterrupts(exit))
    })
  )
})
