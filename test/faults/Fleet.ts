/**
 * Several runners of one service, as processes on one Postgres, for faults of the network between them. Each reaches
 * the database and every other runner through a proxy of its own, which may be cut; `TillFleet` has no such proxies.
 * Clients reach the runners through a balancer, which probes readiness, or send to one runner through all faults.
 */
import * as fs from "node:fs"
import * as Path from "node:path"
import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import { type Answer, HttpExchange, Lost, type RequestOptions } from "../support/HttpExchange.ts"
import { serverPort } from "../support/ServerPort.ts"
import { pause } from "../support/TillProcess.ts"
import type { Checkout } from "./Checkout.ts"
import { Service } from "./Service.ts"
import { TcpProxy } from "./TcpProxy.ts"

/** Interval and time limit of a balancer's probe. */
const LOOK_MILLIS = 300
const LOOK_MILLIS_MAX = 1000
/** Time limit of a client for its answer: more than a runner needs to refuse. */
const ANSWER_MILLIS_MAX = 15_000

export interface FleetOptions {
  readonly checkout: Checkout
  readonly folder: string
  /** The Postgres' port on this machine, and the database's address through another port. */
  readonly postgresPort: number
  readonly databaseUrl: (port: number) => string
}

/** Period of the monotonic clock in which a runner has a fault, in milliseconds. */
interface Trouble {
  readonly from: number
  to: number
}

export class Runner {
  readonly name: string
  readonly service: Service
  /** The proxy before Postgres. */
  readonly database: TcpProxy
  readonly listenerPort: number
  /** Proxies before the other runners, by their ports. */
  readonly ways = new Map<number, TcpProxy>()
  /** True if a balancer sends requests to the runner. */
  isReady = false
  readonly clockFile: string
  readonly #routes: string
  readonly #troubles: Array<Trouble> = []

  constructor(name: string, service: Service, database: TcpProxy, listenerPort: number, folder: string) {
    this.name = name
    this.service = service
    this.database = database
    this.listenerPort = listenerPort
    this.#routes = Path.join(folder, "routes")
    this.clockFile = Path.join(folder, "clock")
    write(this.clockFile, "0")
    this.writeRoutes()
  }

  writeRoutes(): void {
    write(this.#routes, JSON.stringify(Object.fromEntries([...this.ways].map(([port, way]) => [port, way.port]))))
  }

  /** Shifts the runner's wall clock by a number of milliseconds. */
  setClock(millis: number): void {
    write(this.clockFile, String(millis))
  }

  /** Begins a period in which requests to the runner may get no answer; `recovered` ends it. */
  troubled(): void {
    this.#troubles.push({ from: performance.now(), to: Infinity })
  }

  recovered(): void {
    const now = performance.now()
    for (const trouble of this.#troubles) trouble.to = Math.min(trouble.to, now)
  }

  wasTroubled(from: number, to: number): boolean {
    return this.#troubles.some((trouble) => trouble.from <= to && from <= trouble.to)
  }

  async look(): Promise<void> {
    const late = pause(LOOK_MILLIS_MAX).then(() => false)
    this.isReady = await Promise.race([this.service.isReady(), late])
  }

  async destroy(): Promise<void> {
    await this.service.destroy()
    this.database.close()
    for (const way of this.ways.values()) way.close()
  }
}

/** Replaces the file in one step, so that readers never see half of it. */
const write = (file: string, text: string): void => {
  fs.writeFileSync(`${file}.new`, text)
  fs.renameSync(`${file}.new`, file)
}

export class Fleet {
  readonly runners: Array<Runner> = []
  readonly #options: FleetOptions
  #made = 0
  #turn = 0
  #isOver = false
  readonly #looking: Promise<void>

  private constructor(options: FleetOptions) {
    this.#options = options
    this.#looking = this.#look()
  }

  /** Starts runners at the same time and waits until they are ready. */
  static async start(options: FleetOptions, count: number): Promise<Fleet> {
    fs.mkdirSync(options.folder, { recursive: true })
    fs.writeFileSync(Path.join(options.folder, "secret"), randomBytes(32).toString("hex"), { mode: 0o600 })
    const fleet = new Fleet(options)
    try {
      const runners: Array<Runner> = []
      for (let i = 0; i < count; i++) runners.push(await fleet.prepare())
      await Promise.all(runners.map((runner) => fleet.begin(runner)))
      return fleet
    } catch (error) {
      await fleet.close()
      throw error
    }
  }

  /** Adds a runner without starting it. */
  async prepare(): Promise<Runner> {
    const { checkout, databaseUrl, folder: parent, postgresPort } = this.#options
    const name = `runner-${++this.#made}`
    const folder = Path.join(parent, name)
    fs.mkdirSync(folder, { recursive: true })
    const database = await TcpProxy.start(postgresPort)
    const [port, listenerPort] = [await aFreePort(), await aFreePort()]
    const imports = ["ShiftedClock.ts", "Routes.ts"].map((module) => Path.join(import.meta.dirname, module))
    const variables = {
      TILL_RUNNER_PORT: String(listenerPort),
      TILL_SECRET_FILE: Path.join(parent, "secret"),
      // Answers must be the same from every runner.
      TILL_PUBLIC_URL: "http://till.test",
      // An installation with a public host other than this machine must allow local endpoints.
      TILL_WEBHOOK_TEST_HOSTS: "127.0.0.1",
      FAULTS_CLOCK: Path.join(folder, "clock"),
      FAULTS_ROUTES: Path.join(folder, "routes")
    }
    const options = { checkout, folder, databaseUrl: databaseUrl(database.port), variables, imports }
    const runner = new Runner(name, new Service(options, port), database, listenerPort, folder)
    for (const other of this.runners) {
      await connectTo(runner, other)
      await connectTo(other, runner)
    }
    this.runners.push(runner)
    return runner
  }

  /**
   * Starts a runner and waits until it is ready. Rejects after the fleet was closed, which would end no later process.
   */
  async begin(runner: Runner): Promise<void> {
    if (this.#isOver) throw new Error("this fleet was closed")
    await runner.service.start()
    runner.recovered()
    await runner.look()
  }

  /** Kills a runner without a graceful end. */
  async kill(runner: Runner): Promise<void> {
    runner.troubled()
    await runner.service.kill()
    runner.isReady = false
  }

  /** Ends a runner gracefully and waits for its end. */
  async leave(runner: Runner): Promise<void> {
    await runner.service.kill("SIGTERM")
    runner.isReady = false
  }

  async remove(runner: Runner): Promise<void> {
    this.runners.splice(this.runners.indexOf(runner), 1)
    await runner.destroy()
  }

  /** Cuts or restores all traffic between these runners and the others. */
  partition(runners: ReadonlyArray<Runner>, isCut: boolean): void {
    for (const one of this.runners) {
      for (const other of this.runners) {
        if (runners.includes(one) === runners.includes(other)) continue
        const way = one.ways.get(other.listenerPort)
        if (isCut) way?.stall()
        else way?.resume()
      }
    }
  }

  /** Ends all faults: all runners run and reach one another. */
  async heal(): Promise<void> {
    await Promise.all(
      this.runners.map(async (runner) => {
        runner.database.resume()
        for (const way of runner.ways.values()) way.resume()
        runner.setClock(0)
        runner.service.signal("SIGCONT")
        if (!runner.service.isRunning) await this.begin(runner)
        else await runner.look()
        runner.recovered()
      })
    )
  }

  /** Returns the runner for a balancer's next request: a ready one in turn, or any if none is ready. */
  next(): Runner {
    const ready = this.runners.filter(({ isReady }) => isReady)
    const among = ready.length > 0 ? ready : this.runners
    return among[this.#turn++ % among.length]!
  }

  /** Returns the log lines of the runners about a request, as far as they are kept. */
  wordsOn(requestId: string): string {
    const lines = this.runners.flatMap(({ name, service }) =>
      service.stderr.split("\n").flatMap((line) => (line.includes(requestId) ? [`${name} logged: ${line}`] : []))
    )
    return lines.length > 0 ? lines.join("; ") : "no runner has logged the reason"
  }

  async #look(): Promise<void> {
    while (!this.#isOver) {
      await Promise.all(this.runners.map((runner) => runner.look()))
      await pause(LOOK_MILLIS)
    }
  }

  async close(): Promise<void> {
    this.#isOver = true
    await this.#looking
    await Promise.all(this.runners.map((runner) => runner.destroy()))
  }
}

const aFreePort = (): Promise<number> => Effect.runPromise(serverPort)

const connectTo = async (from: Runner, to: Runner): Promise<void> => {
  from.ways.set(to.listenerPort, await TcpProxy.start(to.listenerPort))
  from.writeRoutes()
}

/** Reports an answer that a client must not get, or a missing one. */
export type Complaint = (text: string) => void

/**
 * The requests of one merchant's clients to the runners. It checks the answers against those that are allowed while
 * runners come and go, and measures the longest time without service for the merchant.
 */
export class Door {
  /** Answers with 503, and lost answers. */
  unavailable = 0
  lost = 0
  /** The first 503, and its request id. */
  firstUnavailable: { readonly told: string; readonly id: string } | undefined
  /** The longest time without a conclusive answer, in milliseconds. */
  longestGap = 0
  #servedAt: number | undefined
  readonly #exchanges = new Map<Runner, HttpExchange>()
  readonly #fleet: Fleet
  readonly #key: string
  readonly #complain: Complaint

  constructor(fleet: Fleet, key: string, complain: Complaint) {
    this.#fleet = fleet
    this.#key = key
    this.#complain = complain
  }

  /** Starts or stops the measurement of gaps. */
  watch(isWatched: boolean): void {
    if (!isWatched) this.#served()
    this.#servedAt = isWatched ? performance.now() : undefined
  }

  /** Sends a request to one runner, or to the balancer's choice. Rejects with `Lost`. */
  async request(runner: Runner | undefined, method: string, path: string, options?: RequestOptions): Promise<Answer> {
    const asked = runner ?? this.#fleet.next()
    const sentAt = performance.now()
    try {
      const answer = await within(ANSWER_MILLIS_MAX, this.#exchangeWith(asked).request(method, path, options))
      this.#judge(asked, `${method} ${path}`, answer)
      return answer
    } catch (error) {
      if (error instanceof Lost) this.#judgeLoss(asked, `${method} ${path}`, sentAt, error)
      throw error
    }
  }

  #exchangeWith(runner: Runner): HttpExchange {
    let exchange = this.#exchanges.get(runner)
    if (exchange === undefined) {
      exchange = new HttpExchange(runner.service.port, this.#key)
      this.#exchanges.set(runner, exchange)
    }
    return exchange
  }

  #judge({ name }: Runner, request: string, { headers, status, text }: Answer): void {
    const told = `${request} at ${name} is answered ${status} ${text.slice(0, 300)}`
    if (status === 503) {
      this.unavailable++
      this.firstUnavailable ??= { told, id: String(headers["x-request-id"]) }
      if (headers["retry-after"] === undefined) this.#complain(`${told}, without Retry-After`)
    } else if (status >= 500 || status === 429 || status === 421 || status === 401) this.#complain(told)
    else this.#served()
  }

  #judgeLoss(runner: Runner, request: string, sentAt: number, { message }: Lost): void {
    this.lost++
    const now = performance.now()
    if (runner.wasTroubled(sentAt, now)) return
    const waited = `${((now - sentAt) / 1000).toFixed(1)} s`
    this.#complain(`${request} at ${runner.name}, which had no fault, got no answer in ${waited}: ${message}`)
  }

  #served(): void {
    if (this.#servedAt === undefined) return
    const now = performance.now()
    this.longestGap = Math.max(this.longestGap, now - this.#servedAt)
    this.#servedAt = now
  }

  close(): void {
    for (const exchange of this.#exchanges.values()) exchange.close()
  }
}

const within = async (millis: number, answer: Promise<Answer>): Promise<Answer> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Lost(new Error("it was waited for in vain"))), millis)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}
