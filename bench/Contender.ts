/** The servers in the comparison. Each is a process of its own with a database of its own. */
import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schedule } from "effect"
import { freePort } from "../src/postgres/embedded/FreePort.ts"
import { BenchFailure, failureOf } from "./BenchFailure.ts"
import { temporaryFolder } from "./Database.ts"
import * as Emulate from "./Emulate.ts"

export type ContenderName = "till" | "echo" | "emulate" | "groupCommit" | "transactionPerRequest"

export interface Contender {
  readonly name: ContenderName
  /** Name in tables and in the chart. */
  readonly title: string
  /** Arguments of Node. */
  readonly parameters: ReadonlyArray<string>
  /** Parameter before the port, for a server that does not read the variable `PORT`. */
  readonly portParameter?: string
  /** The request that a ready server answers with a 200; `/healthz` unless given. */
  readonly ready?: { readonly path: string; readonly apiKey: string }
  /** All keys belong to one account, and each allows a limited number of requests: every load uses all keys in turn. */
  readonly keysInTurn?: boolean
  /** Query that counts the acknowledged requests; null if the server stores nothing. */
  readonly countQuery: string | null
}

const baseline = (name: ContenderName, title: string, countQuery: string | null): Contender => ({
  name,
  title,
  parameters: [join(import.meta.dirname, "baselines", `${name}.ts`)],
  countQuery
})

/** The command line's beginning and the variables with which Node starts. */
export interface Command {
  readonly node: string
  readonly options: ReadonlyArray<string>
  readonly variables: Readonly<Record<string, string>>
}

/** Reads Node's options and variables from the command `till` of a folder with Till's sources. */
export const commandOf = (folder: string, node: string): Command => {
  const command = readFileSync(join(folder, "src/cli/till.sh"), "utf8")
  const variables = command.matchAll(/^ +export ([A-Z_]+)=(\S+)$/gm)
  return {
    node,
    options: command.match(/(?<= )--\S+/g) ?? [],
    variables: Object.fromEntries([...variables].map(([, name, value]) => [name!, value!]))
  }
}

/** All servers start with this command, so that only the servers differ. */
export const ownCommand = commandOf(join(import.meta.dirname, ".."), process.execPath)

export const contenders: Readonly<Record<ContenderName, Contender>> = {
  till: {
    name: "till",
    title: "Till",
    parameters: [join(import.meta.dirname, "../src/main.ts"), "serve"],
    // A 200 of `/readyz` shows that the database answers, too.
    ready: { path: "/readyz", apiKey: "" },
    // The account `till` holds merchants and keys; no request of a bench writes to it.
    countQuery: "SELECT count(*) FROM journal WHERE account <> 'till'"
  },
  echo: baseline("echo", "bare node:http echo", null),
  emulate: {
    name: "emulate",
    title: `emulate ${Emulate.VERSION}, in memory`,
    parameters: [Emulate.main, "start", "--service", "stripe"],
    portParameter: "--port",
    ready: { path: "/v1/payment_intents?limit=1", apiKey: "sk_test_ready" },
    keysInTurn: true,
    countQuery: null
  },
  groupCommit: baseline("groupCommit", "node:http + group commit", "SELECT count(*) FROM payment_intents"),
  transactionPerRequest: baseline(
    "transactionPerRequest",
    "node:http + transaction per request",
    `SELECT CASE WHEN (SELECT count(DISTINCT id) FROM objects WHERE kind = 'payment_intent') =
      (SELECT count(*) FROM idempotency_keys) THEN (SELECT count(*) FROM idempotency_keys) END`
  )
}

export interface Server {
  readonly contender: Contender
  readonly pid: number
  readonly port: number
}

export interface Installation {
  readonly command: Command
  readonly databaseUrl: string
  readonly dataFolder: string
}

export interface StartOptions {
  /** URL of the contender's own database; empty if it has none. */
  readonly databaseUrl: string
  /** Options of Node itself, such as `--cpu-prof`. */
  readonly nodeOptions: ReadonlyArray<string>
  /** This checkout's unless given. */
  readonly command?: Command
  /** Variables beside those of every server. */
  readonly variables?: Readonly<Record<string, string>>
  /** The server's data folder beside its database; a new one unless given. */
  readonly dataFolder?: string
}

/** A server that this process has started. */
export interface StartedServer extends Server {
  /** Milliseconds from the process' start to its first good answer. */
  readonly readyMillis: number
  /** The installation, for commands of `till` on it. */
  readonly installation: Installation
  /** Kills the server (SIGKILL) and waits until it has ended. */
  readonly kill: Effect.Effect<void>
}

/** The shell's variables without those that configure a Till. */
const inherited = () =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(TILL_.*|HOST)$/.test(name)))

/** The environment of a process on an installation. */
export const variablesOf = ({ command, databaseUrl, dataFolder }: Installation) => ({
  ...inherited(),
  ...command.variables,
  DATABASE_URL: databaseUrl,
  TILL_DATA_DIR: dataFolder
})

const READY_MILLIS = 120_000
const STOP_MILLIS = 15_000
/** Characters of a server's log that a failure shows. */
const LOG_LENGTH_MAX = 4000

const end = (child: ChildProcess, signal: NodeJS.Signals) =>
  Effect.callback<void>((resume) => {
    if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
    child.kill(signal)
  })

/** Starts a server and waits until it answers; it stops with the scope. */
export const start = Effect.fnUntraced(function* (contender: Contender, options: StartOptions) {
  const port = yield* Effect.orDie(freePort("127.0.0.1", 0))
  const folder = options.dataFolder ?? (yield* temporaryFolder)
  const { command = ownCommand, databaseUrl } = options
  let log = ""
  const began = performance.now()
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const { parameters, portParameter } = contender
      const ofPort = portParameter === undefined ? [] : [portParameter, String(port)]
      const child = spawn(command.node, [...command.options, ...options.nodeOptions, ...parameters, ...ofPort], {
        // The guardian finds the process by its folder.
        cwd: folder,
        env: { ...variablesOf({ command, databaseUrl, dataFolder: folder }), ...options.variables, PORT: String(port) },
        stdio: ["ignore", "pipe", "pipe"]
      })
      const keep = (chunk: Buffer) => (log = (log + chunk.toString()).slice(-LOG_LENGTH_MAX))
      child.stdout.on("data", keep)
      child.stderr.on("data", keep)
      return child
    }),
    (child) => {
      const kill = setTimeout(() => child.kill("SIGKILL"), STOP_MILLIS)
      return Effect.andThen(
        end(child, "SIGTERM"),
        Effect.sync(() => clearTimeout(kill))
      )
    }
  )
  const { apiKey = "", path = "/healthz" } = contender.ready ?? {}
  const headers = { authorization: `Basic ${Buffer.from(`${apiKey}:`).toString("base64")}` }
  const ask = Effect.tryPromise({
    try: async () => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers })
      if (!response.ok) throw new Error(`it answers ${response.status}`)
    },
    catch: failureOf(`${contender.title} does not start`)
  })
  const pause = Schedule.spaced("20 millis")
  yield* ask.pipe(
    Effect.retry({ schedule: pause, while: () => child.exitCode === null }),
    Effect.timeoutOrElse({
      duration: READY_MILLIS,
      orElse: () => Effect.fail(new BenchFailure({ problem: `${contender.title} does not start in time` }))
    }),
    Effect.mapError((failure) => new BenchFailure({ problem: `${failure.problem}\n${log}` }))
  )
  return {
    contender,
    pid: child.pid!,
    port,
    readyMillis: performance.now() - began,
    installation: { command, databaseUrl, dataFolder: folder },
    kill: end(child, "SIGKILL")
  } satisfies StartedServer as StartedServer
})
