/** A Till, the clients that work on it, an endpoint for its webhooks and the judge, for the rounds of one fault. */
import { mkdirSync } from "node:fs"
import * as Path from "node:path"
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
  /** Aborted when the time of the part is over: then what it does is ended, and what it has found so far counts. */
  readonly time: AbortSignal
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
  readonly clients?: number
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
    const { clients } = options
    this.#context = context
    this.#options = options
    this.service = service
    this.receiver = receiver
    this.random = new Random(context.seed)
    this.traffic = new Traffic({
      seed: context.seed,
      exchanges: [service.http],
      ...(clients !== undefined && { clients })
    })
    this.judge = new Judge({ traffic: this.traffic, exchange: service.http, receiver })
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
    await judge.checkRound()
  }

  get row(): Row {
    const { judge, recoveries, rounds, traffic } = this
    const { fault, remark } = this.#options
    const acknowledged = traffic.answered
    const row = { fault, rounds, acknowledged, findings: judge.findings, recoveries }
    return remark === undefined ? row : { ...row, remark }
  }

  async breaks(error: unknown): Promise<void> {
    const text = `broke off in round ${this.rounds}: ${messageOf(error)}. Till said: ${this.service.lastLines}`
    this.judge.findings.add("wrong", "broke off", text)
  }

  /** The last look at everything. */
  async end(): Promise<void> {
    await this.judge.checkAll()
    const { failed, lost, unavailable } = this.traffic
    this.#context.log(
      `${this.#options.fault}: ${this.rounds} rounds, ${this.traffic.answered} acknowledged, ${lost} answers lost, ` +
        `${unavailable} times 503 or 429, ${failed} times another 5xx, ${this.judge.eventCount} events, ` +
        `${this.receiver.repeated.length} webhooks repeated`
    )
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

/** Where the rounds of one fault take place. */
export interface Stage {
  readonly row: Row
  /** Makes a finding of what broke the rounds off, and of what there is to say beyond that. */
  breaks(error: unknown): Promise<void>
  close(): Promise<void>
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Ends with the work, or rejects when the time of the part is over. The work then finds what it needs closed. */
const inTime = <A>({ time }: Context, work: Promise<A>): Promise<A> =>
  new Promise((resolve, reject) => {
    const over = () => reject(new Error("the time of this part was over"))
    time.addEventListener("abort", over)
    work.then(resolve, reject).finally(() => time.removeEventListener("abort", over))
  })

/** A line for what could not even begin, or has no end. */
export const broken = (fault: string, error: unknown): Row => {
  const findings = new Findings()
  findings.add("wrong", fault, `it broke off: ${messageOf(error)}`)
  return { fault, rounds: 0, acknowledged: 0, findings, recoveries: [] }
}

/** Rounds of one fault. What breaks off is a finding too, and what was found before it counts. */
export const perform = async <S extends Stage>(
  context: Context,
  fault: string,
  make: () => Promise<S>,
  use: (stage: S) => Promise<void>
): Promise<Row> => {
  if (context.time.aborted) return skipped(fault, "the time of its part was over")
  const making = make()
  let stage: S
  try {
    stage = await inTime(context, making)
  } catch (error) {
    making.then((late) => late.close()).catch(() => {})
    return broken(fault, error)
  }
  try {
    await inTime(context, use(stage))
  } catch (error) {
    await stage.breaks(error)
  } finally {
    await stage.close()
  }
  return stage.row
}

/** Rounds of one fault on a Till of its own. */
export const scene = (context: Context, options: SceneOptions, use: (scene: Scene) => Promise<void>): Promise<Row> =>
  perform(
    context,
    options.fault,
    () => Scene.make(context, options),
    async (made) => {
      await use(made)
      if (options.judgedBefore !== true) await made.end()
    }
  )
