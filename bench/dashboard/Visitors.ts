/** Browsers in front of the dashboard: they sign in by links, load pages, and keep pages open that stay true. */
import { execFile } from "node:child_process"
import * as http from "node:http"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import { failureOf } from "../BenchFailure.ts"
import type { StartedServer } from "../Contender.ts"
import { variablesOf } from "../Contender.ts"

const MAIN = join(import.meta.dirname, "../../src/main.ts")
const HTML = { accept: "text/html" }

export interface Loaded {
  readonly status: number
  readonly text: string
  readonly millis: number
}

export class Visitor {
  readonly #agent: http.Agent
  readonly #headers: Readonly<Record<string, string>>
  readonly #port: number

  constructor(port: number, cookie: string, connections: number) {
    this.#port = port
    this.#headers = { cookie }
    this.#agent = new http.Agent({ keepAlive: true, maxSockets: connections })
  }

  /** Loads a page of the dashboard's test mode. */
  load(path: string): Promise<Loaded> {
    const began = performance.now()
    return new Promise((resolve, reject) => {
      const request = this.#request(path, this.#agent, (response) => {
        let text = ""
        response.setEncoding("utf8")
        response.on("data", (chunk: string) => (text += chunk))
        response.once("error", reject)
        response.once("end", () => resolve({ status: response.statusCode!, text, millis: performance.now() - began }))
      })
      request.once("error", reject).end()
    })
  }

  /** Opens a page's stream, which calls `changed` now and then. Answers with what closes it. */
  listen(changed: () => void): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const request = this.#request("/live", false, (response) => {
        if (response.statusCode !== 200) return reject(new Error(`A stream is answered with ${response.statusCode}`))
        response.setEncoding("utf8")
        response.on("data", (chunk: string) => chunk.includes("event: changed") && changed())
        response.on("error", () => {})
        resolve(() => request.destroy())
      })
      request.on("error", reject).end()
    })
  }

  close(): void {
    this.#agent.destroy()
  }

  #request(path: string, agent: http.Agent | false, answered: (response: http.IncomingMessage) => void) {
    const address = { host: "127.0.0.1", port: this.#port, path: `/dashboard/test${path}` }
    return http.request({ ...address, headers: { ...this.#headers, ...HTML }, agent }, answered)
  }
}

/** Signs the merchant's owner in once more, by a link of `till dashboard`. */
export const signIn = Effect.fnUntraced(function* (server: StartedServer, merchant: string, connections: number) {
  const { command, dataFolder } = server.installation
  return yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        const parameters = [...command.options, MAIN, "dashboard", "--merchant", merchant]
        const options = { cwd: dataFolder, env: variablesOf(server.installation) }
        const { stdout } = await promisify(execFile)(command.node, parameters, options)
        const link = `http://127.0.0.1:${server.port}${new URL(stdout.trim()).pathname}`
        const answer = await fetch(link, { redirect: "manual", headers: HTML })
        const cookies = answer.headers.getSetCookie().map((cookie) => cookie.split(";", 1)[0])
        if (cookies.length === 0) throw new Error(`the link is answered with ${answer.status}`)
        return new Visitor(server.port, cookies.join("; "), connections)
      },
      catch: failureOf("Nobody can sign in")
    }),
    (visitor) => Effect.sync(() => visitor.close())
  )
})
