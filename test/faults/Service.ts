/**
 * A Till of a checkout, as a process of its own that can be killed and started again on the same data and port.
 * Loopback only; it works in the run's folder, where the guardian finds it.
 */
import type { ChildProcess } from "node:child_process"
import { execFile, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import { findServer } from "../../src/postgres/embedded/Postmaster.ts"
import { HttpExchange } from "../support/HttpExchange.ts"
import { serverPort } from "../support/ServerPort.ts"
import { family, KEYS, pause, signalIfThere } from "../support/TillProcess.ts"
import type { Checkout } from "./Checkout.ts"

export interface ServiceOptions {
  readonly checkout: Checkout
  /** Absolute path. The process works there, and keeps its data there. */
  readonly folder: string
  /** The embedded Postgres unless given. */
  readonly databaseUrl?: string
  readonly variables?: Readonly<Record<string, string>>
  /** Modules that Node loads first. */
  readonly imports?: ReadonlyArray<string>
  /** Arguments of `till serve`. */
  readonly args?: ReadonlyArray<string>
}

/** A start after a crash may have much to replay. */
const READY_MILLIS_MAX = 60_000
const STOP_MILLIS_MAX = 30_000
const LOG_LENGTH_MAX = 20_000
const OUTPUT_MAX = 16 * 1024 * 1024

const execute = promisify(execFile)

export class Service {
  readonly port: number
  readonly http: HttpExchange
  /** The newest of what it has written to standard error. */
  log = ""
  readonly #options: ServiceOptions
  #child: ChildProcess | undefined
  #ended: Promise<void> = Promise.resolve()
  #isDestroyed = false

  constructor(options: ServiceOptions, port: number) {
    this.#options = options
    this.port = port
    this.http = new HttpExchange(port, KEYS.secretTest)
  }

  /** One that is ready. */
  static async start(options: ServiceOptions): Promise<Service> {
    fs.mkdirSync(options.folder, { recursive: true })
    const service = new Service(options, await Effect.runPromise(serverPort))
    await service.start()
    return service
  }

  get processId(): number {
    const processId = this.#child?.pid
    if (processId === undefined) throw new Error("Till was not started")
    return processId
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  get #cluster(): string {
    return Path.join(fs.realpathSync(this.#options.folder), "postgres", "data")
  }

  /** Id of the embedded Postgres' first process, as long as that is alive. */
  get postgresProcessId(): number | undefined {
    return fs.existsSync(this.#options.folder) ? findServer(this.#cluster)?.processId : undefined
  }

  get #environment(): NodeJS.ProcessEnv {
    const { checkout, databaseUrl, folder, variables } = this.#options
    const inherited = Object.entries(process.env).filter(([name]) => /^(PATH|HOME|TMPDIR)$/.test(name))
    return {
      ...Object.fromEntries(inherited),
      ...checkout.command.variables,
      TILL_DATA_DIR: folder,
      PORT: String(this.port),
      TILL_SK_TEST: KEYS.secretTest,
      TILL_PK_TEST: KEYS.publishableTest,
      TILL_SK_LIVE: KEYS.secretLive,
      TILL_PK_LIVE: KEYS.publishableLive,
      ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
      ...variables
    }
  }

  /** Runs a command of `till` to its end, in the process' environment. Rejects if it fails. */
  async command(...parameters: ReadonlyArray<string>): Promise<string> {
    const { checkout, folder } = this.#options
    const { node, options } = checkout.command
    const all = [...options, Path.join(checkout.folder, "src/main.ts"), ...parameters]
    const { stdout } = await execute(node, all, { cwd: folder, env: this.#environment, maxBuffer: OUTPUT_MAX })
    return stdout
  }

  #spawn(): void {
    const { args = [], checkout, folder, imports = [] } = this.#options
    const { node, options } = checkout.command
    const loaded = imports.flatMap((module) => ["--import", module])
    const child = spawn(node, [...options, ...loaded, Path.join(checkout.folder, "src/main.ts"), "serve", ...args], {
      cwd: folder,
      env: this.#environment,
      stdio: ["ignore", "ignore", "pipe"]
    })
    child.stderr.on("data", (chunk: Buffer) => (this.log = (this.log + chunk.toString()).slice(-LOG_LENGTH_MAX)))
    this.#child = child
    this.#ended = new Promise((resolve) => child.once("exit", () => resolve()))
  }

  /** Starts the process and waits until it is ready. Rejects if it was destroyed: nobody would end it any more. */
  async start(): Promise<void> {
    if (this.#isDestroyed) throw new Error("this Till was destroyed")
    this.#spawn()
    const end = performance.now() + READY_MILLIS_MAX
    while (!(await this.isReady())) {
      if (!this.isRunning) throw new Error(`Till does not start: ${this.lastWords}`)
      if (performance.now() > end) throw new Error(`Till is not ready after a minute: ${this.lastWords}`)
      await pause(20)
    }
  }

  get lastWords(): string {
    return this.log.trim().split("\n").slice(-3).join(" | ").slice(-1500)
  }

  async isReady(): Promise<boolean> {
    try {
      return (await this.http.request("GET", "/readyz", { key: null })).status === 200
    } catch {
      return false
    }
  }

  /** Resolves when the process has ended. */
  get ended(): Promise<void> {
    return this.#ended
  }

  /** Resolves when the process logs something with this text from now on. */
  logged(text: string): Promise<void> {
    const { stderr } = this.#child!
    return new Promise((resolve) => {
      const look = (chunk: Buffer) => {
        if (!chunk.includes(text)) return
        stderr!.off("data", look)
        resolve()
      }
      stderr!.on("data", look)
    })
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name)
  }

  /** Ends the process and waits until it is gone. */
  async kill(name: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const late = setTimeout(() => this.signal("SIGKILL"), STOP_MILLIS_MAX)
    this.signal(name)
    await this.#ended
    clearTimeout(late)
  }

  /** Ends it with its Postgres, whatever state they are in. */
  async destroy(): Promise<void> {
    this.#isDestroyed = true
    this.http.close()
    if (this.isRunning) {
      this.signal("SIGCONT")
      await this.kill()
    }
    const postgres = this.postgresProcessId
    if (postgres === undefined) return
    for (const processId of family(postgres)) signalIfThere(processId, "SIGCONT")
    signalIfThere(postgres, "SIGQUIT")
    const end = performance.now() + 10_000
    while (this.postgresProcessId !== undefined && performance.now() < end) await pause(20)
    for (const processId of family(postgres)) signalIfThere(processId, "SIGKILL")
  }
}
