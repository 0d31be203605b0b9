/**
 * The runners that systemd and Compose start are one service: they start together on one empty database, and one that
 * is stopped ends without an error while the others answer. The runners of either way differ in their names only, so
 * two of each are enough.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { spawnSync } from "node:child_process"
import { freshDatabase } from "../support/Postgres.ts"
import { serverPort } from "../support/ServerPort.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import type { TillProcess } from "../support/TillProcess.ts"
import { compose, processOf, systemd, type Launch } from "./Launch.ts"

const INTENT = { amount: 2000, currency: "usd", payment_method: "pm_card_visa", confirm: true }

interface Runner {
  readonly launch: Launch
  readonly till: TillProcess
}

const startAll = Effect.gen(function* () {
  const folder = yield* temporaryFolder()
  const databaseUrl = Redacted.value(yield* freshDatabase)
  const [first, second, ...others] = yield* Effect.replicateEffect(serverPort, 4)
  const place = { folder, databaseUrl }
  const launches = [...systemd({ ...place, ports: [first!, second!] }), ...compose({ ...place, ports: others })]
  const runners = yield* Effect.forEach(launches, (launch) =>
    Effect.acquireRelease(
      Effect.sync((): Runner => ({ launch, till: processOf(launch, folder) })),
      ({ till }) => Effect.promise(() => till.destroy())
    )
  )
  yield* Effect.promise(() => Promise.all(runners.map(({ till }) => till.start())))
  return runners
})

const createPayment = async ({ launch, till }: Runner): Promise<string> => {
  const { body, status, text } = await till.request("POST", "/v1/payment_intents", { body: INTENT })
  assert.strictEqual(status, 200, `${launch.name}: ${text}`)
  return body.id as string
}

const requireSeen = async (ids: ReadonlyArray<string>, runners: ReadonlyArray<Runner>) => {
  for (const { launch, till } of runners) {
    for (const id of ids) {
      const { body, status } = await till.request("GET", `/v1/payment_intents/${id}`)
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
        const ids = await Promise.all(runners.map(createPayment))
        await requireSeen(ids, runners)
        const others = [second!, third!]
        const { launch } = third!
        assert.strictEqual(healthOf(launch), 0)
        const gone = { health: launch.health!.map((part) => part.replace(`:${launch.port}/`, ":9/")) }
        assert.strictEqual(healthOf({ ...launch, ...gone }), 1)

        const state = { isOver: false }
        const ended = first!.till.kill(first!.launch.stopSignal).finally(() => (state.isOver = true))
        while (!state.isOver) for (const other of others) ids.push(await createPayment(other))
        assert.deepStrictEqual(await ended, { code: 0, signal: null }, first!.till.stderr)
        for (const other of others) ids.push(await createPayment(other))
        await requireSeen([...ids.slice(0, 3), ...ids.slice(-20)], others)
      })
      // Till reads every variable that the files set.
      for (const { till } of runners) assert.notInclude(till.stdout + till.stderr, "not read by Till")
    })
  )
})
