/** Checks of the running service, by its port. */
import { Effect } from "effect"
import type { InvalidConfiguration, TillConfigShape } from "../config.ts"
import { type Finding, ok, problem, warning } from "./Finding.ts"

const WITHIN_MILLIS = 5000

interface Ready {
  readonly status: number
  readonly isTill: boolean
  readonly state: string
}

/** Addresses that stand for all of a machine cannot be connected to everywhere. */
const reachable = (host: string): string => (/^(0\.0\.0\.0|::)$/.test(host) ? "127.0.0.1" : host)

const ask = (url: string): Effect.Effect<Ready | undefined> =>
  Effect.promise(async (signal) => {
    try {
      const response = await fetch(`${url}/readyz`, {
        signal: AbortSignal.any([signal, AbortSignal.timeout(WITHIN_MILLIS)])
      })
      const isTill = response.headers.get("x-request-id")?.startsWith("req_") === true
      const body: unknown = isTill ? await response.json() : {}
      const { reason, status } = body as { readonly status?: string; readonly reason?: string }
      return { status: response.status, isTill, state: reason ?? status ?? "" }
    } catch {
      return undefined
    }
  })

/** `free` fails with the reason for which a service could not listen on the configured port. */
export const service = (
  { host, port }: Pick<TillConfigShape, "host" | "port">,
  free: Effect.Effect<unknown, InvalidConfiguration>
): Effect.Effect<Finding> =>
  Effect.gen(function* () {
    const check = "service"
    const name = reachable(host)
    const url = `http://${name.includes(":") ? `[${name}]` : name}:${port}`
    const found = yield* ask(url)
    if (found === undefined) {
      return yield* Effect.match(free, {
        onSuccess: () => warning(check, `No service answers at ${url}; the port is free`, "Start it: till serve."),
        onFailure: ({ message }) =>
          problem(check, `No service answers at ${url}: ${message}`, "End the other program, or choose another PORT.")
      })
    }
    if (!found.isTill) {
      return problem(check, `Another program answers at ${url}`, "End it, or choose another PORT for Till.")
    }
    return found.status === 200
      ? ok(check, `The service at ${url} is ready`)
      : problem(check, `The service at ${url} is not ready: ${found.state}`, "Its log on standard error says why.")
  })
