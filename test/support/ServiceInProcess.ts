/** Commands and the whole service in the process of the test, with the configuration of an installation. */
import { ConfigProvider, Console, Effect, type Exit, Fiber } from "effect"
import { run } from "../../src/cli/Serve.ts"
import { HttpExchange } from "./HttpExchange.ts"
import { serverPort } from "./ServerPort.ts"
import { until } from "./TillProcess.ts"

type Variables = Readonly<Record<string, string>>

/** Runs an effect with environment variables. It prints nothing but errors. */
export const withVariables = <A, E, R>(effect: Effect.Effect<A, E, R>, variables: Variables): Effect.Effect<A, E, R> =>
  effect.pipe(
    Effect.provideService(Console.Console, { ...console, log: () => {} }),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: variables }))
  )

/** Runs the whole service while `use` sends requests with the key. `at` runs it on an installation. */
export const serving = <A>(
  at: (service: ReturnType<typeof run>, more: Variables) => ReturnType<typeof run>,
  key: string,
  use: (http: HttpExchange) => Promise<A>
): Effect.Effect<A, unknown> =>
  Effect.gen(function* () {
    const port = yield* serverPort
    const http = new HttpExchange(port, key)
    const service = yield* Effect.forkChild(at(run({ level: "None", impatience: Effect.void }), { PORT: String(port) }))
    const isReady = () =>
      http.request("GET", "/readyz", { key: null }).then(
        ({ status }) => status === 200,
        () => false
      )
    const used = Effect.tryPromise(async () => {
      await until("Till is ready", isReady)
      return use(http)
    })
    const exit = yield* Effect.exit(Effect.raceFirst(used, Fiber.join(service)))
    http.close()
    yield* Fiber.interrupt(service)
    return yield* exit as Exit.Exit<A, unknown>
  })
