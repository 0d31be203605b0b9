/**
 * A proxy between a client and a server that breaks chosen attempts, as networks do.
 *
 * Attempts of one call share their `Idempotency-Key`, by which the proxy separates calls; those without a key share "".
 */
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"

/** The fault of an attempt. */
export type Fault =
  /** The server does not receive the request. */
  | "refuse"
  /** The server carries the request out, and its answer is lost. */
  | "lose"
  /** The server carries the request out, and only a part of its answer arrives. */
  | "cut"
  /** The server carries the request out, and no answer arrives. */
  | "hang"
  /** The proxy answers in the server's place. */
  | { readonly status: number; readonly body: string; readonly headers?: Readonly<Record<string, string>> }

export interface Attempt {
  readonly method: string
  readonly url: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
  /** Time of arrival by `performance.now()`. */
  readonly atMillis: number
}

export class FaultyProxy {
  /** All requests, in order of arrival. */
  readonly attempts: Array<Attempt> = []
  readonly #faults = new Map<string, Array<Fault>>()
  readonly #server: http.Server

  private constructor(port: number) {
    this.#server = http.createServer((request, response) => {
      this.#pass(port, request, response).catch(() => request.socket.destroy())
    })
  }

  /** Starts a proxy for the server on a port of this machine. */
  static start(port: number): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(port)
    return new Promise((resolve) => proxy.#server.listen(0, "127.0.0.1", () => resolve(proxy)))
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Breaks the next attempts with a key, one after the other. */
  break(key: string, ...faults: ReadonlyArray<Fault>): void {
    this.#faults.set(key, [...faults])
  }

  attemptsWith(key: string): ReadonlyArray<Attempt> {
    return this.attempts.filter(({ headers }) => (headers["idempotency-key"] ?? "") === key)
  }

  close(): Promise<void> {
    this.#server.closeAllConnections()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  async #pass(port: number, request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { method = "", url = "", headers } = request
    const body = await text(request)
    this.attempts.push({ method, url, headers, body, atMillis: performance.now() })
    const fault = this.#faults.get(String(headers["idempotency-key"] ?? ""))?.shift()
    if (fault === "refuse") return void request.socket.destroy()
    if (typeof fault === "object") return void response.writeHead(fault.status, fault.headers).end(fault.body)
    const answer = await this.#forward(port, { method, path: url, headers }, body)
    if (fault === "hang") return
    if (fault === "lose") return void request.socket.destroy()
    response.writeHead(answer.status, answer.headers)
    if (fault !== "cut") return void response.end(Buffer.from(answer.text))
    response.write(answer.text.slice(0, answer.text.length / 2), () => request.socket.destroy())
  }

  #forward(port: number, options: http.RequestOptions, body: string) {
    return new Promise<{ status: number; headers: http.IncomingHttpHeaders; text: string }>((resolve, reject) => {
      const request = http.request({ ...options, host: "127.0.0.1", port, agent: false }, async (answer) => {
        resolve({ status: answer.statusCode!, headers: answer.headers, text: await text(answer) })
      })
      request.once("error", reject)
      // Node sends headers in the encoding of a body that is text.
      request.end(Buffer.from(body))
    })
  }
}
