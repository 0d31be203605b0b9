/** The receivers of `examples/webhooks`, as programs that run. */
import type { ChildProcess } from "node:child_process"
import { spawn, spawnSync } from "node:child_process"
import * as http from "node:http"
import * as Path from "node:path"

export const EXAMPLES = Path.resolve(import.meta.dirname, "../../examples/webhooks")
export interface Language {
  readonly name: string
  /** What says whether the language is there, and what runs the example; the folder is for what it builds. */
  readonly check: readonly [string, ...Array<string>]
  readonly command: (folder: string) => readonly [string, ...Array<string>]
  readonly build?: (folder: string) => readonly [string, ...Array<string>]
}

export const LANGUAGES: ReadonlyArray<Language> = [
  {
    name: "Node",
    check: [process.execPath, "--version"],
    command: () => [process.execPath, "receiver.mjs"]
  },
  { name: "Python", check: ["python3", "--version"], command: () => ["python3", "receiver.py"] },
  { name: "Ruby", check: ["ruby", "--version"], command: () => ["ruby", "receiver.rb"] },
  {
    name: "Go",
    check: ["go", "version"],
    // `go run` would leave the program behind when it is ended itself.
    build: (folder) => ["go", "build", "-o", Path.join(folder, "receiver"), "receiver.go"],
    command: (folder) => [Path.join(folder, "receiver")]
  }
]

export const isThere = ({ check: [program, ...args] }: Language): boolean => spawnSync(program, args).status === 0

/** A receiver that runs. */
export class Receiver {
  readonly #child: ChildProcess
  #stdout = ""
  #stderr = ""
  readonly port: Promise<number>
  readonly #closed: Promise<unknown>

  constructor([program, ...args]: readonly [string, ...Array<string>], secrets: string) {
    const env = { ...process.env, TILL_WEBHOOK_SECRET: secrets, PORT: "0" }
    this.#child = spawn(program, args, { cwd: EXAMPLES, env, stdio: ["ignore", "pipe", "pipe"] })
    this.#closed = new Promise((resolve) => this.#child.once("close", resolve))
    this.port = new Promise((resolve, reject) => {
      this.#child.once("error", reject)
      this.#child.once("close", (code) => reject(new Error(`It ended with ${code}: ${this.#stderr}`)))
      this.#child.stderr!.on("data", (chunk) => (this.#stderr += String(chunk)))
      this.#child.stdout!.on("data", (chunk) => {
        this.#stdout += String(chunk)
        const port = /^Listening on http:\/\/127\.0\.0\.1:(\d+)\n/u.exec(this.#stdout)?.[1]
        if (port !== undefined) resolve(Number(port))
      })
    })
  }

  /** A line for each event that it has handled so far. */
  get handled(): ReadonlyArray<string> {
    return this.#stdout.split("\n").slice(1, -1)
  }

  /** Ends it; answers with the events that it has handled. */
  async end(): Promise<ReadonlyArray<string>> {
    this.#child.kill("SIGKILL")
    await this.#closed
    return this.handled
  }

  /** Posts to it; answers with its status. The body goes out in the given pieces. */
  async post(headers: http.OutgoingHttpHeaders, ...pieces: ReadonlyArray<Buffer>): Promise<number> {
    const port = await this.port
    return new Promise((resolve, reject) => {
      const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
      const request = http.request({
        host: "127.0.0.1",
        port,
        path: "/hooks",
        method: "POST",
        agent: false,
        headers: { "content-type": "application/json", "content-length": length, ...headers }
      })
      request.once("error", reject)
      request.once("response", (response) => {
        response.resume()
        response.once("end", () => resolve(response.statusCode!))
      })
      const next = (index: number): void => {
        if (index === pieces.length) request.end()
        else request.write(pieces[index]!, () => next(index + 1))
      }
      next(0)
    })
  }
}

/** Builds a language's receiver into a folder, with what is on the machine. Throws if it does not build. */
export const build = (language: Language, folder: string): void => {
  if (language.build === undefined) return
  const [program, ...args] = language.build(folder)
  const env = { ...process.env, GOPROXY: "off", GOTOOLCHAIN: "local", GO111MODULE: "off", CGO_ENABLED: "0" }
  const built = spawnSync(program, args, { cwd: EXAMPLES, env, encoding: "utf8" })
  if (built.status !== 0) throw new Error(built.stderr)
}

/** How to name a language in a test. */
export const nameOf = (language: Language): string =>
  isThere(language) ? language.name : `${language.name} (left out: there is no ${language.check[0]} here)`
