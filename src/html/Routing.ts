/** Routes of pages. Each route answers failures with a page too, and logs only the path. */
import { isIP } from "node:net"
import { Cause, Context, Effect, Layer } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { withoutCardNumbers } from "../domain/Cards.ts"
import { Accounts, Unavailable } from "../engine/Accounts.ts"
import type { AccountId } from "../engine/log/Document.ts"
import { Forwarder } from "../http/forward/Forwarder.ts"
import { following } from "../http/forward/ForwardPage.ts"
import { HttpConfig } from "../server/HttpConfig.ts"
import { RequestTooLarge } from "../server/HttpErrors.ts"
import type { RequestBodies } from "../server/RequestBody.ts"
import { REQUEST_MILLIS_MAX } from "../http/RequestTimeouts.ts"
import { PaymentsConfig } from "../payments/shared/PaymentsConfig.ts"
import { foreignForm, notice, unavailable } from "./Notice.ts"
import { page } from "./PageResponse.ts"
import { type Translation, translationFor } from "./Translation.ts"
import { logOf } from "../engine/process/Log.ts"

const log = logOf("html")

export type PageServices = Accounts | HttpConfig | PaymentsConfig | RequestBodies

export interface Failures {
  /** 413: the form is too long. */
  readonly tooLarge: (request: HttpServerRequest.HttpServerRequest) => HttpServerResponse.HttpServerResponse
  /** 503 if the storage is unavailable, 500 for a defect. */
  readonly unavailable: (
    request: HttpServerRequest.HttpServerRequest,
    status: 500 | 503
  ) => HttpServerResponse.HttpServerResponse
  /** The path with secrets removed, for logs. */
  readonly shownPath: (path: string) => string
}

/** Handles a request; path parameters are decoded. */
export type PageHandler<E, R> = (
  request: HttpServerRequest.HttpServerRequest,
  params: Readonly<Record<string, string | undefined>>
) => Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>

export const routeWith =
  (failures: Failures) =>
  <E, R>(
    method: "GET" | "POST",
    path: `/${string}`,
    handler: PageHandler<E, R>
  ): Layer.Layer<never, never, HttpRouter.HttpRouter | HttpConfig | R> =>
    HttpRouter.use((router) =>
      Effect.flatMap(Effect.context<HttpConfig | R>(), (services) => {
        const millisMax = Context.get(services, HttpConfig).requestMillisMax ?? REQUEST_MILLIS_MAX
        const patient = within(millisMax)
        return router.add(method, path, (request) => {
          const elsewhere = method === "GET" ? withoutSlash(request.url) : undefined
          if (elsewhere !== undefined) return Effect.succeed(elsewhere)
          return Effect.flatMap(HttpRouter.params, (params) =>
            guarded(
              failures,
              request,
              Effect.provideContext(following(request, patient(handler(request, params)), millisMax), services)
            )
          )
        })
      })
    ) as Layer.Layer<never, never, HttpRouter.HttpRouter | HttpConfig | R>

/** The language of a page that belongs to no session: the browser's. */
export const translationOf = ({ headers }: HttpServerRequest.HttpServerRequest): Translation =>
  translationFor(headers["accept-language"])

/** A route for payers' pages and the documentation. */
export const route = routeWith({
  tooLarge: (request) => page(notice(foreignForm(translationOf(request))), { status: 413 }),
  unavailable: (request, status) => page(notice(unavailable(translationOf(request))), { status }),
  shownPath: withoutCardNumbers
})

/** Fails if another process owns the account, and so forwards a page that does not read the account first. */
export const requireHere = (account: AccountId): Effect.Effect<void, Unavailable> =>
  Effect.flatMap(Forwarder, ({ isHere }) =>
    isHere(account) ? Effect.void : Effect.fail(Unavailable.elsewhere(account))
  )

/**
 * True if the request's host is `localhost` or an IP address. Any other name may be an attacker's that resolves to this
 * machine, so that the attacker's page could read Till's pages (DNS rebinding).
 */
export const namesThisMachine = ({ headers }: HttpServerRequest.HttpServerRequest): boolean => {
  const name = URL.parse(`http://${headers["host"] ?? ""}`)?.hostname ?? ""
  return /^(?:.+\.)?localhost$/.test(name) || isIP(name.replaceAll(/[[\]]/g, "")) !== 0
}

export const queryOf = ({ url }: HttpServerRequest.HttpServerRequest): URLSearchParams => {
  const mark = url.indexOf("?")
  return new URLSearchParams(mark === -1 ? "" : url.slice(mark + 1))
}

/** Fails if the storage does not respond in time. A started command still ends by its journal record. */
const within =
  (millis: number) =>
  <A, E, R>(answer: Effect.Effect<A, E, R>): Effect.Effect<A, E | Unavailable, R> =>
    Effect.timeoutOrElse(Effect.interruptible(answer), {
      duration: millis,
      orElse: () => Effect.fail(new Unavailable({ reason: "The service did not answer in time." }))
    })

/**
 * Turns every failure into a page: 413 for a form that is too long, 503 if the storage is unavailable, 500 for a
 * defect. A defect is logged with the path only, because queries contain client secrets and bodies contain card data.
 */
const guarded = <E, R>(
  { shownPath, tooLarge, unavailable }: Failures,
  request: HttpServerRequest.HttpServerRequest,
  answer: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R> =>
  Effect.catchCause(answer, (cause) => {
    if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
    const failure = cause.reasons.find((reason) => reason._tag === "Fail")?.error
    if (failure instanceof RequestTooLarge) return Effect.succeed(tooLarge(request))
    if (failure instanceof Unavailable) return Effect.succeed(unavailable(request, 503))
    return Effect.as(
      log.error(`${request.method} ${shownPath(request.url.split("?", 1)[0]!)} failed`, cause, {
        cause: "failed page"
      }),
      unavailable(request, 500)
    )
  })

/** Redirects a path with a trailing slash, below which relative links would break; undefined for others. */
export const withoutSlash = (url: string): HttpServerResponse.HttpServerResponse | undefined => {
  const mark = url.indexOf("?")
  const end = mark === -1 ? url.length : mark
  if (!url.startsWith("/", end - 1)) return undefined
  const last = url.slice(url.lastIndexOf("/", end - 2) + 1, end - 1)
  return HttpServerResponse.redirect(`../${last}${url.slice(end)}`, { status: 308 })
}
