/**
 * A TCP proxy that can stop passing bytes on, as a network or a machine does that hangs, and then pass on what it held.
 */
import type { AddressInfo, Server, Socket } from "node:net"
import { connect, createServer } from "node:net"

export class StallingProxy {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #held: Array<() => void> | undefined
  /** Counts how often connections were swallowed. */
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

  /** From now on nothing gets through, not even the end of a connection. */
  stall(): void {
    this.#held ??= []
  }

  /** Passes on what was held, in its order, and everything after it. */
  resume(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const pass of held) pass()
  }

  /** Nothing gets through the connections that are there any more, and nobody learns of it; new ones work. */
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
