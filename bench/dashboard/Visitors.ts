/** Browsers of the dashboard: they sign in by links, load pages, and keep pages open that reload after changes. */
import { execFile } from "node:child_process"
import * as http from "node:http"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import { failureOf } from "../BenchFailure.ts"
import { type StartedServer, variablesOf } from "../Contender.ts"

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

  /** Opens a page's stream, which calls `changed`; returns a function that closes it. */
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

const tokenIn = (page: string, action: string): string => {
  const token = new RegExp(`action="[^"]*${action}"[^]*?name="token" value="([^"]+)"`).exec(page)?.[1]
  if (token === undefined) throw new Error(`a page has no form to ${action}`)
  return token
}

/** Sends a form of a page, as a browser does. */
const send = async (url: URL, cookie: string, action: string, entered: Readonly<Record<string, string>> = {}) => {
  const page = await (await fetch(url, { headers: { ...HTML, cookie } })).text()
  return await fetch(new URL(`/dashboard${action}`, url), {
    method: "POST",
    redirect: "manual",
    headers: { ...HTML, cookie, origin: url.origin, "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({ ...entered, token: tokenIn(page, action) }).toString()
  })
}

/** Signs in by a link; returns the cookie. */
const signInBy = async (link: URL): Promise<string> => {
  const answer = await send(link, "", link.pathname.replace(/^\/dashboard/, ""))
  const cookies = answer.headers.getSetCookie().map((cookie) => cookie.split(";", 1)[0])
  if (cookies.length === 0) throw new Error(`the link is answered with ${answer.status}`)
  return cookies.join("; ")
}

const ownersLink = async ({ installation, port }: StartedServer, merchant: string): Promise<URL> => {
  const { command, dataFolder } = installation
  const parameters = [...command.options, MAIN, "dashboard", "--merchant", merchant]
  const options = { cwd: dataFolder, env: variablesOf(installation) }
  const { stdout } = await promisify(execFile)(command.node, parameters, options)
  return new URL(new URL(stdout.trim()).pathname, `http://127.0.0.1:${port}`)
}

/** Adds a person as the owner; returns the person's link. */
const added = async (server: StartedServer, owner: string, email: string): Promise<URL> => {
  const team = new URL("/dashboard/test/team", `http://127.0.0.1:${server.port}`)
  const answer = await send(team, owner, "/test/team/add", { email, role: "support" })
  const link = /\/dashboard\/link\/\w+/.exec(await answer.text())?.[0]
  if (link === undefined) throw new Error(`adding a person is answered with ${answer.status}`)
  return new URL(link, team)
}

/** Signs people of a merchant in, each in a browser: the owner first, by a link of `till dashboard`. */
export const signIn = Effect.fnUntraced(function* (
  server: StartedServer,
  merchant: string,
  { connections, people }: { readonly connections: number; readonly people: number }
) {
  return yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        const cookies = [await signInBy(await ownersLink(server, merchant))]
        while (cookies.length < people) {
          const email = `person-${cookies.length}@example.com`
          cookies.push(await signInBy(await added(server, cookies[0]!, email)))
        }
        return cookies.map((cookie) => new Visitor(server.port, cookie, connections))
      },
      catch: failureOf("Nobody can sign in")
    }),
    (visitors) => Effect.sync(() => visitors.forEach((visitor) => visitor.close()))
  )
})
