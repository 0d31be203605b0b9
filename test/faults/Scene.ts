/** A Till with its clients, a webhook endpoint and the judge, for the rounds of one fault. */
import { mkdirSync } from "node:fs"
import * as Path from "node:path"
import { Random } from "../support/SeededRandom.ts"
import type { Checkout } from "./Checkout.ts"
import { Findings } from "./Finding.ts"
import * as History from "./History.ts"
import { Judge } from "./Judge.ts"
import { Receiver } from "./Receiver.ts"
import { Service, type ServiceOptions } from "./Service.ts"
import { Traffic } from "./Traffic.ts"

export interface Context {
  readonly checkout: Checkout
  /** Folder of this part. */
  readonly folder: string
  readonly seed: number
  /** Seconds that a service may take until it acknowledges again. */
  readonly patience: number
  /** Multiplies the default number of rounds. */
  readonly times: number
  /** Part of a fault's name: other faults of runners and of a processor are skipped; all run unless given. */
  readonly fault: string | undefined
  /** Aborted at the end of the part's time: the part ends, and its findings so far count. */
  readonly time: AbortSignal
  /** Folder for histories, if they are written. */
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
  /** The reason why nothing was done. */
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
  /** Skips the last check, for a service that is not needed any longer. */
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
   * Runs one round: the clients work, the fault acts, the clients continue, and the judge checks when they rest. The
   * fault calls `began` when the time to the next acknowledged write starts.
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
    const text = `broke off in round ${this.rounds}: ${messageOf(error)}. Till logged: ${this.service.lastLines}`
    this.judge.findings.add("wrong", "broke off", text)
  }

  /** Runs the last check of everything. */
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

/** The place of one fault's rounds. */
export interface Stage {
  readonly row: Row
  /** Adds a finding about an error that ended the rounds. */
  breaks(error: unknown): Promise<void>
  close(): Promise<void>
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Resolves with the work, or rejects at the end of the part's time. The work then finds its resources closed. */
const inTime = <A>({ time }: Context, work: Promise<A>): Promise<A> =>
  new Promise((resolve, reject) => {
    const over = () => reject(new Error("the time of this part was over"))
    time.addEventListener("abort", over)
    work.then(resolve, reject).finally(() => time.removeEventListener("abort", over))
  })

/** Returns a row for a fault that could not start or did not end. */
export const broken = (fault: string, error: unknown): Row => {
  const findings = new Findings()
  findings.add("wrong", fault, `it broke off: ${messageOf(error)}`)
  return { fault, rounds: 0, acknowledged: 0, findings, recoveries: [] }
}

/** Runs the rounds of one fault. An error is a finding, too, and earlier findings count. */
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

/** Runs the rounds of one fault on a Till of its own. */
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
