/** Adds the routes of pages. Every route answers a failure with a page as well, and logs no more than a path. */
import { Cause, Context, Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { withoutCardNumbers } from "../domain/Cards.ts"
import { Accounts, Unavailable } from "../engine/Accounts.ts"
import type { AccountId } from "../engine/log/Document.ts"
import { Forwarder, newCourse } from "../http/forward/Forwarder.ts"
import { forwardPage } from "../http/forward/ForwardPage.ts"
import { HttpConfig } from "../server/HttpConfig.ts"
import { RequestTooLarge } from "../server/HttpErrors.ts"
import type { RequestBodies } from "../server/RequestBody.ts"
import { REQUEST_MILLIS_MAX } from "../http/RequestTimeouts.ts"
import { PaymentsConfig } from "../payments/PaymentsConfig.ts"
import { NOT_FROM_HERE, notice, UNAVAILABLE } from "./Notice.ts"
import { page } from "./PageResponse.ts"

/** The services that pages use. */
export type PageServices = Accounts | HttpConfig | PaymentsConfig | RequestBodies

/** The pages that take the place of one that cannot be shown. */
export interface Failures {
  /** 413: a form is too long to be Till's own. */
  readonly tooLarge: (request: HttpServerRequest.HttpServerRequest) => HttpServerResponse.HttpServerResponse
  /** 503 if the storage does not answer, 500 for a defect. */
  readonly unavailable: (
    request: HttpServerRequest.HttpServerRequest,
    status: 500 | 503
  ) => HttpServerResponse.HttpServerResponse
  /** A path as logs may show it. */
  readonly shownPath: (path: string) => string
}

/** The handler gets the path's parameters, decoded. */
export type PageHandler<E, R> = (
  request: HttpServerRequest.HttpServerRequest,
  params: Readonly<Record<string, string | undefined>>
) => Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>

/** Makes routes whose failures look like the pages beside them. */
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

/** A payer's page, or one of the documentation. */
export const route = routeWith({
  tooLarge: () => page(notice(NOT_FROM_HERE), { status: 413 }),
  unavailable: (_, status) => page(notice(UNAVAILABLE), { status }),
  shownPath: withoutCardNumbers
})

/** A request follows its account so often. */
const MOVES_MAX = 4

/** Has a page answered where its account is, once its handler has found that it is elsewhere. */
const following = <E, R>(
  request: HttpServerRequest.HttpServerRequest,
  answer: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  millisMax: number,
  moves: number = MOVES_MAX,
  course = newCourse()
): Effect.Effect<HttpServerResponse.HttpServerResponse, E | Unavailable | RequestTooLarge, R | RequestBodies> =>
  Effect.catch(answer, (failure) => {
    const account = failure instanceof Unavailable && failure.isElsewhere ? failure.account : undefined
    if (account === undefined || moves === 0) return Effect.fail(failure)
    const again = following(request, answer, millisMax, moves - 1, course)
    return forwardPage(request, account, millisMax, course, again)
  })

/**
 * Goes on if the account is served here. Otherwise the request goes where it is, whole: this is all that a page needs
 * that is about an account and does not begin by reading it.
 */
export const requireHere = (account: AccountId): Effect.Effect<void, Unavailable> =>
  Effect.flatMap(Forwarder, ({ isHere }) =>
    isHere(account) ? Effect.void : Effect.fail(Unavailable.elsewhere(account))
  )

/** The query. Only the first question mark begins one. */
export const queryOf = ({ url }: HttpServerRequest.HttpServerRequest): URLSearchParams => {
  const mark = url.indexOf("?")
  return new URLSearchParams(mark === -1 ? "" : url.slice(mark + 1))
}

/** Fails if the storage hangs. A command that has begun still ends when the journal says so, as over the API. */
const within =
  (millis: number) =>
  <A, E, R>(answer: Effect.Effect<A, E, R>): Effect.Effect<A, E | Unavailable, R> =>
    Effect.timeoutOrElse(Effect.interruptible(answer), {
      duration: millis,
      orElse: () => Effect.fail(new Unavailable({ reason: "The service did not answer in time." }))
    })

/**
 * Answers with a page, whatever happens: 413 for a form that is too long to be Till's own, 503 if the storage does not
 * answer, 500 for a defect. A defect is logged with the path alone, because queries hold client secrets, and bodies
 * card data.
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
      Effect.logError(`${request.method} ${shownPath(request.url.split("?", 1)[0]!)} failed`, cause),
      unavailable(request, 500)
    )
  })

/**
 * Leads to the same page without the slash at the end of its path; undefined if there is none. Paths match with and
 * without it, but links of pages are relative, because Till may lie below a path: behind a slash they would lead
 * elsewhere.
 */
export const withoutSlash = (url: string): HttpServerResponse.HttpServerResponse | undefined => {
  const mark = url.indexOf("?")
  const end = mark === -1 ? url.length : mark
  if (!url.startsWith("/", end - 1)) return undefined
  const last = url.slice(url.lastIndexOf("/", end - 2) + 1, end - 1)
  return HttpServerResponse.redirect(`../${last}${url.slice(end)}`, { status: 308 })
}
