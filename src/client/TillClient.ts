/**
 * The client for programs without Effect: the contract's endpoints as promises.
 *
 * Attempts are effects, with the guarantees of Till.ts. Promises reject with a `TillError`, or with the reason of
 * the call's `AbortSignal`. The stack of a `TillError` is that of the call, so it shows which call failed.
 */
import { Cause, Effect, Exit, Redacted } from "effect"
import { forEveryEndpoint } from "./Endpoints.ts"
import { isTillError, type TillError } from "./Errors.ts"
import type { PromiseMethods, PromiseRequestOptions } from "./Methods.ts"
import { baseUrlOf, type ClientOptions } from "./Options.ts"
import { iteratePages, type ListParameters, type Page } from "./Pages.ts"
import { callOf, identifierCount } from "./Request.ts"
import { descriptionOf, type Exchange, send } from "./Send.ts"

export interface TillClientOptions extends ClientOptions {
  /** A secret or publishable key. */
  readonly apiKey: string
  /** A replacement for the platform's `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** Makes attempts with `fetch`, without following redirects, by which the POST of a payment could become a GET. */
const exchangeOf =
  (fetch: typeof globalThis.fetch, baseUrl: string): Exchange =>
  ({ body, headers, method, path }) =>
    Effect.tryPromise({
      try: async (signal) => {
        const init = { method, headers, redirect: "manual", signal, ...(body !== undefined && { body }) } as const
        const response = await fetch(`${baseUrl}${path}`, init)
        return { status: response.status, headers: Object.fromEntries(response.headers), text: await response.text() }
      },
      catch: descriptionOf
    })

const methods = ({ apiKey, fetch = globalThis.fetch, ...others }: TillClientOptions): PromiseMethods => {
  const options = { ...others, apiKey: Redacted.make(apiKey) }
  const exchange = exchangeOf(fetch, baseUrlOf(options.baseUrl, apiKey))
  const made = forEveryEndpoint((endpoint) => {
    const count = identifierCount(endpoint)
    const run = (args: ReadonlyArray<unknown>, called: Called) =>
      settle(
        send(exchange, endpoint, callOf(endpoint, args), options),
        called,
        args[count + 1] as PromiseRequestOptions
      )
    if (endpoint[0] !== "GET") {
      return function call(...args: ReadonlyArray<unknown>) {
        return run(args, calledAs(call))
      }
    }
    return function list(...args: ReadonlyArray<unknown>) {
      const called = calledAs(list)
      const first = run(args, called)
      const fetchPage = (parameters: ListParameters) =>
        run(args.toSpliced(count, 1, parameters), called) as Promise<Page>
      const iterate = () => iteratePages(fetchPage, (args[count] ?? {}) as ListParameters, first as Promise<Page>)
      return Object.assign(first, { [Symbol.asyncIterator]: iterate })
    }
  })
  return made as unknown as PromiseMethods
}

/** The place of a call. The stack's text is built only when it is read. */
interface Called {
  readonly stack?: unknown
}

/** Returns the stack above the method; empty on runtimes that cannot capture it. */
const calledAs = (method: (...args: ReadonlyArray<unknown>) => unknown): Called => {
  const called: Called = {}
  ;(Error as Partial<ErrorConstructor>).captureStackTrace?.(called, method)
  return called
}

/** Gives an error the stack of its call. Errors are created in a fiber, whose frames show no caller. */
const withStackOf = (error: unknown, { stack }: Called): unknown => {
  if (!isTillError(error) || typeof stack !== "string" || !stack.includes("\n")) return error
  const value = `${String(error)}${stack.slice(stack.indexOf("\n"))}`
  return Object.defineProperty(error, "stack", { value, configurable: true, enumerable: false, writable: true })
}

/** Runs a call until it ends or its signal aborts it. */
const settle = async (
  call: Effect.Effect<unknown, TillError>,
  called: Called,
  { signal }: PromiseRequestOptions = {}
): Promise<unknown> => {
  const exit = await Effect.runPromiseExit(call, signal === undefined ? {} : { signal })
  if (Exit.isSuccess(exit)) return exit.value
  if (signal?.aborted === true && Cause.hasInterrupts(exit.cause)) throw signal.reason
  throw withStackOf(Cause.squash(exit.cause), called)
}

/**
 * The client for programs without Effect.
 *
 * ```ts
 * const till = new TillClient({ apiKey: "sk_test_…", baseUrl: "http://localhost:4242" })
 * const customer = await till.customers.create({ email: "jenny@example.com" })
 * await till.customers.update(customer.id, { name: "Jenny Rosen" }, { signal: AbortSignal.timeout(5_000) })
 * const page = await till.customers.list({ limit: 3 })
 * for await (const customer of till.customers.list({ limit: 100 })) console.log(customer.email)
 * ```
 *
 * Throws a `TypeError` if `baseUrl` is not a web address or `apiKey` is empty.
 */
export type TillClient = PromiseMethods
// oxlint-disable-next-line typescript/no-extraneous-class -- its methods come from the contract
export const TillClient: new (options: TillClientOptions) => TillClient = class TillClient {
  constructor(options: TillClientOptions) {
    Object.assign(this, methods(options))
  }
} as never
