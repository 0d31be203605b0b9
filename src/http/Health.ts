/** Health checks for operators, outside of /v1 and without authentication. */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { Accounts } from "../engine/Accounts.ts"
import { INSTALLATION } from "../payments/AccountIds.ts"

const state = (status: "ok" | "unavailable") =>
  HttpServerResponse.text(JSON.stringify({ status }), {
    status: status === "ok" ? 200 : 503,
    contentType: "application/json",
    headers: { "cache-control": "no-store", ...(status === "unavailable" && { "retry-after": "1" }) }
  })

/** No document has this id, so reading it asks the storage and not the memory. */
const PROBE = "readiness_probe"

/** `/healthz`: the process answers. `/readyz`: so does its storage. */
export const layer: Layer.Layer<never, never, HttpRouter.HttpRouter | Accounts> = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    yield* router.add("GET", "/healthz", state("ok"))
    yield* router.add(
      "GET",
      "/readyz",
      Effect.match(accounts.read(INSTALLATION, PROBE), {
        onSuccess: () => state("ok"),
        onFailure: () => state("unavailable")
      })
    )
  })
)
