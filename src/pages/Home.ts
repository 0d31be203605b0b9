/**
 * Serves `GET /` (semantics 9.28): a page for people, and for everybody else the error of an address where nothing is.
 */
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { PaymentsConfig } from "../payments/PaymentsConfig.ts"
import * as HomePage from "./HomePage.ts"
import { page } from "../html/PageResponse.ts"

/** Browsers name the type; programs take anything, or JSON. */
const wantsHtml = (accept: string | undefined): boolean =>
  (accept ?? "").split(",").some((range) => /^\s*text\/html\s*(?:;(?!\s*q=0(?:\.0*)?\s*$)|$)/i.test(range))

const isHome = ({ headers, method, url }: HttpServerRequest.HttpServerRequest): boolean =>
  (method === "GET" || method === "HEAD") && /^\/(?:\?|$)/.test(url) && wantsHtml(headers["accept"])

/** Stands in front of the router, which knows no other `/` and so refuses everybody else as usual. */
export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const { liveProcessor, publicUrl } = yield* PaymentsConfig
    const home = HomePage.render({ publicUrl, takesLiveCards: liveProcessor !== null })
    yield* router.addGlobalMiddleware((routed) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
        isHome(request) ? Effect.sync(() => HttpServerResponse.setHeader(page(home), "vary", "accept")) : routed
      )
    )
  })
)
