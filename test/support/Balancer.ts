/**
 * A load balancer in front of runners, and clients behind it, which run a shop without a pause.
 *
 * It probes readiness four times a second, sends to ready runners in turn, and sends a request again only if the runner
 * refused the connection: nothing of the request was sent then. Every other outcome than a 200 is a failure.
 */
import { Lost } from "./HttpExchange.ts"
import { isStarved } from "./Starvation.ts"
import { KEYS, pause, type TillProcess, until } from "./TillProcess.ts"

/** Pause between two tasks of a client: tests with a balancer do not measure the machine's throughput. */
const THINK_MILLIS = 20
const PROBE_MILLIS = 250

type Body = Awaited<ReturnType<TillProcess["request"]>>["body"]
type Options = Parameters<TillProcess["request"]>[2]

/** Sends a request to a ready runner; undefined if it failed, which the balancer records. */
export type Send = (method: string, path: string, options?: Options) => Promise<Body | undefined>

export interface Task {
  readonly send: Send
  /** An API key of test mode or of live mode: two accounts, which may have two owners. */
  readonly key: string
  /** A name that no other task has. */
  readonly name: string
  readonly fail: (text: string) => void
}

/** Sends to ready runners and records the failures. */
export class Balancer {
  readonly #runners: ReadonlyArray<TillProcess>
  readonly #ready = new Set<TillProcess>()
  readonly failures: Array<string> = []
  requests = 0
  excused = 0
  #isOver = false
  #turn = 0

  /** Each runner stands for its address, at which processes may replace one another. */
  constructor(runners: ReadonlyArray<TillProcess>) {
    this.#runners = runners
  }

  /** Runs clients, each with one task after the other, until `end`. */
  async run(clients: number, task: (task: Task) => Promise<void>): Promise<void> {
    const probes = this.#runners.map((runner) => this.#probe(runner))
    await until("a runner is ready", () => this.#ready.size > 0)
    const running = Array.from({ length: clients }, (_, i) => this.#client(i, task))
    await Promise.all([...probes, ...running])
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

  async #client(number: number, task: (task: Task) => Promise<void>): Promise<void> {
    const key = number % 2 === 0 ? KEYS.secretTest : KEYS.secretLive
    const fail = (text: string) => void this.failures.push(text)
    for (let i = 0; !this.#isOver; i++) {
      await task({ key, name: `${number}/${i}`, send: this.#send, fail })
      await pause(THINK_MILLIS)
    }
  }

  readonly #send: Send = async (method, path, options) => {
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
