/**
 * HTTP as a merchant's server uses it: keep-alive connections, Basic authentication, idempotency keys.
 *
 * A request has a whole answer or is `Lost`: the server may or may not have carried it out.
 */
import { randomUUID } from "node:crypto"
import * as http from "node:http"
import { parseJson } from "../../src/json/JsonParse.ts"

export interface Answer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  /** The exact text of the body. */
  readonly text: string
  /** Undefined if the body is no JSON. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into whatever came back
  readonly body: any
}

/** The connection ended before the answer was complete. */
export class Lost extends Error {
  readonly code: string
  constructor(cause: Error) {
    super(cause.message, { cause })
    this.code = "code" in cause ? String(cause.code) : "unknown"
  }
}

export interface RequestOptions {
  /** Null sends no `Authorization`. */
  readonly key?: string | null
  /** JSON to send. */
  readonly body?: object
  /** Left out, a POST gets a new one. */
  readonly idempotencyKey?: string
  readonly headers?: Readonly<Record<string, string>>
}

const PERSIST_MILLIS_MAX = 300_000
const PERSIST_PAUSE_MILLIS = 50

/** Connections to one server. */
export class HttpExchange {
  readonly port: number
  readonly #defaultKey: string | null
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: Infinity, maxFreeSockets: Infinity })

  constructor(port: number, defaultKey: string | null = null) {
    this.port = port
    this.#defaultKey = defaultKey
  }

  /** Sends a request and reads the whole answer. Rejects with `Lost`. */
  request(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
    const body = options.body === undefined ? undefined : JSON.stringify(options.body)
    const key = options.key === undefined ? this.#defaultKey : options.key
    const headers: http.OutgoingHttpHeaders = {
      ...(key !== null && { authorization: basic(key) }),
      ...(body !== undefined && { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
      ...(body === undefined && method === "POST" && { "content-length": 0 }),
      ...(method === "POST" && { "idempotency-key": options.idempotencyKey ?? randomUUID() }),
      ...options.headers
    }
    return new Promise((resolve, reject) => {
      const lost = (cause: Error) => reject(new Lost(cause))
      const address = { host: "127.0.0.1", port: this.port, method, path, headers, agent: this.#agent }
      const request = http.request(address, (response) => {
        let text = ""
        response.setEncoding("utf8")
        response.on("data", (chunk: string) => (text += chunk))
        response.once("error", lost)
        response.once("end", () => {
          if (!response.complete) return lost(new Error("the answer was cut off"))
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, body: parsed(text) })
        })
      })
      request.once("error", lost)
      request.end(body)
    })
  }

  /** Ends every connection. */
  close(): void {
    this.#agent.destroy()
  }
}

/** Undefined if the body is no JSON. */
const parsed = (text: string): unknown => {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

export const basic = (key: string): string => `Basic ${Buffer.from(`${key}:`).toString("base64")}`

/**
 * Sends a request until it is not refused with a 503, as a busy machine may do; a POST keeps its key, so it is carried
 * out once.
 */
export const persist = async (
  http: Pick<HttpExchange, "request">,
  method: string,
  path: string,
  options: RequestOptions = {}
): Promise<Answer> => {
  const idempotencyKey = options.idempotencyKey ?? randomUUID()
  const end = performance.now() + PERSIST_MILLIS_MAX
  for (;;) {
    const answer = await http.request(method, path, { ...options, idempotencyKey })
    if (answer.status !== 503 || performance.now() > end) return answer
    await new Promise((resolve) => setTimeout(resolve, PERSIST_PAUSE_MILLIS))
  }
}

/** Applies `use` to all items, up to `concurrency` at a time. */
export const inParallel = async <A, B>(
  items: ReadonlyArray<A>,
  concurrency: number,
  use: (item: A) => Promise<B>
): Promise<Array<B>> => {
  const results = Array.from<B>({ length: items.length })
  let next = 0
  const worker = async () => {
    while (next < items.length) {
      const index = next++
      results[index] = await use(items[index]!)
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, worker))
  return results
}

/** Reads all objects of a list, newest first, page by page. */
export const walk = async (
  http: HttpExchange,
  path: string,
  options: RequestOptions = {}
): Promise<Array<Answer["body"]>> => {
  const objects: Array<Answer["body"]> = []
  for (let cursor: string | null = null; ;) {
    const query: string = `limit=100${cursor === null ? "" : `&starting_after=${cursor}`}`
    const page = await persist(http, "GET", `${path}${path.includes("?") ? "&" : "?"}${query}`, options)
    if (page.status !== 200) throw new Error(`GET ${path} answered ${page.status}: ${page.text}`)
    objects.push(...page.body.data)
    cursor = page.body.next_cursor
    if (cursor === null) return objects
  }
}
