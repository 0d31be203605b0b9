/**
 * A proxy between a server and Postgres that counts the server's statements by their text, and the bytes of their
 * parameters. Everything passes unchanged. Connections are unencrypted, as those to a Postgres of this machine are.
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"
import { Effect } from "effect"
import { failureOf } from "../BenchFailure.ts"

export interface Counted {
  readonly count: number
  /** Bytes of the messages that bind parameters. */
  readonly bytes: number
}

/** Counts by the text of the statement. */
export type Statements = ReadonlyMap<string, Counted>

export interface StatementProxy {
  /** URL of the database by way of the proxy. */
  readonly url: string
  /** Returns the counts since the last call. */
  readonly take: () => Statements
}

const TYPE_BYTES = 1
const LENGTH_BYTES = 4
/** The types of the messages that are read; others pass. */
const [BIND, EXECUTE, PARSE, QUERY] = ["B", "E", "P", "Q"]

/** Reads what one connection sends to Postgres. The first message, the start-up message, has no type. */
export class ClientMessages {
  readonly #onStatement: (text: string, bytes: number) => void
  readonly #texts = new Map<string, string>()
  #rest: Buffer = Buffer.alloc(0)
  #isStarted = false
  #bound = { name: "", bytes: 0 }

  constructor(onStatement: (text: string, bytes: number) => void) {
    this.#onStatement = onStatement
  }

  push(chunk: Buffer): void {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    for (;;) {
      const head = this.#isStarted ? TYPE_BYTES : 0
      if (this.#rest.length < head + LENGTH_BYTES) return
      const end = head + this.#rest.readInt32BE(head)
      if (this.#rest.length < end) return
      if (this.#isStarted)
        this.#read(String.fromCharCode(this.#rest[0]!), this.#rest.subarray(head + LENGTH_BYTES, end))
      this.#isStarted = true
      this.#rest = this.#rest.subarray(end)
    }
  }

  #read(type: string, body: Buffer): void {
    const [first = "", second = ""] = type === QUERY || type === PARSE || type === BIND ? textsOf(body) : []
    if (type === PARSE) this.#texts.set(first, second)
    else if (type === BIND) this.#bound = { name: second, bytes: body.length }
    else if (type === EXECUTE) this.#onStatement(this.#texts.get(this.#bound.name) ?? "", this.#bound.bytes)
    else if (type === QUERY) this.#onStatement(first, 0)
  }
}

/** Returns the two texts, each ended by a zero byte, at the beginning of a message. */
const textsOf = (body: Buffer): ReadonlyArray<string> => {
  const end = body.indexOf(0)
  const next = body.indexOf(0, end + 1)
  return [body.toString("utf8", 0, end), body.toString("utf8", end + 1, next === -1 ? end + 1 : next)]
}

/** Returns where the Postgres of a URL listens: a parameter `host` may name the folder of its socket. */
const placeOf = (url: URL) => {
  const host = url.searchParams.get("host") ?? url.hostname
  const port = Number(url.port === "" ? 5432 : url.port)
  return host.startsWith("/") ? { path: `${host}/.s.PGSQL.${port}` } : { host, port }
}

/** Returns the URL with the proxy in the place of the server. */
const throughPort = (url: URL, port: number): string => {
  const proxied = new URL(url)
  proxied.hostname = "127.0.0.1"
  proxied.port = String(port)
  proxied.searchParams.delete("host")
  proxied.searchParams.set("sslmode", "disable")
  return proxied.href
}

const listen = (server: Server): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once("error", reject)
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port))
  })

/** Starts a proxy in front of a database; it ends with the scope. */
export const make = Effect.fnUntraced(function* (databaseUrl: string) {
  const url = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  let statements = new Map<string, Counted>()
  const count = (text: string, bytes: number): void => {
    const before = statements.get(text) ?? { count: 0, bytes: 0 }
    statements.set(text, { count: before.count + 1, bytes: before.bytes + bytes })
  }
  const server = createServer({ noDelay: true }, (client) => {
    const postgres = connect({ ...placeOf(url), noDelay: true })
    const messages = new ClientMessages(count)
    client.on("data", (chunk) => messages.push(chunk))
    for (const [from, to] of [
      [client, postgres],
      [postgres, client]
    ] as const) {
      sockets.add(from)
      from.on("error", () => to.destroy())
      from.on("close", () => {
        sockets.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  })
  const port = yield* Effect.acquireRelease(
    Effect.tryPromise({ try: () => listen(server), catch: failureOf("The proxy does not listen") }),
    () =>
      Effect.sync(() => {
        server.close()
        for (const socket of sockets) socket.destroy()
      })
  )
  return {
    url: throughPort(url, port),
    take: () => {
      const taken = statements
      statements = new Map()
      return taken
    }
  } satisfies StatementProxy as StatementProxy
})
