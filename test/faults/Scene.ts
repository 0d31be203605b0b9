/** A Till, the clients that work on it, an endpoint for its webhooks and the judge, for the rounds of one fault. */
import { mkdirSync } from "node:fs"
import * as Path from "node:path"
import type { HttpExchange } from "../support/HttpExchange.ts"
import { Random } from "../support/SeededRandom.ts"
import type { Checkout } from "./Checkout.ts"
import { Findings } from "./Finding.ts"
import * as History from "./History.ts"
import { Judge } from "./Judge.ts"
import { Receiver } from "./Receiver.ts"
import type { ServiceOptions } from "./Service.ts"
import { Service } from "./Service.ts"
import { Traffic } from "./Traffic.ts"

export interface Context {
  readonly checkout: Checkout
  /** For this part alone. */
  readonly folder: string
  readonly seed: number
  /** How long a service may take until it acknowledges again, in seconds. */
  readonly patience: number
  /** How often what is done once by default is done. */
  readonly times: number
  /** Of several runners only faults whose names have this in them; all unless given. */
  readonly fault: string | undefined
  /** Histories are written there, if anywhere. */
  readonly histories: string | undefined
  readonly log: (text: string) => void
}

/** A line of the report. */
export interface Row {
  readonly fault: string
  readonly rounds: number
  readonly acknowledged: number
  readonly findings: Findings
  /** Seconds until the first acknowledged write after the fault. */
  readonly recoveries: ReadonlyArray<number>
  readonly remark?: string
  /** Why nothing was done. */
  readonly skipped?: string
}

export const skipped = (fault: string, reason: string): Row => ({
  fault,
  rounds: 0,
  acknowledged: 0,
  findings: new Findings(),
  recoveries: [],
  skipped: reason
})

export interface SceneOptions {
  readonly fault: string
  readonly service?: Partial<ServiceOptions>
  /** Clients work on these as well, and the judge asks the first. */
  readonly exchanges?: (service: Service) => ReadonlyArray<HttpExchange>
  readonly clients?: number
  readonly withoutReads?: boolean
  /** The judge looks once, when all rounds are over. */
  readonly judgedAtEnd?: boolean
  /** There is no last look at everything: the service is needed no more. */
  readonly judgedBefore?: boolean
  /** Requests before the fault and after the recovery. */
  readonly work?: readonly [number, number]
  readonly remark?: string
}

export class Scene {
  readonly service: Service
  readonly traffic: Traffic
  readonly judge: Judge
  readonly receiver: Receiver
  readonly random: Random
  readonly recoveries: Array<number> = []
  rounds = 0
  readonly #context: Context
  readonly #options: SceneOptions

  private constructor(context: Context, options: SceneOptions, service: Service, receiver: Receiver) {
    const { clients, exchanges = () => [service.http], withoutReads } = options
    this.#context = context
    this.#options = options
    this.service = service
    this.receiver = receiver
    this.random = new Random(context.seed)
    this.traffic = new Traffic({
      seed: context.seed,
      exchanges: exchanges(service),
      ...(clients !== undefined && { clients })
    })
    const reads = withoutReads === undefined ? {} : { withoutReads }
    this.judge = new Judge({ traffic: this.traffic, exchange: service.http, receiver, ...reads })
  }

  static async make(context: Context, options: SceneOptions): Promise<Scene> {
    const name = options.fault.replaceAll(/\W+/g, "-").toLowerCase()
    const folder = Path.join(context.folder, name)
    const service = await Service.start({ checkout: context.checkout, folder, ...options.service })
    const receiver = await Receiver.start()
    await receiver.subscribe(service.http)
    return new Scene(context, options, service, receiver)
  }

  /**
   * One round: the clients work, the fault comes, they go on, and when they rest the judge looks. The fault calls
   * `began` at the moment from which the time to the next acknowledged write counts.
   */
  async round(fault: (began: () => void) => Promise<void>): Promise<void> {
    const [before, after] = this.#options.work ?? [250, 80]
    const { judge, random, traffic } = this
    this.rounds++
    traffic.start()
    await traffic.work(random.integer(before / 5, before))
    let since = 0
    let recovered: Promise<number | undefined> = Promise.resolve(undefined)
    await fault(() => {
      since = performance.now()
      recovered = traffic.acknowledgedAfter(since, this.#context.patience * 1000)
    })
    const at = await recovered
    if (at === undefined) {
      const limit = this.#context.patience
      judge.findings.add(
        "wrong",
        `round ${this.rounds}`,
        `round ${this.rounds}: no write acknowledged within ${limit} s`
      )
    } else this.recoveries.push((at - since) / 1000)
    await traffic.work(after)
    await traffic.stop()
    await traffic.settle(this.#context.patience * 1000)
    if (this.#options.judgedAtEnd !== true) await judge.checkRound()
  }

  get row(): Row {
    const { judge, recoveries, rounds, traffic } = this
    const { fault, remark } = this.#options
    const acknowledged = traffic.answered
    const row = { fault, rounds, acknowledged, findings: judge.findings, recoveries }
    return remark === undefined ? row : { ...row, remark }
  }

  /** The last look at everything, and the line of the report. */
  async end(): Promise<Row> {
    await this.judge.checkAll()
    const { failed, lost, unavailable } = this.traffic
    this.#context.log(
      `${this.#options.fault}: ${this.rounds} rounds, ${this.traffic.answered} acknowledged, ${lost} answers lost, ` +
        `${unavailable} times 503 or 429, ${failed} times another 5xx, ${this.judge.eventCount} events, ` +
        `${this.receiver.repeated.length} webhooks repeated`
    )
    return this.row
  }

  async close(): Promise<void> {
    await this.traffic.stop()
    this.receiver.close()
    const { histories } = this.#context
    if (histories !== undefined) {
      mkdirSync(histories, { recursive: true })
      const name = this.#options.fault.replaceAll(/\W+/g, "-").toLowerCase()
      History.write(Path.join(histories, `${name}.jsonl`), this.traffic)
    }
    await this.service.destroy()
  }
}

/** Rounds of one fault on a Till of its own. What breaks off is a finding too, and what was found before it counts. */
export const scene = async (
  context: Context,
  options: SceneOptions,
  use: (scene: Scene) => Promise<void>
): Promise<Row> => {
  const made = await Scene.make(context, options)
  try {
    await use(made)
    return options.judgedBefore === true ? made.row : await made.end()
  } catch (error) {
    const text = `broke off in round ${made.rounds}: ${error instanceof Error ? error.message : String(error)}`
    made.judge.findings.add("wrong", "broke off", `${text}. Till said: ${made.service.lastWords}`)
    return made.row
  } finally {
    await made.close()
  }
}
