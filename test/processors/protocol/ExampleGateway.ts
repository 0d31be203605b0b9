/** The gateway of `examples/gateway` as a process, unchanged or with a mistake in its code. */
import { Effect, Redacted, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as Path from "node:path"
import { serverPort } from "../../support/ServerPort.ts"
import { temporaryFolder } from "../../support/TemporaryFolder.ts"

export const EXAMPLE = Path.resolve(import.meta.dirname, "../../../examples/gateway")

/** A change of the code: a text that it has once, and another for it. */
export type Mistake = readonly [find: string, replace: string]

const FILES = fs.readdirSync(EXAMPLE).filter((file) => !file.endsWith(".md"))

/** Copies the gateway into a folder, with mistakes. Each has to have its place in exactly one file. */
const copyWith = (folder: string, mistakes: ReadonlyArray<Mistake>): void => {
  const sources = new Map(FILES.map((file) => [file, fs.readFileSync(Path.join(EXAMPLE, file), "utf8")]))
  for (const [find, replace] of mistakes) {
    const places = [...sources].filter(([, source]) => source.includes(find))
    if (places.length !== 1 || places[0]![1].split(find).length !== 2) throw new Error(`There is not one: ${find}`)
    sources.set(
      places[0]![0],
      places[0]![1].replace(find, () => replace)
    )
  }
  for (const [file, source] of sources) fs.writeFileSync(Path.join(folder, file), source)
}

/** A line of the gateway's journal. */
export interface Change {
  readonly operation?: {
    /** The operation as Till sent it; absent for one that was abandoned before it came. */
    readonly body?: string
    readonly state: { readonly id: string; readonly status: string; readonly payment?: string }
  }
  readonly payment?: {
    readonly id: string
    readonly status: string
    readonly held?: number
    readonly captured?: number
    readonly refunded: number
  }
}

export class ExampleGateway {
  readonly secret = Redacted.make(`whsec_${randomBytes(32).toString("base64")}`)
  readonly url: string
  readonly port: number
  readonly #folder: string
  #child: ChildProcess | null = null
  #variables: Readonly<Record<string, string>>

  constructor(folder: string, port: number, variables: Readonly<Record<string, string>> = {}) {
    this.#folder = folder
    this.port = port
    this.url = `http://localhost:${port}`
    this.#variables = variables
  }

  /** Copies the gateway into a folder, which outlives it. */
  static lay(folder: string, port: number, variables: Readonly<Record<string, string>>): ExampleGateway {
    copyWith(folder, [])
    return new ExampleGateway(folder, port, variables)
  }

  /** Starts the process; resolves when it listens. */
  start(): Promise<void> {
    const env = {
      PATH: process.env["PATH"],
      PORT: String(this.port),
      GATEWAY_SECRET: Redacted.value(this.secret),
      GATEWAY_FILE: Path.join(this.#folder, "gateway.log"),
      ...this.#variables
    }
    const options = { cwd: this.#folder, env, stdio: "pipe" } as const
    const child = spawn(process.execPath, [Path.join(this.#folder, "gateway.mjs")], options)
    this.#child = child
    let output = ""
    return new Promise((resolve, reject) => {
      child.once("close", () => reject(new Error(`The gateway ended: ${output}`)))
      child.stderr.on("data", (chunk) => (output += String(chunk)))
      child.stdout.on("data", (chunk) => String(chunk).includes("listens at") && resolve())
    })
  }

  kill(): Promise<void> {
    const child = this.#child
    if (child === null || child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
    return new Promise((resolve) => {
      child.once("close", () => resolve())
      child.kill("SIGKILL")
    })
  }

  /** Stops the process or lets it go on: requests arrive, and are not answered. */
  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#child?.kill(signal)
  }

  /** The changes that the gateway has made, in their order. */
  get changes(): ReadonlyArray<Change> {
    const text = fs.readFileSync(Path.join(this.#folder, "gateway.log"), "utf8")
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Change)
  }

  /** Kills the process without a warning, and starts it again, with further variables from now on. */
  async restart(variables: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.kill()
    this.#variables = { ...this.#variables, ...variables }
    await this.start()
  }
}

/** Runs the gateway until the scope ends. */
export const exampleGateway = (
  ...mistakes: ReadonlyArray<Mistake>
): Effect.Effect<ExampleGateway, never, Scope.Scope> =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder()
    copyWith(folder, mistakes)
    const gateway = new ExampleGateway(folder, yield* serverPort)
    return yield* Effect.acquireRelease(
      Effect.as(
        Effect.promise(() => gateway.start()),
        gateway
      ),
      () => Effect.promise(() => gateway.kill())
    )
  })
