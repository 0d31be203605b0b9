/**
 * Three runners on one database are restarted one after the other under load, and no request fails (semantics
 * operation.stop).
 *
 * The clients use the runners as a balancer does: they probe readiness four times a second, send to ready runners, and
 * repeat a request only if the runner refused the connection. An answer of one runner is read from another one at once.
 * `TILL_RESTARTS` is the number of restarts.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { socketsOf } from "../../src/control/ControlSocket.ts"
import { Lost } from "../support/HttpExchange.ts"
import { isStarved } from "../support/Starvation.ts"
import { startFleet } from "../support/TillFleet.ts"
import { KEYS, pause, till, until, type TillProcess } from "../support/TillProcess.ts"

const RUNNERS = 3
const RESTARTS = Number(process.env["TILL_RESTARTS"] ?? 1)
const CLIENTS = 8
/** Pause between two requests of a client: the test does not measure the machine's throughput. */
const THINK_MILLIS = 20
const PROBE_MILLIS = 250
const TEST_MILLIS_MAX = 600_000 + RESTARTS * 60_000

/** Sends to ready runners and records the failures. */
class Balancer {
  readonly #runners: ReadonlyArray<TillProcess>
  readonly #ready = new Set<TillProcess>()
  readonly failures: Array<string> = []
  readonly created = new Map<string, string>()
  requests = 0
  excused = 0
  #isOver = false
  #turn = 0

  constructor(runners: ReadonlyArray<TillProcess>) {
    this.#runners = runners
  }

  async run(): Promise<void> {
    const probes = this.#runners.map((runner) => this.#probe(runner))
    await until("a runner is ready", () => this.#ready.size > 0)
    const clients = Array.from({ length: CLIENTS }, (_, i) => this.#client(i))
    await Promise.all([...probes, ...clients])
  }

  end(): void {
    this.#isOver = true
  }

  async #probe(runner: TillProcess): Promise<void> {
    while (!this.#isOver) {
      if (await runner.isReady()) this.#ready.add(runner)
      else this.#ready.delete(runner)
      await pause(PROBE_MILLIS)
    }
  }

  /** Sends to the next runner, with a key of test or live mode: two accounts, which may have two owners. */
  async #client(number: number): Promise<void> {
    const key = number % 2 === 0 ? KEYS.secretTest : KEYS.secretLive
    for (let i = 0; !this.#isOver; i++) {
      const name = `${number}/${i}`
      const made = await this.#send("POST", "/v1/customers", { key, idempotencyKey: name, body: { name } })
      if (made === undefined) continue
      this.created.set(made.id, key)
      const read = await this.#send("GET", `/v1/customers/${made.id}`, { key })
      if (read !== undefined && read.name !== name) this.failures.push(`${made.id} is ${read.name}, not ${name}`)
      await pause(THINK_MILLIS)
    }
  }

  async #send(method: string, path: string, options: Parameters<TillProcess["request"]>[2]) {
    for (;;) {
      const runners = [...this.#ready]
      const runner = runners[this.#turn++ % runners.length]
      if (runner === undefined) {
        this.failures.push("no runner is ready")
        await pause(PROBE_MILLIS)
        continue
      }
      this.requests++
      try {
        const { body, status, text } = await runner.request(method, path, options)
        if (status === 200) return body
        if (status === 503 && isStarved()) this.excused++
        else this.failures.push(`${method} ${path}: ${status} ${text}`)
        return undefined
      } catch (error) {
        if (!(error instanceof Lost)) throw error
        if (error.code !== "ECONNREFUSED") {
          this.failures.push(`${method} ${path}: ${error.code}`)
          return undefined
        }
        this.#ready.delete(runner)
      }
    }
  }
}

describe("three runners", () => {
  it.live(
    "start at once on an empty database, and are restarted one after the other without a failed request",
    () =>
      Effect.flatMap(startFleet(RUNNERS), (runners) =>
        Effect.promise(async () => {
          const balancer = new Balancer(runners)
          const running = balancer.run()
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
          assert.isAbove(balancer.created.size, 10 * CLIENTS)
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
