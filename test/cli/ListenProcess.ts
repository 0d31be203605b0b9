/** A running `till listen`, which ends with the scope. */
import { Effect, type Scope } from "effect"
import { spawn, type ChildProcess } from "node:child_process"
import { type End, TILL, type TillProcess, until } from "../support/TillProcess.ts"

export class ListenProcess {
  readonly #child: ChildProcess
  stdout = ""
  stderr = ""
  /** Resolves when it has ended and all of its output has arrived. */
  readonly ended: Promise<End>

  constructor(server: TillProcess, args: ReadonlyArray<string>) {
    const env = { PATH: process.env["PATH"] ?? "", XDG_STATE_HOME: `${server.folder}/state`, ...server.variables }
    this.#child = spawn(process.execPath, [...TILL, "listen", ...args], { env, stdio: ["ignore", "pipe", "pipe"] })
    this.#child.stdout!.on("data", (chunk) => (this.stdout += String(chunk)))
    this.#child.stderr!.on("data", (chunk) => (this.stderr += String(chunk)))
    this.ended = new Promise((resolve) => this.#child.once("close", (code, signal) => resolve({ code, signal })))
  }

  /** The secret that signs the webhooks. */
  get secret(): string {
    return /^They are signed with (whsec_\w{32})\n/mu.exec(this.stdout)![1]!
  }

  /** Its lines about webhooks, without their times. */
  get lines(): ReadonlyArray<string> {
    return this.stdout
      .split("\n")
      .slice(2, -1)
      .map((line) => line.replace(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ {2}/u, "").replace(/ {2}\d+ ms/u, ""))
  }

  kill(signal: NodeJS.Signals): Promise<End> {
    this.#child.kill(signal)
    return this.ended
  }
}

/** Starts one, which may refuse. */
export const spawnListen = (
  server: TillProcess,
  ...args: ReadonlyArray<string>
): Effect.Effect<ListenProcess, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => new ListenProcess(server, args)),
    (listening) => Effect.promise(() => listening.kill("SIGKILL"))
  )

/** Starts one, and waits until it forwards. */
export const startListen = (
  server: TillProcess,
  ...args: ReadonlyArray<string>
): Effect.Effect<ListenProcess, never, Scope.Scope> =>
  Effect.tap(spawnListen(server, ...args), (listening) =>
    Effect.promise(async () => {
      let hasEnded = false
      void listening.ended.then(() => (hasEnded = true))
      await until("till listen forwards", () => {
        if (hasEnded) throw new Error(`till listen has ended: ${listening.stderr}`)
        return listening.stdout.includes("whsec_")
      })
    })
  )
