/**
 * Three runners on one database are restarted one after the other under load, and no request fails (semantics
 * operation.stop).
 *
 * The clients use the runners through a balancer. An answer of one runner is read from another one at once.
 * `TILL_RESTARTS` is the number of restarts.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { socketsOf } from "../../src/control/ControlSocket.ts"
import { Balancer } from "../support/Balancer.ts"
import { startFleet } from "../support/TillFleet.ts"
import { pause, till } from "../support/TillProcess.ts"

const RUNNERS = 3
const RESTARTS = Number(process.env["TILL_RESTARTS"] ?? 1)
const CLIENTS = 8
const TEST_MILLIS_MAX = 600_000 + RESTARTS * 60_000

describe("three runners", () => {
  it.live(
    "start at once on an empty database, and are restarted one after the other without a failed request",
    () =>
      Effect.flatMap(startFleet(RUNNERS), (runners) =>
        Effect.promise(async () => {
          const balancer = new Balancer(runners)
          let created = 0
          const running = balancer.run(CLIENTS, async ({ fail, key, name, send }) => {
            const made = await send("POST", "/v1/customers", { key, idempotencyKey: name, body: { name } })
            if (made === undefined) return
            created++
            const read = await send("GET", `/v1/customers/${made.id}`, { key })
            if (read !== undefined && read.name !== name) fail(`${made.id} is ${read.name}, not ${name}`)
          })
          for (let i = 0; i < RESTARTS; i++) {
            const runner = runners[i % RUNNERS]!
            await pause(500)
            assert.deepStrictEqual(await runner.kill("SIGTERM"), { code: 0, signal: null }, runner.stderr)
            await runner.start()
          }
          await pause(500)
          balancer.end()
          await running
          assert.deepStrictEqual(balancer.failures.slice(0, 10), [])
          assert.isAbove(created, 10 * CLIENTS)
          process.stdout.write(
            `${balancer.requests} requests, ${RESTARTS} restarts, none failed` +
              `${balancer.excused > 0 ? ` but ${balancer.excused} on a machine that was too busy` : ""}\n`
          )

          // Every runner takes commands, whichever runner serves the installation's account.
          for (const runner of runners) {
            assert.strictEqual(socketsOf(runner.folder).length, 1)
            const made = await till(["merchants", "create", "Acme Inc."], runner.variables)
            assert.strictEqual(made.code, 0, made.stderr)
            const key = / (sk_test_\w{32})$/m.exec(made.stdout)![1]!
            for (const other of runners) assert.isEmpty((await other.get("/v1/customers", { key })).data)
          }
        })
      ),
    TEST_MILLIS_MAX
  )
})
