/** Every failure gets an answer; some are logged, too. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Logger } from "effect"
import { Unavailable } from "../../src/engine/Accounts.ts"
import { answerFailed } from "../../src/http/RequestContext.ts"
import { LogThrottle } from "../../src/http/RequestContext.ts"

const request = {
  method: "POST",
  path: "/v1/customers",
  id: "req_1"
}

const options = { docsUrl: "http://localhost/docs", interruption: "Till stops." }
const unavailable = Cause.fail(new Unavailable({ reason: "The database does not answer." }))

/** The status of the answer, and the log lines. */
const respond = (
  cause: Parameters<typeof answerFailed>[1],
  { outages = new LogThrottle(1000), path = request.path }: { outages?: LogThrottle; path?: string } = {}
) => {
  const logged: Array<string> = []
  const logger = Logger.make(({ message }) => void logged.push(String(message)))
  const { answer, log } = answerFailed({ ...request, path }, cause, { ...options, outages })
  return Effect.map(Effect.provide(log ?? Effect.void, Logger.layer([logger])), () => ({
    status: answer.status,
    logged
  }))
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
        logged.push(...(yield* respond(unavailable, { path })).logged)
      }
      const line = "POST /v1/customers/**** failed"
      assert.deepStrictEqual(logged, [line, line])
    })
  )

  it.effect("that come in a flood are logged at intervals, with their number", () =>
    Effect.gen(function* () {
      const outages = new LogThrottle(1000)
      const logged = []
      for (let i = 0; i < 5; i++) logged.push((yield* respond(unavailable, { outages })).logged.length)
      assert.deepStrictEqual(logged, [1, 0, 0, 0, 0])
      assert.strictEqual(outages.take(performance.now() + 1000), 4)
      assert.strictEqual(outages.take(performance.now() + 2001), 0)
    })
  )
})
