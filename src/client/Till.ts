/**
 * The client for Effect programs: the contract's endpoints as effects.
 *
 * Guarantees: one run of a call is one request, because all its attempts share an `Idempotency-Key`. An attempt that is
 * interrupted or times out closes its connection. Every call requests the API version that the types describe. The API
 * key is in no error, log line or span.
 *
 * The endpoints come from the contract. `HttpApiClient` would derive a client too, but one that drops unknown
 * parameters and refuses unknown response fields (see Request.ts and Answer.ts).
 */
import { Context, Effect, Layer, Redacted } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import type { EffectMethods } from "./EffectMethods.ts"
import { forEveryEndpoint } from "./Endpoints.ts"
import type { TillError } from "./Errors.ts"
import { baseUrlOf, type ClientOptions } from "./Options.ts"
import { type Page, streamPages } from "./PageStream.ts"
import { type Call, callOf } from "./Request.ts"
import { type Defaults, descriptionOf, type Exchange, send } from "./Send.ts"

export interface TillOptions extends Pick<ClientOptions, "baseUrl">, Defaults {}

/** Makes attempts with an `HttpClient`. Its errors hold the request and its `Authorization`, so they are replaced. */
const exchangeOf = (client: HttpClient.HttpClient, baseUrl: string): Exchange => {
  const http = HttpClient.withScope(client)
  return ({ body, headers, method, path }) => {
    const request = HttpClientRequest.make(method)(`${baseUrl}${path}`).pipe(HttpClientRequest.setHeaders(headers))
    return http
      .execute(body === undefined ? request : HttpClientRequest.bodyText(request, body, headers["content-type"]))
      .pipe(
        Effect.flatMap(({ headers, status, text }) => Effect.map(text, (text) => ({ status, headers, text }))),
        // The scope closes the connection, unless the response is complete.
        Effect.scoped,
        Effect.mapError(descriptionOf)
      )
  }
}

/** Makes the methods of a client that sends requests with this `HttpClient`. */
const methods = (client: HttpClient.HttpClient, options: TillOptions): EffectMethods => {
  const exchange = exchangeOf(client, baseUrlOf(options.baseUrl, Redacted.value(options.apiKey)))
  const made = forEveryEndpoint((endpoint) => {
    const run = (call: Call) => send(exchange, endpoint, call, options)
    const method = (...args: ReadonlyArray<unknown>) => run(callOf(endpoint, args))
    if (endpoint[0] !== "GET") return method
    const stream = (...args: ReadonlyArray<unknown>) => {
      const call = callOf(endpoint, args)
      return streamPages(
        (parameters) => run({ ...call, parameters }) as Effect.Effect<Page, TillError>,
        call.parameters
      )
    }
    return Object.assign(method, { stream })
  })
  return made as unknown as EffectMethods
}

/**
 * The client for Effect programs.
 *
 * ```ts
 * const program = Effect.gen(function* () {
 *   const till = yield* Till
 *   const customer = yield* till.customers.create({ email: "jenny@example.com" })
 *   yield* till.payment_intents
 *     .create({ amount: 2000, currency: "usd", customer: customer.id, payment_method: "pm_card_visa", confirm: true })
 *     .pipe(Effect.catchTag("PaymentError", (declined) => Effect.log(declined.decline_code)))
 *   yield* Stream.runForEach(till.events.list.stream({ limit: 100 }), (event) => Effect.log(event.type))
 * })
 * const till = Till.layerFetch({ apiKey: Redacted.make("sk_test_…"), baseUrl: "http://localhost:4242" })
 * program.pipe(Effect.provide(till))
 * ```
 */
export class Till extends Context.Service<Till, EffectMethods>()("till-payments-client/Till") {
  /**
   * A client over any `HttpClient`, which should neither follow redirects nor repeat requests. Dies if `baseUrl` is not
   * a web address or `apiKey` is empty.
   */
  static readonly make = (options: TillOptions): Effect.Effect<EffectMethods, never, HttpClient.HttpClient> =>
    Effect.map(HttpClient.HttpClient, (client) => methods(client, options))

  /** A client over the `HttpClient` of the program. */
  static readonly layer = (options: TillOptions): Layer.Layer<Till, never, HttpClient.HttpClient> =>
    Layer.effect(Till, Till.make(options))

  /** A client over `fetch`. */
  static readonly layerFetch = (options: TillOptions): Layer.Layer<Till> =>
    Layer.provide(Till.layer(options), layerFetch)
}

/** `fetch` without following redirects, by which the POST of a payment could become a GET of another resource. */
const layerFetch: Layer.Layer<HttpClient.HttpClient> = FetchHttpClient.layer.pipe(
  Layer.provide(Layer.succeed(FetchHttpClient.RequestInit, { redirect: "manual" }))
)
