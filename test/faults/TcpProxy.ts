/** A network before a server on this machine, of bytes: slow, silent, or cut at the worst moment. */
import type { AddressInfo, Server, Socket } from "node:net"
import { connect, createServer } from "node:net"

interface Pair {
  readonly client: Socket
  readonly server: Socket
  /** Nothing gets through any more, and nobody learns of it. */
  isSwallowed: boolean
  /** The server's next answer is not passed on: the connection is reset instead. */
  isDoomed: boolean
}

/** A flush of the journal has this in it, and nothing else that Till sends. */
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

  /** From now on everything takes so long, each way. */
  slow(delayMillis: number): void {
    this.#delayMillis = delayMillis
  }

  /** From now on nothing gets through; `resume` passes it on. */
  stall(): void {
    this.#held ??= []
  }

  /** The same from the next flush on: what it writes arrives when the network is back. */
  stallAtFlush(): Promise<void> {
    return new Promise((resolve) => (this.#stalling = resolve))
  }

  resume(): void {
    this.#stalling = undefined
    const held = this.#held ?? []
    this.#held = undefined
    for (const pass of held) pass()
  }

  /** The connections that are there are half-open from now on; new ones work. */
  swallow(): void {
    for (const pair of this.#pairs) pair.isSwallowed = true
  }

  /** Lets the next flush through, and resets its connection when the server answers that it is committed. */
  resetAfterCommit(): Promise<void> {
    return new Promise((resolve) => (this.#resetting = resolve))
  }

  close(): void {
    this.#server.close()
    this.cut()
  }

  /** Ends the connections that are there; new ones work. */
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
