/**
 * What systemd and Compose would start runs: runners on one database, started at once on an empty one, are one service;
 * one that is stopped goes without a word of error, and the others go on meanwhile. The runners of either way differ in
 * their names only, so some of each tell of both.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { spawnSync } from "node:child_process"
import { freshDatabase } from "../support/Postgres.ts"
import { serverPort } from "../support/ServerPort.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import { compose, Runner, systemd, type Launch } from "./Launch.ts"

const INTENT = { amount: 2000, currency: "usd", payment_method: "pm_card_visa", confirm: true }

const startAll = Effect.gen(function* () {
  const folder = yield* temporaryFolder()
  const databaseUrl = Redacted.value(yield* freshDatabase)
  const [first, second, ...others] = yield* Effect.replicateEffect(serverPort, 4)
  const launches = [
    ...systemd({ folder, databaseUrl, ports: [first!, second!] }),
    ...compose({ folder, databaseUrl, ports: others })
  ]
  const runners = yield* Effect.forEach(launches, (launch) =>
    Effect.acquireRelease(
      Effect.sync(() => new Runner(launch)),
      (runner) => Effect.promise(() => runner.destroy())
    )
  )
  yield* Effect.promise(() => Promise.all(runners.map((runner) => runner.ready())))
  return runners
})

const created = async ({ http, launch }: Runner): Promise<string> => {
  const { body, status, text } = await http.request("POST", "/v1/payment_intents", { body: INTENT })
  assert.strictEqual(status, 200, `${launch.name}: ${text}`)
  return body.id as string
}

const requireSeen = async (ids: ReadonlyArray<string>, runners: ReadonlyArray<Runner>) => {
  for (const { http, launch } of runners) {
    for (const id of ids) {
      const { body, status } = await http.request("GET", `/v1/payment_intents/${id}`)
      assert.deepStrictEqual([status, body.status], [200, "succeeded"], `${launch.name}: ${id}`)
    }
  }
}

/** The health check's exit code. */
const healthOf = ({ health }: Launch): number | null => {
  const [program, ...parameters] = health!
  assert.strictEqual(program, "node")
  return spawnSync(process.execPath, parameters).status
}

describe("runners as they are deployed", () => {
  it.live("are one service, which goes on while one of them is stopped", () =>
    Effect.gen(function* () {
      const runners = yield* startAll
      const [first, second, third] = runners
      yield* Effect.promise(async () => {
        const ids = await Promise.all(runners.map(created))
        await requireSeen(ids, runners)
        const others = [second!, third!]
        const { launch } = third!
        assert.strictEqual(healthOf(launch), 0)
        const gone = { health: launch.health!.map((part) => part.replace(`:${launch.port}/`, ":9/")) }
        assert.strictEqual(healthOf({ ...launch, ...gone }), 1)

        const state = { isOver: false }
        const ended = first!.stop().finally(() => (state.isOver = true))
        while (!state.isOver) for (const other of others) ids.push(await created(other))
        assert.deepStrictEqual(await ended, { code: 0, signal: null }, first!.output)
        for (const other of others) ids.push(await created(other))
        await requireSeen([...ids.slice(0, 3), ...ids.slice(-20)], others)
      })
      // All that the files set means something to Till.
      for (const { output } of runners) assert.notInclude(output, "not read by Till")
    })
  )
})
