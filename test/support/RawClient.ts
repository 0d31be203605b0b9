/** A client that writes requests as bytes, for tests of the parser and of forwarding. */
import { connect, type Socket } from "node:net"
import { connect as connectTls, type ConnectionOptions } from "node:tls"

/** One connection, with one request after the other. */
export class RawClient {
  readonly #socket: Socket
  #received = Buffer.alloc(0)
  #wake: () => void = () => undefined
  #hasEnded = false

  /** With `tls`, the client connects as a runner does. */
  constructor(port: number, tls?: ConnectionOptions) {
    const address = { port, host: "127.0.0.1" }
    this.#socket = tls === undefined ? connect(address) : connectTls({ ...tls, ...address })
    this.#socket.on("data", (chunk) => {
      this.#received = Buffer.concat([this.#received, chunk])
      this.#wake()
    })
    const end = () => {
      this.#hasEnded = true
      this.#wake()
    }
    this.#socket.on("error", end).on("close", end)
  }

  write(bytes: Buffer | string): void {
    this.#socket.write(bytes)
  }

  /** Reads the next answer and skips interim ones; undefined if the connection ends first. */
  async read(isHead = false): Promise<string | undefined> {
    for (;;) {
      const answer = this.#take(isHead)
      if (answer !== undefined && !answer.startsWith("HTTP/1.1 1")) return answer
      if (answer !== undefined) continue
      if (this.#hasEnded) return undefined
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  send(bytes: Buffer | string, isHead = false): Promise<string | undefined> {
    this.write(bytes)
    return this.read(isHead)
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(isHead: boolean): string | undefined {
    const text = this.#received.toString("latin1")
    const end = text.indexOf("\r\n\r\n")
    if (end === -1) return undefined
    const head = text.slice(0, end)
    const isEmpty = isHead || /^HTTP\/1\.1 (?:1|204|304)/.test(head)
    let length = end + 4 + (isEmpty ? 0 : Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0))
    if (!isEmpty && /\r\ntransfer-encoding: chunked/i.test(head)) {
      const last = text.indexOf("\r\n0\r\n\r\n", end)
      if (last === -1) return undefined
      length = last + 7
    }
    if (text.length < length) return undefined
    this.#received = this.#received.subarray(length)
    return text.slice(0, length)
  }
}

/** Returns an answer with its request id and date masked, which differ in every answer. */
export const comparable = (answer: string | undefined): string | undefined =>
  answer?.replace(/^x-request-id: .*$/im, "x-request-id: *").replace(/^date: .*$/im, "date: *")
