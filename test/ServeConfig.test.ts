import { createServer } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { serveConfig } from "../src/app.ts"
import { TillConfig } from "../src/config.ts"

const load = (environment: Record<string, string>) =>
  TillConfig.pipe(
    Effect.provide(serveConfig),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: environment }))
  )

const listen = (port: number) =>
  Effect.callback<void, Error>((resume) => {
    const server = createServer().once("error", (error) => resume(Effect.fail(error)))
    server.listen(port, "127.0.0.1", () => server.close(() => resume(Effect.void)))
  })

describe("serving configuration", () => {
  it.live("PORT=0 becomes a free port, which links can contain", () =>
    Effect.gen(function* () {
      const { port } = yield* load({ PORT: "0" })
      assert.isAbove(port, 0)
      yield* listen(port)
    })
  )

  it.live("any other port stays, also one that is not free", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* load({ PORT: "4321" })).port, 4321)
      assert.strictEqual((yield* load({ PORT: "0", HOST: "192.0.2.1" })).port, 0)
    })
  )
})
