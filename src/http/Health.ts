/**
 * Health checks for operators, outside of /v1 and without authentication, with the headers of semantics
 * responses.headers.
 */
import { Effect, Fiber, Layer } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { Accounts } from "../engine/Accounts.ts"
import { Writing } from "../engine/process/Writing.ts"
import { INSTALLATION } from "../payments/shared/AccountIds.ts"
import { type Answer, RequestIds, respond } from "./RequestContext.ts"
import { type Phase, Readiness } from "./Readiness.ts"

const state = (status: "ok" | "unavailable" | Phase, reason?: string): Answer => ({
  status: status === "ok" ? 200 : 503,
  body: JSON.stringify({ status, reason }),
  ...(status !== "ok" && { headers: { "retry-after": "1" } })
})

/** No document has this id, so reading it reaches the storage and not only the memory. */
const PROBE = "readiness_probe"

/** The limit of a check, in milliseconds. Callers give up soon and take a time-out for a failure. */
const READY_MILLIS = 3000

/**
 * `/healthz`: the process answers. `/readyz`: so does its storage, which also accepts writes as far as is known, and
 * the process is neither starting nor stopping.
 */
export const layer: Layer.Layer<never, never, HttpRouter.HttpRouter | Accounts | Readiness | RequestIds> =
  HttpRouter.use((router) =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const { phase } = yield* Readiness
      const requestIds = yield* RequestIds
      const writing = yield* Writing
      const read = Effect.flatMap(Effect.forkDetach(accounts.read(INSTALLATION, PROBE)), Fiber.join)
      const probe = Effect.andThen(read, Effect.flatMap(Effect.forkDetach(writing.probe), Fiber.join))
      const answer = (found: Effect.Effect<Answer>) =>
        Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
          const id = requestIds.next()
          return Effect.map(found, (answered) => respond(request, id, answered))
        })
      yield* router.add("GET", "/healthz", answer(Effect.succeed(state("ok"))))
      yield* router.add(
        "GET",
        "/readyz",
        answer(
          Effect.suspend(() => {
            if (phase() !== "serving") return Effect.succeed(state(phase()))
            // A timed-out read is only no longer waited for: it goes on, because other requests may share it.
            return Effect.match(Effect.timeout(Effect.interruptible(probe), READY_MILLIS), {
              onSuccess: (refusal) => (refusal === undefined ? state("ok") : state("unavailable", refusal)),
              onFailure: () => state("unavailable", writing.refusal())
            })
          })
        )
      )
    })
  )
