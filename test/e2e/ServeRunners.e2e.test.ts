/**
 * `till serve --runners N` is one service of several processes (semantics runners.serve): for clients, for the
 * operator's start, and for its end.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as fs from "node:fs"
import { createServer } from "node:net"
import { socketsOf } from "../../src/control/ControlSocket.ts"
import { HttpExchange, Lost } from "../support/HttpExchange.ts"
import { freshDatabase } from "../support/Postgres.ts"
import {
  runnersOf,
  KEYS,
  prepareTill,
  run,
  signalIfThere,
  startTill,
  till,
  until,
  type TillProcess
} from "../support/TillProcess.ts"

const RUNNERS = 2
/** A fifth of the 600 seconds that a process has to end. */
const NOTICE_MILLIS = 120_000

const isThere = (processId: number): boolean => {
  try {
    process.kill(processId, 0)
    return true
  } catch {
    return false
  }
}

const occurrences = (text: string, part: string): number => text.split(part).length - 1

/** Creates a customer over a new connection, for which the runners take turns. */
const create = async (server: TillProcess, key: string, idempotencyKey: string): Promise<number | "lost"> => {
  const http = new HttpExchange(server.port, key)
  try {
    const options = { body: { name: idempotencyKey }, idempotencyKey }
    return (await http.request("POST", "/v1/customers", options)).status
  } catch (error) {
    if (error instanceof Lost) return "lost"
    throw error
  } finally {
    http.close()
  }
}

const prepared = prepareTill({ args: ["--runners", String(RUNNERS)], withoutKeys: true })

describe("till serve --runners", () => {
  it.live(
    "is one service: one greeting, one port; a killed runner is replaced, and its end leaves nothing behind",
    () =>
      Effect.flatMap(prepared, (server) =>
        Effect.promise(async () => {
          await server.start()
          assert.strictEqual(occurrences(server.stdout, "Till listens on"), 1)
          const keys = [...server.stdout.matchAll(/ ([sp]k_(?:test|live)_\w{32})$/gm)].map(([, key]) => key!)
          assert.strictEqual(new Set(keys).size, 2)
          const [, kept] = /^The keys of live mode are in (\S+), which only its owner can read\./m.exec(server.stdout)!
          assert.match(fs.readFileSync(kept!, "utf8"), /^TILL_SK_LIVE=sk_live_\w{32}\nTILL_PK_LIVE=pk_live_\w{32}\n$/u)
          const key = keys[0]!
          const before = runnersOf(server)
          assert.strictEqual(before.length, RUNNERS)
          const sockets = socketsOf(server.folder)
          assert.strictEqual(sockets.length, RUNNERS)
          for (let i = 0; i < 2 * RUNNERS; i++) assert.strictEqual(await create(server, key, `first ${i}`), 200)

          signalIfThere(before[0]!, "SIGKILL")
          await until("another runner is there", () => {
            const now = runnersOf(server)
            return now.length === RUNNERS && !now.includes(before[0]!)
          })
          assert.include(server.stderr, "A runner has ended")
          for (let i = 0; i < 2 * RUNNERS; i++) {
            // Requests that the killed runner lost are repeated with their keys.
            await until("it is answered", async () => (await create(server, key, `second ${i}`)) === 200)
          }
          // The new runner has removed the socket of the killed one.
          await until("it takes commands", () => {
            const now = socketsOf(server.folder)
            return now.length === RUNNERS && now.some((path) => !sockets.includes(path))
          })
          const { stdout } = await till(["merchants", "list"], server.variables)
          assert.match(stdout, /^ID .*\nmer_\w{24} .* Default merchant\n$/)
          const listed = await server.get("/v1/customers?limit=100", { key })
          assert.strictEqual(listed.data.length, 4 * RUNNERS)

          const all = runnersOf(server)
          assert.deepStrictEqual(await server.kill("SIGTERM"), { code: 0, signal: null })
          assert.isEmpty([...all, ...before].filter(isThere))
          assert.isUndefined(server.postgresProcessId)
          assert.isEmpty(socketsOf(server.folder))
          assert.strictEqual(occurrences(server.stdout, "Till listens on"), 1)

          await server.start()
          assert.notInclude(server.stdout, "sk_test_")
          assert.strictEqual((await server.get("/v1/customers?limit=100", { key })).data.length, 4 * RUNNERS)
          const last = runnersOf(server)
          await server.kill("SIGKILL")
          await until("the runners and Postgres are gone", () => {
            return !last.some(isThere) && server.postgresProcessId === undefined
          })
        })
      ),
    600_000
  )

  it.live(
    "gives a balancer time to notice its end, until a second signal",
    () =>
      Effect.gen(function* () {
        // Two minutes of notice, unless a second signal ends them.
        const variables = { DATABASE_URL: Redacted.value(yield* freshDatabase), TILL_DRAIN_SECONDS: "600" }
        const server = yield* startTill({ args: ["--runners", String(RUNNERS)], variables })
        yield* Effect.promise(async () => {
          const begun = performance.now()
          const ended = server.kill("SIGTERM")
          for (let i = 0; i < 2 * RUNNERS; i++) {
            await until("readiness reports the stop", async () => {
              const { body } = await server.request("GET", "/readyz", { key: null })
              return body.status === "stopping"
            })
            assert.strictEqual(await create(server, KEYS.secretTest, `late ${i}`), 200)
          }
          signalIfThere(server.processId, "SIGTERM")
          assert.deepStrictEqual(await ended, { code: 0, signal: null }, server.stderr)
          assert.isBelow(performance.now() - begun, NOTICE_MILLIS)
        })
      }),
    600_000
  )

  it.live(
    "prints once why it cannot start, and leaves nothing behind",
    () =>
      Effect.flatMap(prepared, (server) =>
        Effect.promise(async () => {
          const start = async (variables: Readonly<Record<string, string>>) => {
            const { child, ended, stderr, stdout } = run(["serve", "--runners", "2"], variables)
            const closed = new Promise((resolve) => child.once("close", resolve))
            const { code } = await ended
            await closed
            assert.strictEqual(code, 1, stderr())
            assert.match(stdout(), /^Starting Till \S+ …\n(?:(?:Preparing|Starting) .* …\n)*$/u)
            assert.isUndefined(server.postgresProcessId)
            return stderr()
          }
          const holder = createServer()
          await new Promise<void>((resolve) => holder.listen(server.port, "127.0.0.1", resolve))
          const inUse = `till: PORT: ${server.port} on 127.0.0.1 is in use by another process\n`
          assert.strictEqual(await start(server.variables), inUse)
          await new Promise((resolve) => holder.close(resolve))
          // The runners find this error.
          const database = { ...server.variables, DATABASE_URL: "postgres://till:secret@127.0.0.1:1/till" }
          assert.match(await start(database), /^till: DATABASE_URL: Postgres at 127\.0\.0\.1:1: .*ECONNREFUSED.*\n$/)
        })
      ),
    600_000
  )
})
