/**
 * The programs of test/models over HTTP: the lifecycles match the same state tables as in memory (test/payments),
 * through routes, engine and timers. The service's clock stands still except where a program waits: whole seconds pass
 * by the test helper, fractions by the service's own clock.
 */
import { afterAll, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as CheckoutSessions from "../models/CheckoutSessions.ts"
import * as PaymentIntents from "../models/PaymentIntents.ts"
import * as PaymentMethods from "../models/PaymentMethods.ts"
import { follow } from "../models/Program.ts"
import * as Refunds from "../models/Refunds.ts"
import { post, type Wire } from "../models/Wire.ts"
import { clockOf } from "../support/SettableClock.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"

/** The service's time, in milliseconds. */
let time = Date.UTC(2026, 10, 20)
let server: MemoryTill
beforeAll(async () => void (server = await start({ clock: clockOf(() => time) })))
afterAll(() => server.close())

/** A new merchant. */
const freshWire = async (): Promise<Wire> => {
  const { secretTest: key } = await server.merchant()
  let ahead = 0
  // Sessions expire at whole seconds, and the previous program may have waited for a fraction of one.
  time = Math.ceil(time / 1000) * 1000
  const wire: Wire = {
    now: () => time + ahead,
    request: (method, path, body) => server.request(method, path, { key, ...(body !== undefined && { body }) }),
    wait: async (millis) => {
      if (millis % 1000 !== 0) return void (time += millis)
      await post(wire, "/v1/test_helpers/clock/advance", { seconds: millis / 1000 })
      ahead += millis
    }
  }
  return wire
}

describe("over HTTP", () => {
  it.effect.prop(
    "PaymentIntents agree with the state table",
    { program: PaymentIntents.program },
    ({ program }) =>
      Effect.gen(function* () {
        const driver = yield* Effect.promise(async () => PaymentIntents.over(await freshWire()))
        yield* follow(PaymentIntents.table, driver, program)
      }),
    { arbitrary: { runs: 60, size: 16 } }
  )

  it.effect.prop(
    "Checkout Sessions agree with the state table",
    { program: CheckoutSessions.program },
    ({ program }) =>
      Effect.gen(function* () {
        const driver = yield* Effect.promise(async () => CheckoutSessions.over(await freshWire()))
        yield* follow(CheckoutSessions.table, driver, program)
      }),
    { arbitrary: { runs: 60, size: 12 } }
  )

  it.effect.prop(
    "Payment methods agree with the state table",
    { program: PaymentMethods.program },
    ({ program }) =>
      Effect.gen(function* () {
        const driver = yield* Effect.promise(async () => PaymentMethods.over(await freshWire()))
        yield* follow(PaymentMethods.table, driver, program)
      }),
    { arbitrary: { runs: 60, size: 20 } }
  )

  it.effect.prop(
    "Refunds agree with the table",
    { program: Refunds.program },
    ({ program }) =>
      Effect.gen(function* () {
        const driver = Refunds.over(yield* Effect.promise(freshWire))
        yield* follow(Refunds.table, driver, program)
      }),
    { arbitrary: { runs: 40, size: 12 } }
  )
})
