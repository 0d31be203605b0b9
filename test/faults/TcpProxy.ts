/** A network before a server on this machine: slow, silent, or cut at a critical moment. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"

interface Pair {
  readonly client: Socket
  readonly server: Socket
  /** Drops all bytes without an error. */
  isSwallowed: boolean
  /** Replaces the server's next answer by a reset of the connection. */
  isDoomed: boolean
}

/** Text that only a flush of the journal has among Till's messages. */
const RECORD = Buffer.from('"changes":[')

export class TcpProxy {
  readonly #server: Server
  readonly #pairs = new Set<Pair>()
  #delayMillis = 0
  #held: Array<() => void> | undefined
  #resetting: (() => void) | undefined
  #stalling: (() => void) | undefined

  private constructor(port: number) {
    this.#server = createServer((client) => {
      const pair = { client, server: connect(port, "127.0.0.1"), isSwallowed: false, isDoomed: false }
      this.#pairs.add(pair)
      this.#pass(pair, "client", "server")
      this.#pass(pair, "server", "client")
    })
  }

  static start(port: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(port)
    return new Promise((resolve) => proxy.#server.listen(0, "127.0.0.1", () => resolve(proxy)))
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Delays bytes in both directions. */
  slow(delayMillis: number): void {
    this.#delayMillis = delayMillis
  }

  /** Holds all bytes back; `resume` passes them on. */
  stall(): void {
    this.#held ??= []
  }

  /** Holds all bytes back from the next flush on: its writes arrive after `resume`. */
  stallAtFlush(): Promise<void> {
    return new Promise((resolve) => (this.#stalling = resolve))
  }

  resume(): void {
    this.#stalling = undefined
    const held = this.#held ?? []
    this.#held = undefined
    for (const pass of held) pass()
  }

  /** Makes the current connections half-open; new ones work. */
  swallow(): void {
    for (const pair of this.#pairs) pair.isSwallowed = true
  }

  /** Lets the next flush through, and resets its connection when the server confirms the commit. */
  resetAfterCommit(): Promise<void> {
    return new Promise((resolve) => (this.#resetting = resolve))
  }

  close(): void {
    this.#server.close()
    this.cut()
  }

  /** Ends the current connections; new ones work. */
  cut(): void {
    for (const { client, server } of this.#pairs) {
      client.destroy()
      server.destroy()
    }
  }

  #pass(pair: Pair, from: "client" | "server", to: "client" | "server"): void {
    let latest = 0
    const inOrder = (pass: () => void) => {
      if (pair.isSwallowed) return
      if (this.#held !== undefined) return void this.#held.push(() => inOrder(pass))
      const now = performance.now()
      latest = Math.max(latest, now + this.#delayMillis)
      if (latest <= now) pass()
      else setTimeout(pass, latest - now)
    }
    pair[from].on("data", (bytes: Buffer) => {
      const isFlush = from === "client" && bytes.includes(RECORD)
      if (isFlush && this.#resetting !== undefined) pair.isDoomed = true
      if (isFlush && this.#stalling !== undefined) this.#beginStall()
      if (from === "server" && pair.isDoomed) return this.#reset(pair)
      inOrder(() => pair[to].writable && pair[to].write(bytes))
    })
    pair[from].on("error", () => {})
    pair[from].on("close", () => {
      this.#pairs.delete(pair)
      inOrder(() => pair[to].end())
    })
  }

  #beginStall(): void {
    this.stall()
    this.#stalling?.()
    this.#stalling = undefined
  }

  #reset(pair: Pair): void {
    pair.client.resetAndDestroy()
    pair.server.resetAndDestroy()
    this.#resetting?.()
    this.#resetting = undefined
  }
}
