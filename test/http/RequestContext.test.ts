/** Every failure gets an answer; some are logged, too. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Logger } from "effect"
import { Unavailable } from "../../src/engine/Accounts.ts"
import { answerFailed } from "../../src/http/RequestContext.ts"
import * as Log from "../../src/engine/process/Log.ts"
import { Writing } from "../../src/engine/process/Writing.ts"

const request = {
  method: "POST",
  path: "/v1/customers",
  id: "req_1"
}

const options = { docsUrl: "http://localhost/docs", interruption: "Till stops." }
const unavailable = Cause.fail(new Unavailable({ reason: "The database does not answer." }))

/** The status of the answer, and the log lines. */
const respond = (cause: Parameters<typeof answerFailed>[1], path: string = request.path) => {
  const logged: Array<string> = []
  const logger = Logger.make(({ message }) => void logged.push(String(message)))
  return Effect.context<never>().pipe(
    Effect.map((context) => answerFailed({ ...request, path }, cause, { ...options, context })),
    Effect.map(({ status }) => ({ status, logged })),
    Effect.provide(Logger.layer([logger]))
  )
}

describe("failures", () => {
  it.effect("of the database are a 503, also together with an interruption", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* respond(unavailable)).status, 503)
      assert.strictEqual((yield* respond(Cause.combine(unavailable, Cause.interrupt(1)))).status, 503)
      assert.strictEqual((yield* respond(Cause.interrupt(1))).status, 503)
    })
  )

  it.effect("that are defects are a 500, together with any other failure", () =>
    Effect.gen(function* () {
      const defect = Cause.die(new Error("a mistake"))
      for (const cause of [defect, Cause.combine(unavailable, defect), Cause.combine(defect, Cause.interrupt(1))]) {
        const { logged, status } = yield* respond(cause)
        assert.strictEqual(status, 500)
        assert.lengthOf(logged, 1)
      }
    })
  )

  it.effect("are logged without a card number that was sent as an id", () =>
    Effect.gen(function* () {
      const logged: Array<string> = []
      for (const path of ["/v1/customers/4242424242424242", "/v1/customers/4242%204242%204242%34242"]) {
        logged.push(...(yield* respond(unavailable, path)).logged)
      }
      const line = "POST /v1/customers/**** failed"
      assert.deepStrictEqual(logged, [line, line])
    })
  )

  it.effect("that come in a flood are logged once a second, with their number", () =>
    Effect.gen(function* () {
      const logged = []
      for (let i = 0; i < 5; i++) logged.push((yield* respond(unavailable)).logged.length)
      assert.deepStrictEqual(logged, [1, 0, 0, 0, 0])
    }).pipe(Effect.provide(Log.layer()))
  )

  it.effect("are not logged while nothing can be written, which has a line of its own, except for defects", () =>
    Effect.gen(function* () {
      assert.lengthOf((yield* respond(unavailable)).logged, 0)
      assert.lengthOf((yield* respond(Cause.die(new Error("a mistake")))).logged, 1)
    }).pipe(
      Effect.provideService(Writing, { refusal: () => "The disk is full.", probe: Effect.succeed("The disk is full.") })
    )
  )
})
