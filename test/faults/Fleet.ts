/**
 * Several runners of one service, as processes on one Postgres. Each has its own way to the database and to every other
 * runner, which may be cut. Clients come to them through a balancer, which looks every now and then who is ready, or go
 * to one of them whatever becomes of it.
 */
import * as fs from "node:fs"
import * as Path from "node:path"
import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import type { Answer, RequestOptions } from "../support/HttpExchange.ts"
import { HttpExchange, Lost } from "../support/HttpExchange.ts"
import { serverPort } from "../support/ServerPort.ts"
import { pause } from "../support/TillProcess.ts"
import type { Checkout } from "./Checkout.ts"
import { Service } from "./Service.ts"
import { TcpProxy } from "./TcpProxy.ts"

/** A balancer asks this often, and waits so long for the answer. */
const LOOK_MILLIS = 300
const LOOK_MILLIS_MAX = 1000
/** A client waits so long for its answer. It is more than a runner may take to say that it has none. */
const ANSWER_MILLIS_MAX = 15_000

export interface FleetOptions {
  readonly checkout: Checkout
  readonly folder: string
  /** Port of the Postgres on this machine, and the database's address through another port. */
  readonly postgresPort: number
  readonly databaseUrl: (port: number) => string
}

/** A stretch of the monotonic clock in which something is done to a runner, in milliseconds. */
interface Trouble {
  readonly from: number
  to: number
}

export class Runner {
  readonly name: string
  readonly service: Service
  /** Its way to Postgres. */
  readonly database: TcpProxy
  readonly listenerPort: number
  /** Its ways to the others, by their ports. */
  readonly ways = new Map<number, TcpProxy>()
  /** A balancer sends it requests. */
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

  /** Its wall clock is off by so many milliseconds. */
  setClock(millis: number): void {
    write(this.clockFile, String(millis))
  }

  /** From now on whoever has a request there may get no answer; ends with `recovered`. */
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

/** At once: a reader must not find half of it. */
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

  /** So many that are ready; all start at once. */
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

  /** A runner more, which is not started yet. */
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
      // Answers must be the same whoever gives them.
      TILL_PUBLIC_URL: "http://till.test",
      // Whoever names another host than this one has to allow its own endpoints.
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

  /** Starts a runner and waits until it is ready. Rejects if the fleet was closed: nobody would end it any more. */
  async begin(runner: Runner): Promise<void> {
    if (this.#isOver) throw new Error("this fleet was closed")
    await runner.service.start()
    runner.recovered()
    await runner.look()
  }

  /** Kills a runner, as nothing else would end it. */
  async kill(runner: Runner): Promise<void> {
    runner.troubled()
    await runner.service.kill()
    runner.isReady = false
  }

  /** Asks a runner to go, and waits until it is gone. */
  async leave(runner: Runner): Promise<void> {
    await runner.service.kill("SIGTERM")
    runner.isReady = false
  }

  async remove(runner: Runner): Promise<void> {
    this.runners.splice(this.runners.indexOf(runner), 1)
    await runner.destroy()
  }

  /** Cuts, or opens again, what goes from these runners to the others and back. */
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

  /** Everything is as it was at the start: all run, and reach one another. */
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

  /** The runner to which a balancer sends the next request. It has to send it somewhere. */
  next(): Runner {
    const ready = this.runners.filter(({ isReady }) => isReady)
    const among = ready.length > 0 ? ready : this.runners
    return among[this.#turn++ % among.length]!
  }

  /** What the runners have logged of a request, as far as they still know. */
  wordsOn(requestId: string): string {
    const lines = this.runners.flatMap(({ name, service }) =>
      service.stderr.split("\n").flatMap((line) => (line.includes(requestId) ? [`${name} said: ${line}`] : []))
    )
    return lines.length > 0 ? lines.join("; ") : "no runner has said why"
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

/** An answer that a client must not see, or none where one had to come. */
export type Complaint = (text: string) => void

/**
 * The way of one merchant's clients to the runners: what they are told there is held against what may be said while
 * runners come and go, and the longest time in which nobody served the merchant is kept.
 */
export class Door {
  /** Answers 503, and those that never came. */
  unavailable = 0
  lost = 0
  /** The first 503, and the id of its request. */
  firstUnavailable: { readonly told: string; readonly id: string } | undefined
  /** The longest time without an answer that says something, in milliseconds. */
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

  /** Clients ask from now on, or have ceased to. */
  watch(isWatched: boolean): void {
    if (!isWatched) this.#served()
    this.#servedAt = isWatched ? performance.now() : undefined
  }

  /** Sends a request to one runner, or to whom the balancer chooses. Rejects with `Lost`. */
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
    this.#complain(`${request} at ${runner.name}, which nobody has touched, got no answer in ${waited}: ${message}`)
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
