/** The receivers of `examples/webhooks`, as programs that run. */
import type { ChildProcess } from "node:child_process"
import { spawn, spawnSync } from "node:child_process"
import * as http from "node:http"
import * as net from "node:net"
import * as Path from "node:path"

export const EXAMPLES = Path.resolve(import.meta.dirname, "../../examples/webhooks")
export interface Language {
  readonly name: string
  /**
   * `check` succeeds if the language is installed. `command` runs the example, which `build` may put into the folder.
   */
  readonly check: readonly [string, ...Array<string>]
  readonly command: (folder: string) => readonly [string, ...Array<string>]
  readonly build?: (folder: string) => readonly [string, ...Array<string>]
  /** It is run by a server of the language's own, which starts whatever the example says. */
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
    // `go run` would leave the program behind when it is ended itself.
    build: (folder) => ["go", "build", "-o", Path.join(folder, "receiver"), "receiver.go"],
    command: (folder) => [Path.join(folder, "receiver")]
  },
  {
    name: "PHP",
    check: ["php", "--version"],
    // Several processes, so that attempts overlap, would outlive the one that is ended.
    command: (folder) => ["env", `TMPDIR=${folder}`, "php", "-S", "127.0.0.1:0", "receiver.php"],
    isServed: true
  },
  {
    name: "Java",
    check: ["javac", "--version"],
    // `java Receiver.java` would compile it at each start.
    build: (folder) => ["javac", "-d", folder, "Receiver.java"],
    command: (folder) => ["java", "-cp", folder, "Receiver"]
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

  /** A line for each event that it has handled so far. */
  get handled(): ReadonlyArray<string> {
    const lines = this.#stdout.split("\n").slice(0, -1)
    return lines.filter((line) => !line.startsWith("Listening on "))
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

  /** Sends it what need not be a request, and waits until it hangs up. */
  async send(bytes: Buffer): Promise<void> {
    const port = await this.port
    return new Promise((resolve) => {
      const socket = net.connect(port, "127.0.0.1")
      socket.once("close", () => resolve())
      // It may hang up before it has read everything.
      socket.once("error", () => undefined)
      socket.resume().end(bytes)
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

/** The name of a language in a test's title, which says why the test is left out. */
export const nameOf = (language: Language): string =>
  isThere(language) ? language.name : `${language.name} (left out: there is no ${language.check[0]} here)`
