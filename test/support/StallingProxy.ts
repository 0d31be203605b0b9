/** A TCP proxy that can hold bytes back, as a network or a machine that hangs, and pass them on later. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"

export class StallingProxy {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #held: Array<() => void> | undefined
  /** Counts the calls of `swallow`. */
  #age = 0

  private constructor(target: { readonly host: string; readonly port: number }) {
    this.#server = createServer((client) => {
      const server = connect(target)
      this.#pass(client, server)
      this.#pass(server, client)
    })
  }

  static start(target: { readonly host: string; readonly port: number }): Promise<StallingProxy> {
    const proxy = new StallingProxy(target)
    return new Promise((resolve) => proxy.#server.listen(0, "127.0.0.1", () => resolve(proxy)))
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Holds back everything from this call on, ends of connections included. */
  stall(): void {
    this.#held ??= []
  }

  /** Passes on the held bytes in order, and everything after them. */
  resume(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const pass of held) pass()
  }

  /** Drops the bytes of all current connections without an error; new connections work. */
  swallow(): void {
    this.#age++
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #pass(from: Socket, to: Socket): void {
    const age = this.#age
    const orLater = (pass: () => void) => {
      if (age !== this.#age) return
      if (this.#held === undefined) pass()
      else this.#held.push(pass)
    }
    this.#sockets.add(from)
    from.on("data", (bytes) => orLater(() => to.writable && to.write(bytes)))
    from.on("end", () => orLater(() => to.end()))
    from.on("error", () => {})
    from.on("close", () => {
      this.#sockets.delete(from)
      orLater(() => to.end())
    })
  }
}
