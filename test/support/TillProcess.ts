/**
 * The real service as a process of its own: `till serve` on a data folder of its own and a free port.
 *
 * Guarantees: whatever happens to the test, the process, the Postgres that it started and the folder go away with the
 * scope. It works as root, where the Postgres runs as another user, and as an ordinary user.
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

/** Arguments that make Node run Till. */
export const TILL = [program()]

type Environment = Readonly<Record<string, string>>

export interface End {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** The keys that a process is given unless a test says otherwise. */
export const KEYS = {
  secretTest: "sk_test_e2e0000000000000000000000000",
  publishableTest: "pk_test_e2e0000000000000000000000000",
  secretLive: "sk_live_e2e0000000000000000000000000",
  publishableLive: "pk_live_e2e0000000000000000000000000"
}

const KEY_VARIABLES: Environment = {
  TILL_SK_TEST: KEYS.secretTest,
  TILL_PK_TEST: KEYS.publishableTest,
  TILL_SK_LIVE: KEYS.secretLive,
  TILL_PK_LIVE: KEYS.publishableLive
}

/** Passes on the variables that a test sets, and none of the developer's own Till but what the whole run is about. */
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

/** A command of `till` that has just begun. */
export const run = (args: ReadonlyArray<string>, variables: Environment, input?: Input): Running => {
  const child = spawn(process.execPath, [...TILL, ...args], {
    env: environmentOf(variables),
    stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"]
  })
  child.stdin?.write(input?.text ?? "")
  if (input?.ends === true) child.stdin?.end()
  let stdout = ""
  let stderr = ""
  child.stdout!.on("data", (chunk) => (stdout += String(chunk)))
  child.stderr!.on("data", (chunk) => (stderr += String(chunk)))
  const ended = new Promise<End>((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })))
  return { child, stdout: () => stdout, stderr: () => stderr, ended }
}

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

export class TillProcess {
  readonly folder: string
  readonly port: number
  readonly http: HttpExchange
  readonly variables: Environment
  readonly #args: ReadonlyArray<string>
  readonly #newCluster: boolean
  #running: Running | undefined

  constructor(
    folder: string,
    port: number,
    variables: Environment,
    args: ReadonlyArray<string> = [],
    newCluster: boolean = false
  ) {
    this.#args = args
    this.#newCluster = newCluster || "DATABASE_URL" in variables
    this.folder = folder
    this.port = port
    this.variables = { TILL_DATA_DIR: folder, PORT: String(port), ...variables }
    this.http = new HttpExchange(port, variables["TILL_SK_TEST"] ?? null)
  }

  get baseUrl(): string {
    return `http://localhost:${this.port}`
  }

  get processId(): number {
    return this.#current.child.pid!
  }

  /** Everything that the running process, or else the last one, has written so far. */
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

  /** Id of the embedded Postgres' first process, as long as that is alive. */
  get postgresProcessId(): number | undefined {
    return findServer(clusterOf(this.folder))?.processId
  }

  request(method: string, path: string, options?: RequestOptions): Promise<Answer> {
    return this.http.request(method, path, options)
  }

  /** A POST that must succeed; answers with the object. */
  async post(path: string, body: object = {}, options: RequestOptions = {}): Promise<Answer["body"]> {
    return bodyOf(`POST ${path}`, await this.request("POST", path, { body, ...options }))
  }

  /** A GET that must succeed; answers with the object. */
  async get(path: string, options?: RequestOptions): Promise<Answer["body"]> {
    return bodyOf(`GET ${path}`, await this.request("GET", path, options))
  }

  /** Starts the process and waits until it is ready. */
  async start(): Promise<void> {
    if (!this.#newCluster && !fs.existsSync(clusterOf(this.folder))) ClusterTemplate.copyTo(this.folder)
    this.#running = run(["serve", ...this.#args], this.variables)
    let end: End | undefined
    void this.#running.ended.then((ended) => (end = ended))
    const isReady = async () => {
      if (end !== undefined) throw new Error(`Till ended with ${JSON.stringify(end)}: ${this.stderr}`)
      return this.stdout.includes("Till listens on") && (await this.isReady())
    }
    await until("Till is ready", isReady)
  }

  async isReady(): Promise<boolean> {
    try {
      return (await this.request("GET", "/readyz", { key: null })).status === 200
    } catch {
      return false
    }
  }

  /** Signals the process and waits until it is gone. */
  async kill(signal: NodeJS.Signals): Promise<End> {
    this.#current.child.kill(signal)
    return this.ended
  }

  /** Ends what this object stands for, whatever state it is in. */
  async destroy(): Promise<void> {
    this.http.close()
    if (this.#running !== undefined) await this.kill("SIGKILL")
    const postgres = this.postgresProcessId
    if (postgres !== undefined) {
      for (const processId of family(postgres)) signalIfThere(processId, "SIGCONT")
      signalIfThere(postgres, "SIGQUIT")
      await until("the Postgres is gone", () => this.postgresProcessId === undefined)
    }
    fs.rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
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

/** A folder for data, with its real path. It is removed by whoever uses it. */
const temporaryFolder = () => fs.realpathSync(fs.mkdtempSync(Path.join(os.tmpdir(), "till-e2e-")))

export interface TillOptions {
  /** More environment variables, or others. */
  readonly variables?: Environment
  /** Lets the process make keys of its own. */
  readonly withoutKeys?: boolean
  /** Arguments of `till serve`. */
  readonly args?: ReadonlyArray<string>
  /** Lets the process make its cluster itself, which takes a second. */
  readonly newCluster?: boolean
}

/** A process that is not started yet. */
export const prepareTill = (options: TillOptions = {}): Effect.Effect<TillProcess, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const variables = { ...(options.withoutKeys === true ? {} : KEY_VARIABLES), ...options.variables }
      const port = yield* serverPort
      return new TillProcess(temporaryFolder(), port, variables, options.args, options.newCluster)
    }),
    (till) => Effect.promise(() => till.destroy())
  )

/** A process that is ready. */
export const startTill = (options: TillOptions = {}): Effect.Effect<TillProcess, never, Scope.Scope> =>
  Effect.tap(prepareTill(options), (till) => Effect.promise(() => till.start()))

/** A process and all that descend from it. */
export const family = (processId: number): Array<number> => {
  const parents = parentsOfAll()
  const members = [processId]
  for (const member of members) for (const [child, parent] of parents) if (parent === member) members.push(child)
  return members
}

/** The processes of `serve --runners`: those that the first one has started itself, other than Postgres. */
export const runnersOf = (server: Pick<TillProcess, "processId" | "postgresProcessId">): ReadonlyArray<number> => {
  const postgres = server.postgresProcessId
  return parentsOfAll().flatMap(([child, parent]) => (parent === server.processId && child !== postgres ? [child] : []))
}

/** A parent's id for each process' id. */
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

/** Waits until a condition holds. The time is only for what never comes: a busy machine takes long for everything. */
export const until = async (
  what: string,
  condition: () => boolean | Promise<boolean>,
  secondsMax = 300
): Promise<void> => {
  const end = performance.now() + secondsMax * 1000
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`Waited ${secondsMax} s in vain until ${what}`)
    await pause(15)
  }
}
