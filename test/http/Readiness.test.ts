/**
 * A process that is stopping reports it, and answers until other processes have taken over (semantics operation.stop,
 * operation.health).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { HttpConfig } from "../../src/server/HttpConfig.ts"
import { serving, type Serving } from "../../src/http/Readiness.ts"
import * as Routes from "../../src/http/Routes.ts"
import { PaymentsConfig } from "../../src/payments/shared/PaymentsConfig.ts"
import { HttpExchange } from "../support/HttpExchange.ts"
import { createMerchant } from "../support/fixtures/Merchants.ts"
import * as MemoryEngine from "../support/MemoryEngine.ts"
import { addressOf, DOCS_URL, layerSocket } from "../support/MemoryTill.ts"
import { paymentsConfig } from "../support/PaymentsConfig.ts"
import { until } from "../support/TillProcess.ts"

const LONG_MILLIS = 60_000

const serviceWith = (options: Serving) =>
  serving(options).pipe(
    Layer.provideMerge(Routes.serveWith(Layer.empty)),
    Layer.provideMerge(layerSocket(DOCS_URL)),
    Layer.provide(Layer.succeed(HttpConfig, { docsUrl: DOCS_URL })),
    Layer.provideMerge(MemoryEngine.engine()),
    Layer.provideMerge(Layer.succeed(PaymentsConfig, paymentsConfig()))
  )

/** A service that is stopping. Its hand-over lasts until the test ends it. */
const ending = Effect.fnUntraced(function* (options: Partial<Serving> = {}) {
  const handedOver = Promise.withResolvers<void>()
  const impatience = Promise.withResolvers<void>()
  const scope = yield* Scope.make()
  const layer = serviceWith({
    noticeMillis: 1,
    handOver: Effect.promise(() => handedOver.promise),
    drainMillisMax: LONG_MILLIS,
    impatience: Effect.promise(() => impatience.promise),
    ...options
  })
  const context = yield* Layer.buildWithScope(layer, scope)
  const { port } = yield* addressOf.pipe(Effect.provide(context))
  const { secretTest } = yield* createMerchant("Merchant").pipe(Effect.provide(context))
  const http = yield* Effect.acquireRelease(
    Effect.sync(() => new HttpExchange(port, secretTest)),
    (opened) => Effect.sync(() => opened.close())
  )
  const readiness = () => http.request("GET", "/readyz", { key: null })
  const create = () => http.request("POST", "/v1/customers", { body: { name: "Jenny" } })
  assert.deepStrictEqual((yield* Effect.promise(readiness)).body, { status: "ok" })
  assert.strictEqual((yield* Effect.promise(create)).headers.connection, "keep-alive")
  const ended = Effect.runPromise(Scope.close(scope, Exit.void))
  return { ended, readiness, create, handOver: handedOver.resolve, loseIt: impatience.resolve }
})

describe("a process that is stopping", () => {
  it.live("is not ready, and answers until everything is handed over", () =>
    Effect.flatMap(ending(), ({ create, ended, handOver, readiness }) =>
      Effect.promise(async () => {
        for (let i = 0; i < 3; i++) {
          const { body, headers, status } = await readiness()
          assert.deepStrictEqual([status, body], [503, { status: "stopping" }])
          assert.strictEqual(headers["retry-after"], "1")
          assert.strictEqual(headers.connection, "close")
          // Each request uses its own connection.
          const created = await create()
          assert.deepStrictEqual([created.status, created.headers.connection], [200, "close"])
        }
        handOver()
        await ended
        const lost = await create().catch(({ code }: { readonly code: string }) => code)
        assert.strictEqual(lost, "ECONNREFUSED")
      })
    ).pipe(Effect.scoped)
  )

  it.live("gives a load balancer time to notice, although there is nothing to hand over", () =>
    Effect.gen(function* () {
      const begun = performance.now()
      const { create, ended } = yield* ending({ noticeMillis: 700, handOver: Effect.void })
      let answered = 0
      yield* Effect.promise(() =>
        until("it takes requests no more", async () => {
          const status = await create().then(
            (answer) => answer.status,
            ({ code }: { readonly code: string }) => code
          )
          if (status === 200) answered++
          // A connection that was not accepted before the listener closed is reset.
          else assert.include(["ECONNREFUSED", "ECONNRESET"], status)
          return status !== 200
        })
      )
      yield* Effect.promise(() => ended)
      assert.isAbove(answered, 0)
      assert.isAtLeast(performance.now() - begun, 700)
    }).pipe(Effect.scoped)
  )

  it.live.each(["a second signal asks not to wait", "it takes too long"])(
    "ends although nothing is handed over: %s",
    (why) =>
      Effect.gen(function* () {
        const isLate = why === "it takes too long"
        const { ended, loseIt } = yield* ending({
          noticeMillis: LONG_MILLIS,
          drainMillisMax: isLate ? 200 : LONG_MILLIS
        })
        if (!isLate) loseIt()
        yield* Effect.promise(() => ended)
      }).pipe(Effect.scoped)
  )
})
