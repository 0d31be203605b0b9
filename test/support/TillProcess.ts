/**
 * The real service as a process of its own: `till serve` on a data folder of its own and a free port.
 *
 * Guarantees: the process, the Postgres that it started and the folder go away with the scope, also when the test
 * fails. The process runs as root, where its Postgres runs as another user, and as an ordinary user.
 */
import { Effect, type Scope } from "effect"
import { spawn, spawnSync, type ChildProcess } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as Path from "node:path"
import { findServer } from "../../src/postgres/embedded/Postmaster.ts"
import { program } from "./Bundle.ts"
import * as ClusterTemplate from "./ClusterTemplate.ts"
import { HttpExchange, type Answer, type RequestOptions } from "./HttpExchange.ts"
import { serverPort } from "./ServerPort.ts"
import { temporaryFolder } from "./TemporaryFolder.ts"

/** Arguments with which Node runs Till. */
export const TILL = [program()]

type Environment = Readonly<Record<string, string>>

export interface End {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** The keys of a process, unless a test sets others. */
export const KEYS = {
  secretTest: "sk_test_e2e0000000000000000000000000",
  publishableTest: "pk_test_e2e0000000000000000000000000",
  secretLive: "sk_live_e2e0000000000000000000000000",
  publishableLive: "pk_live_e2e0000000000000000000000000"
}

export const KEY_VARIABLES: Environment = {
  TILL_SK_TEST: KEYS.secretTest,
  TILL_PK_TEST: KEYS.publishableTest,
  TILL_SK_LIVE: KEYS.secretLive,
  TILL_PK_LIVE: KEYS.publishableLive
}

/** Returns a test's variables with those of the whole run, and none of a Till that the developer runs. */
const environmentOf = (variables: Environment): NodeJS.ProcessEnv => ({
  PATH: process.env["PATH"] ?? "",
  HOME: process.env["HOME"] ?? os.homedir(),
  ...(process.env["TMPDIR"] !== undefined && { TMPDIR: process.env["TMPDIR"] }),
  ...(process.env["TILL_PLAIN_HTTP"] !== undefined && { TILL_PLAIN_HTTP: process.env["TILL_PLAIN_HTTP"] }),
  NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
  ...variables
})

export interface Running {
  readonly child: ChildProcess
  readonly stdout: () => string
  readonly stderr: () => string
  readonly ended: Promise<End>
}

/** A command's standard input. `ends` is true if the input ends after the text. */
interface Input {
  readonly text: string
  readonly ends: boolean
}

interface SpawnOptions {
  readonly input?: Input | undefined
  readonly workingFolder?: string | undefined
  readonly stderrLengthMax?: number | undefined
}

const spawned = (command: ReadonlyArray<string>, environment: NodeJS.ProcessEnv, options: SpawnOptions): Running => {
  const { input, stderrLengthMax = Infinity, workingFolder } = options
  const [program, ...parameters] = command
  const child = spawn(program!, parameters, {
    cwd: workingFolder,
    env: environment,
    stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"]
  })
  child.stdin?.write(input?.text ?? "")
  if (input?.ends === true) child.stdin?.end()
  let stdout = ""
  let stderr = ""
  child.stdout!.on("data", (chunk) => (stdout += String(chunk)))
  child.stderr!.on("data", (chunk) => (stderr = (stderr + String(chunk)).slice(-stderrLengthMax)))
  const ended = new Promise<End>((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })))
  return { child, stdout: () => stdout, stderr: () => stderr, ended }
}

/** Starts a command of `till` and does not wait for its end. */
export const run = (args: ReadonlyArray<string>, variables: Environment, input?: Input): Running =>
  spawned([process.execPath, ...TILL, ...args], environmentOf(variables), { input })

/** Runs a command of `till` to its end, with `input`, if any, as its standard input. */
export const till = async (
  args: ReadonlyArray<string>,
  variables: Environment,
  input?: Input
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> => {
  const { child, ended, stderr, stdout } = run(args, variables, input)
  const timer = setTimeout(() => child.kill("SIGKILL"), 300_000)
  const closed = new Promise((resolve) => child.once("close", resolve))
  const { code } = await ended
  await closed
  clearTimeout(timer)
  return { code, stdout: stdout(), stderr: stderr() }
}

/** Everything that a process is started with. */
export interface Launch {
  /** Stands for the process in messages. */
  readonly name?: string
  /** The whole command line. */
  readonly command: ReadonlyArray<string>
  /** The whole environment. */
  readonly environment: NodeJS.ProcessEnv
  /** The variables among them that configure Till; commands on the same data get them, too. */
  readonly variables: Environment
  /** The data folder, whose Postgres ends with the process. */
  readonly folder: string
  readonly workingFolder?: string
  readonly port: number
  /** Key of requests that name none. */
  readonly apiKey: string | null
  /** Starts on a copy of a cluster that was made before, if the folder has none. */
  readonly copiesCluster?: boolean
  /** Characters of standard error that are kept, the newest ones; all unless given. */
  readonly stderrLengthMax?: number
}

/** Returns the launch of `till serve` as tests run it. */
export const launchOf = (
  folder: string,
  port: number,
  given: Environment,
  { args = [], newCluster = false }: Pick<TillOptions, "args" | "newCluster"> = {}
): Launch => {
  const variables = { TILL_DATA_DIR: folder, PORT: String(port), ...given }
  return {
    command: [process.execPath, ...TILL, "serve", ...args],
    environment: environmentOf(variables),
    variables,
    folder,
    port,
    apiKey: given["TILL_SK_TEST"] ?? null,
    copiesCluster: !newCluster && !("DATABASE_URL" in given)
  }
}

/** Characters of standard error in the message of a failed start. */
const LOG_LENGTH_MAX = 3000
/** Time for a Postgres to end by SIGQUIT before all of its processes are killed. */
const QUIT_SECONDS_MAX = 30

export class TillProcess {
  readonly folder: string
  readonly port: number
  readonly http: HttpExchange
  readonly variables: Environment
  readonly #launch: Launch
  #running: Running | undefined
  #isDestroyed = false

  constructor(launch: Launch) {
    this.#launch = launch
    this.folder = launch.folder
    this.port = launch.port
    this.variables = launch.variables
    this.http = new HttpExchange(launch.port, launch.apiKey)
  }

  get baseUrl(): string {
    return `http://localhost:${this.port}`
  }

  get processId(): number {
    return this.#current.child.pid!
  }

  get isRunning(): boolean {
    const child = this.#running?.child
    return child !== undefined && child.exitCode === null && child.signalCode === null
  }

  /** Output of the running process, or else of the last one. */
  get stdout(): string {
    return this.#current.stdout()
  }

  get stderr(): string {
    return this.#current.stderr()
  }

  /** Resolves when the running process, or the last one, has ended. */
  get ended(): Promise<End> {
    return this.#current.ended
  }

  /** Resolves when the process next writes this text to standard error. */
  logged(text: string): Promise<void> {
    const stderr = this.#current.child.stderr!
    return new Promise((resolve) => {
      const search = (chunk: Buffer) => {
        if (!chunk.includes(text)) return
        stderr.off("data", search)
        resolve()
      }
      stderr.on("data", search)
    })
  }

  /** Process id of the embedded Postgres' postmaster; undefined if it does not run. */
  get postgresProcessId(): number | undefined {
    if (!fs.existsSync(this.folder)) return undefined
    return findServer(clusterOf(fs.realpathSync(this.folder)))?.processId
  }

  request(method: string, path: string, options?: RequestOptions): Promise<Answer> {
    return this.http.request(method, path, options)
  }

  /** A POST that must succeed; returns the object. */
  async post(path: string, body: object = {}, options: RequestOptions = {}): Promise<Answer["body"]> {
    return bodyOf(`POST ${path}`, await this.request("POST", path, { body, ...options }))
  }

  /** A GET that must succeed; returns the object. */
  async get(path: string, options?: RequestOptions): Promise<Answer["body"]> {
    return bodyOf(`GET ${path}`, await this.request("GET", path, options))
  }

  /** Starts the process and waits until it is ready. Rejects after `destroy`, which would end no later process. */
  async start(secondsMax?: number): Promise<void> {
    const { command, copiesCluster = false, environment, name = "Till", stderrLengthMax, workingFolder } = this.#launch
    if (this.#isDestroyed) throw new Error(`${name} was destroyed`)
    if (copiesCluster && !fs.existsSync(clusterOf(this.folder))) ClusterTemplate.copyTo(this.folder)
    this.#running = spawned(command, environment, { stderrLengthMax, workingFolder })
    let end: End | undefined
    void this.#running.ended.then((ended) => (end = ended))
    const isReady = async () => {
      if (end !== undefined) {
        throw new Error(`${name} does not start: ${this.stderr.slice(-LOG_LENGTH_MAX)} ${JSON.stringify(end)}`)
      }
      return this.stdout.includes("Till listens on") && (await this.isReady())
    }
    await until(`${name} is ready`, isReady, secondsMax)
  }

  async isReady(): Promise<boolean> {
    try {
      return (await this.request("GET", "/readyz", { key: null })).status === 200
    } catch {
      return false
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#running?.child.kill(signal)
  }

  /** Signals the process and waits until it has ended. */
  async kill(signal: NodeJS.Signals): Promise<End> {
    this.signal(signal)
    return this.ended
  }

  /** Ends the process and its Postgres, also when they are stopped or hang. */
  async destroy(): Promise<void> {
    this.#isDestroyed = true
    this.http.close()
    if (this.isRunning) await this.kill("SIGKILL")
    const postgres = this.postgresProcessId
    if (postgres === undefined) return
    for (const processId of family(postgres)) signalIfThere(processId, "SIGCONT")
    signalIfThere(postgres, "SIGQUIT")
    const hasEnded = () => this.postgresProcessId === undefined
    await until("the Postgres has ended", hasEnded, QUIT_SECONDS_MAX).catch(() => killFamily(postgres))
    await until("the Postgres has ended", hasEnded)
  }

  get #current(): Running {
    if (this.#running === undefined) throw new Error("The process was not started")
    return this.#running
  }
}

const bodyOf = (request: string, answer: Answer): Answer["body"] => {
  if (answer.status !== 200) throw new Error(`${request} answered ${answer.status}: ${answer.text}`)
  return answer.body
}

const clusterOf = (folder: string) => Path.join(folder, "postgres", "data")

export interface TillOptions {
  /** Environment variables beside the test's keys, or in their place. */
  readonly variables?: Environment
  /** Lets the process make keys of its own. */
  readonly withoutKeys?: boolean
  /** Arguments of `till serve`. */
  readonly args?: ReadonlyArray<string>
  /** Lets the process make its cluster itself, which takes a second. */
  readonly newCluster?: boolean
}

/** A process that is not started yet, with a data folder of its own, which is removed with the scope. */
export const prepareTill = (options: TillOptions = {}): Effect.Effect<TillProcess, never, Scope.Scope> =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder()
    const variables = { ...(options.withoutKeys === true ? {} : KEY_VARIABLES), ...options.variables }
    const launch = launchOf(folder, yield* serverPort, variables, options)
    return yield* Effect.acquireRelease(
      Effect.sync(() => new TillProcess(launch)),
      (till) => Effect.promise(() => till.destroy())
    )
  })

/** A process that is ready. */
export const startTill = (options: TillOptions = {}): Effect.Effect<TillProcess, never, Scope.Scope> =>
  Effect.tap(prepareTill(options), (till) => Effect.promise(() => till.start()))

/** Ids of a process and its descendants. */
export const family = (processId: number): Array<number> => {
  const parents = parentsOfAll()
  const members = [processId]
  for (const member of members) for (const [child, parent] of parents) if (parent === member) members.push(child)
  return members
}

/** Ids of the runners of `serve --runners`: the children of the first process other than Postgres. */
export const runnersOf = (server: Pick<TillProcess, "processId" | "postgresProcessId">): ReadonlyArray<number> => {
  const postgres = server.postgresProcessId
  return parentsOfAll().flatMap(([child, parent]) => (parent === server.processId && child !== postgres ? [child] : []))
}

/** Pairs of a process id and its parent's. */
const parentsOfAll = (): Array<readonly [number, number]> => {
  if (process.platform !== "linux") {
    const listing = spawnSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" }).stdout
    return listing
      .trim()
      .split("\n")
      .map((line) => line.trim().split(/\s+/).map(Number) as [number, number])
  }
  return fs.readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      // The name of the program stands in parentheses and may hold anything.
      const rest = fs.readFileSync(`/proc/${name}/stat`, "utf8").replace(/^.*\)/s, "").trim().split(" ")
      return [[Number(name), Number(rest[1])] as const]
    } catch {
      return []
    }
  })
}

/** Kills a Postgres with all its backends at once, as a power cut does. */
export const killFamily = (processId: number): void => {
  // A stopped server has no more children.
  signalIfThere(processId, "SIGSTOP")
  for (const member of family(processId)) signalIfThere(member, "SIGKILL")
}

export const signalIfThere = (processId: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(processId, signal)
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause && cause.code === "ESRCH")) throw cause
  }
}

export const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** Waits until a condition holds. The limit is for a condition that never holds, so a busy machine stays below it. */
export const until = async (
  what: string,
  condition: () => boolean | Promise<boolean>,
  secondsMax = 300
): Promise<void> => {
  const end = performance.now() + secondsMax * 1000
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`Not within ${secondsMax} s: ${what}`)
    await pause(15)
  }
}
