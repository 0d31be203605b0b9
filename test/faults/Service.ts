/**
 * A `TillProcess` of a checkout, which can be killed and started again on the same data and port. Loopback only; it
 * runs in the run's folder, where the guardian finds it, and leaves that folder behind.
 */
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import { serverPort } from "../support/ServerPort.ts"
import { type End, KEY_VARIABLES, KEYS, type Launch, TillProcess } from "../support/TillProcess.ts"
import type { Checkout } from "./Checkout.ts"

export interface ServiceOptions {
  readonly checkout: Checkout
  /** Absolute path: the process' working folder and data folder. */
  readonly folder: string
  /** The embedded Postgres unless given. */
  readonly databaseUrl?: string
  readonly variables?: Readonly<Record<string, string>>
  /** Modules that Node loads first. */
  readonly imports?: ReadonlyArray<string>
  /** Arguments of `till serve`. */
  readonly args?: ReadonlyArray<string>
}

/** A start after a crash may have many records to replay. */
const READY_SECONDS_MAX = 60
/** Time until a process that was asked to end is killed. */
const STOP_MILLIS_MAX = 30_000
const LOG_LENGTH_MAX = 20_000
const OUTPUT_MAX = 16 * 1024 * 1024

const execute = promisify(execFile)

const main = ({ folder }: Checkout) => Path.join(folder, "src/main.ts")

const launchOf = (options: ServiceOptions, port: number): Launch => {
  const { args = [], checkout, databaseUrl, folder, imports = [], variables } = options
  const loaded = imports.flatMap((module) => ["--import", module])
  const settings = {
    TILL_DATA_DIR: folder,
    PORT: String(port),
    ...KEY_VARIABLES,
    ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
    ...variables
  }
  const inherited = Object.entries(process.env).filter(([name]) => /^(PATH|HOME|TMPDIR)$/.test(name))
  return {
    command: [checkout.command.node, ...checkout.command.options, ...loaded, main(checkout), "serve", ...args],
    environment: { ...Object.fromEntries(inherited), ...checkout.command.variables, ...settings },
    variables: settings,
    folder,
    workingFolder: folder,
    port,
    apiKey: KEYS.secretTest,
    stderrLengthMax: LOG_LENGTH_MAX
  }
}

export class Service extends TillProcess {
  readonly #options: ServiceOptions
  readonly #environment: NodeJS.ProcessEnv

  constructor(options: ServiceOptions, port: number) {
    const launch = launchOf(options, port)
    super(launch)
    this.#options = options
    this.#environment = launch.environment
  }

  /** Starts a service on a free port and waits until it is ready. */
  static async start(options: ServiceOptions): Promise<Service> {
    fs.mkdirSync(options.folder, { recursive: true })
    const service = new Service(options, await Effect.runPromise(serverPort))
    await service.start()
    return service
  }

  override start(): Promise<void> {
    return super.start(READY_SECONDS_MAX)
  }

  /** Signals the process, kills it if it takes too long, and waits until it has ended. */
  override async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<End> {
    const late = setTimeout(() => this.signal("SIGKILL"), STOP_MILLIS_MAX)
    try {
      return await super.kill(signal)
    } finally {
      clearTimeout(late)
    }
  }

  /** Runs a command of `till` to its end, in the process' environment. Rejects if it fails. */
  async command(...parameters: ReadonlyArray<string>): Promise<string> {
    const { checkout, folder } = this.#options
    const { node, options } = checkout.command
    const all = [...options, main(checkout), ...parameters]
    const { stdout } = await execute(node, all, { cwd: folder, env: this.#environment, maxBuffer: OUTPUT_MAX })
    return stdout
  }

  /** The last lines of the log. */
  get lastLines(): string {
    return this.stderr.trim().split("\n").slice(-3).join(" | ").slice(-1500)
  }
}
