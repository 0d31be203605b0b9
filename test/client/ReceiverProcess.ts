/** The receivers of `examples/webhooks`, as running programs. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import * as http from "node:http"
import * as net from "node:net"
import * as Path from "node:path"

export const EXAMPLES = Path.resolve(import.meta.dirname, "../../examples/webhooks")
export interface Language {
  readonly name: string
  /**
   * `check` succeeds if the language is installed. `command` runs the example, which `build` can put into the folder.
   */
  readonly check: readonly [string, ...Array<string>]
  readonly command: (folder: string) => readonly [string, ...Array<string>]
  readonly build?: (folder: string) => readonly [string, ...Array<string>]
  /** Set if the language's own server runs the example, which starts even if the example fails. */
  readonly isServed?: true
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
    // A killed `go run` would leave the program running.
    build: (folder) => ["go", "build", "-o", Path.join(folder, "receiver"), "receiver.go"],
    command: (folder) => [Path.join(folder, "receiver")]
  },
  {
    name: "PHP",
    check: ["php", "--version"],
    // Only one process: more, for concurrent attempts, would outlive the one that is killed.
    command: (folder) => ["env", `TMPDIR=${folder}`, "php", "-S", "127.0.0.1:0", "receiver.php"],
    isServed: true
  },
  {
    name: "Java",
    check: ["javac", "--version"],
    // `java Receiver.java` would compile at each start.
    build: (folder) => ["javac", "-d", folder, "Receiver.java"],
    command: (folder) => ["java", "-cp", folder, "Receiver"]
  }
]

export const isThere = ({ check: [program, ...args] }: Language): boolean => spawnSync(program, args).status === 0

/** A running receiver. */
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
      const findPort = (output: string) => {
        const port = /(?:^Listening on |Development Server \()http:\/\/127\.0\.0\.1:(\d+)(?:\n|\) started)/u.exec(
          output
        )?.[1]
        if (port !== undefined) resolve(Number(port))
      }
      this.#child.stderr!.on("data", (chunk) => findPort((this.#stderr += String(chunk))))
      this.#child.stdout!.on("data", (chunk) => findPort((this.#stdout += String(chunk))))
    })
  }

  /** The processed events so far, one line each. */
  get handled(): ReadonlyArray<string> {
    const lines = this.#stdout.split("\n").slice(0, -1)
    return lines.filter((line) => !line.startsWith("Listening on "))
  }

  /** Ends the receiver and returns the events that it processed. */
  async end(): Promise<ReadonlyArray<string>> {
    this.#child.kill("SIGKILL")
    await this.#closed
    return this.handled
  }

  /** Sends a POST, with the body in the given chunks, and returns the status. */
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

  /** Sends bytes that need not be a request, and waits until the receiver closes the connection. */
  async send(bytes: Buffer): Promise<void> {
    const port = await this.port
    return new Promise((resolve) => {
      const socket = net.connect(port, "127.0.0.1")
      socket.once("close", () => resolve())
      // The receiver can close the connection before it has read everything.
      socket.once("error", () => undefined)
      socket.resume().end(bytes)
    })
  }
}

/** Builds a language's receiver into a folder, with the installed tools. Throws if the build fails. */
export const build = (language: Language, folder: string): void => {
  if (language.build === undefined) return
  const [program, ...args] = language.build(folder)
  const env = { ...process.env, GOPROXY: "off", GOTOOLCHAIN: "local", GO111MODULE: "off", CGO_ENABLED: "0" }
  const built = spawnSync(program, args, { cwd: EXAMPLES, env, encoding: "utf8" })
  if (built.status !== 0) throw new Error(built.stderr)
}

/** Returns a language's name for a test's title, with the reason if the test is skipped. */
export const nameOf = (language: Language): string =>
  isThere(language) ? language.name : `${language.name} (skipped: no ${language.check[0]} installed)`
