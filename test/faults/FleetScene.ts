/** Merchants with their clients and judges on a fleet of runners, for the rounds of one fault. */
import { mkdirSync } from "node:fs"
import * as Path from "node:path"
import { Random } from "../support/SeededRandom.ts"
import { Findings } from "./Finding.ts"
import { Door, type Fleet, type Runner } from "./Fleet.ts"
import * as History from "./History.ts"
import { Judge } from "./Judge.ts"
import { Receiver } from "./Receiver.ts"
import { findingLines } from "./Report.ts"
import { type Context, perform, type Row } from "./Scene.ts"
import { Traffic } from "./Traffic.ts"

/** Their accounts nearly always lie in different partitions. */
const MERCHANTS = 3
/** Clients per merchant that use the balancer; where a fault needs it, one more client uses each runner. */
const BALANCED = 2
const THINK_MILLIS_MAX = 150
/** Longest time without service that an account may have, in milliseconds. */
const GAP_MILLIS_MAX = 10_000

export interface FleetSceneOptions {
  readonly fault: string
  /** The fault ends and cuts nothing, so every request has an answer and no webhook is repeated. */
  readonly isGentle?: boolean
  /** Requests of each merchant before the fault and after the recovery. */
  readonly work?: readonly [number, number]
  readonly remark?: string
}

/** A merchant with its clients, its webhook endpoint and its judge. */
interface Shop {
  readonly name: string
  readonly door: Door
  readonly traffic: Traffic
  readonly receiver: Receiver
  readonly judge: Judge
}

export class FleetScene {
  readonly fleet: Fleet
  readonly random: Random
  readonly recoveries: Array<number> = []
  rounds = 0
  readonly #context: Context
  readonly #options: FleetSceneOptions
  readonly #findings: Findings
  readonly #shops: ReadonlyArray<Shop>

  private constructor(
    context: Context,
    options: FleetSceneOptions,
    fleet: Fleet,
    findings: Findings,
    shops: ReadonlyArray<Shop>
  ) {
    this.fleet = fleet
    this.random = new Random(context.seed)
    this.#context = context
    this.#options = options
    this.#findings = findings
    this.#shops = shops
  }

  static async make(context: Context, options: FleetSceneOptions, fleet: Fleet): Promise<FleetScene> {
    await fleet.heal()
    const findings = new Findings()
    const making = Array.from({ length: MERCHANTS }, (_, i) =>
      makeShop(options, fleet, findings, `${nameOf(options)}-${i + 1}`, context.seed + i)
    )
    return new FleetScene(context, options, fleet, findings, await Promise.all(making))
  }

  /**
   * Runs one round: the clients work, the fault acts, the clients continue, and the judges check when the clients rest.
   * The fault calls `began` when the time to each merchant's next acknowledged write starts, and may await that write.
   */
  async round(fault: (began: () => void, recovered: () => Promise<void>) => Promise<void>): Promise<void> {
    const [before, after] = this.#options.work ?? [30, 20]
    this.rounds++
    for (const { door, traffic } of this.#shops) {
      door.watch(true)
      traffic.start()
    }
    await this.#each(({ traffic }) => traffic.work(this.random.integer(before / 3, before)))
    let since = performance.now()
    let recovering: Promise<void> | undefined
    const began = () => {
      since = performance.now()
      recovering = this.#recovery(since)
    }
    await fault(began, async () => recovering)
    await recovering
    await this.fleet.heal()
    await this.#each(({ traffic }) => traffic.work(after))
    for (const { door } of this.#shops) door.watch(false)
    await this.#each(({ traffic }) => traffic.stop())
    await this.#each(({ traffic }) => traffic.settle(this.#context.patience * 1000))
    await this.#each(({ judge }) => judge.checkRound())
  }

  /** Reads each merchant's newest objects from this runner at once. */
  lookAt(runner: Runner): Promise<void> {
    return this.#each(({ door, traffic }) =>
      traffic.lookAtShared({ request: (...request) => door.request(runner, ...request) })
    )
  }

  /** Adds a finding about a forbidden event. */
  find(text: string): void {
    this.#findings.add("wrong", text, `round ${this.rounds}: ${text}`)
  }

  async #recovery(since: number): Promise<void> {
    const limit = this.#context.patience
    const times = await Promise.all(this.#shops.map(({ traffic }) => traffic.acknowledgedAfter(since, limit * 1000)))
    if (times.includes(undefined)) {
      const subject = `round ${this.rounds}`
      this.#findings.add("wrong", subject, `${subject}: a merchant had no write acknowledged within ${limit} s`)
    } else this.recoveries.push((Math.max(...times.map(Number)) - since) / 1000)
  }

  async #each(use: (shop: Shop) => Promise<void>): Promise<void> {
    await Promise.all(this.#shops.map(use))
  }

  /** Runs the last check of everything. */
  async end(): Promise<void> {
    await this.#each(({ judge }) => judge.checkAll())
    const unavailable = sum(this.#shops.map(({ door }) => door.unavailable))
    for (const { door, name } of this.#shops) {
      if (door.longestGap <= GAP_MILLIS_MAX) continue
      const text = `${name} was without service for ${(door.longestGap / 1000).toFixed(1)} s`
      this.#findings.add("wrong", `gap ${name}`, text)
    }
    if (this.#options.isGentle === true && unavailable > 0) {
      const first = this.#shops.map(({ door }) => door.firstUnavailable).find((answer) => answer !== undefined)!
      const why = `${first.told}; ${this.fleet.wordsOn(first.id)}`
      this.#findings.add("wrong", "503", `${unavailable} answers 503 although nothing had failed; ${why}`)
    }
    await this.#verify()
  }

  async #verify(): Promise<void> {
    try {
      await this.fleet.runners[0]!.service.command("verify")
    } catch (error) {
      const said = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : String(error)
      this.#findings.add("wrong", "verify", `till verify: ${said}`)
    }
  }

  async breaks(error: unknown): Promise<void> {
    const text = error instanceof Error ? error.message : String(error)
    const words = this.fleet.runners.map(({ name, service }) => `${name} logged: ${service.lastLines}`).join("; ")
    this.#findings.add("wrong", "broke off", `broke off in round ${this.rounds}: ${text}. ${words}`)
    await this.#verify()
  }

  get #told(): string {
    const gap = Math.max(...this.#shops.map(({ door }) => door.longestGap))
    const of = (count: (shop: Shop) => number) => sum(this.#shops.map(count))
    return (
      `${of(({ door }) => door.unavailable)} answers 503, ${of(({ door }) => door.lost)} connections lost, ` +
      `${of(({ judge }) => judge.eventCount)} events, ${of(({ receiver }) => receiver.repeated.length)} webhooks ` +
      `repeated, no merchant unserved for longer than ${(gap / 1000).toFixed(1)} s`
    )
  }

  get row(): Row {
    const { fault, remark } = this.#options
    const findings = new Findings()
    for (const { kind, text } of this.#findings.all) findings.add(kind, text, text)
    for (const { judge, name } of this.#shops) {
      for (const { kind, text } of judge.findings.all) findings.add(kind, `${name} ${text}`, `${name}: ${text}`)
    }
    const acknowledged = sum(this.#shops.map(({ traffic }) => traffic.answered))
    const told = `${this.#told}.`
    return {
      fault,
      rounds: this.rounds,
      acknowledged,
      findings,
      recoveries: this.recoveries,
      remark: remark === undefined ? told : `${remark} ${told}`
    }
  }

  async close(): Promise<void> {
    const { histories } = this.#context
    await this.#each(async ({ door, name, receiver, traffic }) => {
      await traffic.stop()
      receiver.close()
      door.close()
      if (histories === undefined) return
      mkdirSync(histories, { recursive: true })
      History.write(Path.join(histories, `${name}.jsonl`), traffic)
    })
  }
}

const nameOf = ({ fault }: FleetSceneOptions): string => fault.replaceAll(/\W+/g, "-").toLowerCase()

const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((sum, number) => sum + number, 0)

/** Creates a merchant by a command of the next runner. */
const makeShop = async (
  { isGentle = false }: FleetSceneOptions,
  fleet: Fleet,
  findings: Findings,
  name: string,
  seed: number
): Promise<Shop> => {
  const printed = await fleet.next().service.command("merchants", "create", name)
  const key = /sk_test_\w{32}/.exec(printed)?.[0]
  if (key === undefined) throw new Error(`till merchants create prints no key: ${printed}`)
  const door = new Door(fleet, key, (text) => findings.add("wrong", text, `${name}: ${text}`))
  const balanced = { request: door.request.bind(door, undefined) }
  // Each runner has clients that stay with it through its faults.
  const pinned = isGentle ? [] : fleet.runners.map((runner) => ({ request: door.request.bind(door, runner) }))
  const exchanges = [...Array.from({ length: BALANCED }, () => balanced), ...pinned]
  const clients = exchanges.length
  const traffic = new Traffic({ seed, name: `-${name}`, exchanges, clients, thinkMillisMax: THINK_MILLIS_MAX })
  const receiver = await Receiver.start()
  await receiver.subscribe(balanced)
  const judge = new Judge({ traffic, exchange: balanced, receiver, nothingCrashes: isGentle })
  return { name, door, traffic, receiver, judge }
}

/** Runs rounds of one fault on a fleet. */
export const fleetScene = async (
  context: Context,
  options: FleetSceneOptions,
  fleet: Fleet,
  use: (scene: FleetScene) => Promise<void>
): Promise<Row> => {
  const row = await perform(
    context,
    options.fault,
    () => FleetScene.make(context, options, fleet),
    async (made) => {
      await use(made)
      await made.end()
    }
  )
  context.log([`${options.fault}: ${row.rounds} rounds. ${row.remark ?? row.skipped}`, ...findingLines(row)].join("\n"))
  return row
}
