/**
 * The client for everybody who does not use Effect: the contract's endpoints as promises.
 *
 * It is the Effect client, run; so what Till.ts guarantees holds here. Promises reject with a `TillError`, or with the
 * reason of the call's `AbortSignal`.
 */
import { Cause, Effect, Exit, Layer, Redacted } from "effect"
import { FetchHttpClient } from "effect/http"
import type { TillError } from "./Errors.ts"
import type { PromiseMethods, PromiseRequestOptions } from "./Methods.ts"
import type { ListParameters, Page } from "./Pages.ts"
import { iteratePages } from "./Pages.ts"
import { identifierCount } from "./Request.ts"
import type { TillOptions } from "./Till.ts"
import { forEveryEndpoint, layerFetch, Till } from "./Till.ts"

export interface TillClientOptions extends Omit<TillOptions, "apiKey"> {
  /** A secret or publishable key. */
  readonly apiKey: string
  /** What sends requests, instead of the platform's `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

type EffectMethod = (...args: ReadonlyArray<unknown>) => Effect.Effect<unknown, TillError>

const methods = ({ apiKey, fetch = globalThis.fetch, ...options }: TillClientOptions): PromiseMethods => {
  const layer = Layer.provide(layerFetch, Layer.succeed(FetchHttpClient.Fetch, fetch))
  const till = Effect.runSync(Effect.provide(Till.make({ ...options, apiKey: Redacted.make(apiKey) }), layer))
  const effects = till as unknown as Readonly<Record<string, Readonly<Record<string, EffectMethod>>>>
  const made = forEveryEndpoint((endpoint, group) => {
    const method = effects[group]![endpoint.identifier]!
    const count = identifierCount(endpoint)
    const run = (args: ReadonlyArray<unknown>) => settle(method(...args), args[count + 1] as PromiseRequestOptions)
    if (endpoint.method !== "GET") return (...args: ReadonlyArray<unknown>) => run(args)
    return (...args: ReadonlyArray<unknown>) => {
      const first = run(args)
      const fetchPage = (parameters: ListParameters) => run(args.toSpliced(count, 1, parameters)) as Promise<Page>
      const iterate = () => iteratePages(fetchPage, (args[count] ?? {}) as ListParameters, first as Promise<Page>)
      return Object.assign(first, { [Symbol.asyncIterator]: iterate })
    }
  })
  return made as unknown as PromiseMethods
}

/** Runs a call to its end, or to the end of its signal. */
const settle = async (
  call: Effect.Effect<unknown, TillError>,
  { signal }: PromiseRequestOptions = {}
): Promise<unknown> => {
  const exit = await Effect.runPromiseExit(call, signal === undefined ? {} : { signal })
  if (Exit.isSuccess(exit)) return exit.value
  if (signal?.aborted === true && Cause.hasInterrupts(exit.cause)) throw signal.reason
  throw Cause.squash(exit.cause)
}

/**
 * The client.
 *
 * ```ts
 * const till = new TillClient({ apiKey: "sk_test_…", baseUrl: "http://localhost:4242" })
 * const customer = await till.customers.create({ email: "jenny@example.com" })
 * await till.customers.update(customer.id, { name: "Jenny Rosen" }, { signal: AbortSignal.timeout(5_000) })
 * const page = await till.customers.list({ limit: 3 })
 * for await (const customer of till.customers.list({ limit: 100 })) console.log(customer.email)
 * ```
 *
 * Throws a `TypeError` if `baseUrl` is no URL.
 */
export type TillClient = PromiseMethods
// oxlint-disable-next-line typescript/no-extraneous-class -- its methods come from the contract
export const TillClient: new (options: TillClientOptions) => TillClient = class TillClient {
  constructor(options: TillClientOptions) {
    Object.assign(this, methods(options))
  }
} as never
