/**
 * Requests in batches of a fixed size. The server is stopped (SIGSTOP) while a batch is written to its connections, one
 * request each, and so finds all of them in one turn of its event loop, on a slow machine as on a fast one.
 */
import { connect, type Socket } from "node:net"
import { Effect } from "effect"
import { failureOf } from "../BenchFailure.ts"
import { ResponseReader } from "../load/ResponseReader.ts"

/** Requests of a batch: few enough to be begun in one turn. */
export const SIZE = 16

const open = (port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket: Socket = connect({ host: "127.0.0.1", port, noDelay: true }, () => resolve(socket))
    socket.once("error", reject)
  })

/** Returns the text of the next response on a connection; rejects any status but 200. */
const answerOn = (socket: Socket): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new ResponseReader()
    const settle = (settled: () => void): void => {
      socket.off("data", receive).off("close", closed)
      settled()
    }
    const closed = () => reject(new Error("The server closed a connection."))
    const receive = (chunk: Buffer) => {
      if (!reader.push(chunk, chunk.length)) return
      settle(() => (reader.status === 200 ? resolve(reader.text) : reject(new Error(reader.text))))
    }
    socket.on("data", receive).on("close", closed)
  })

const written = (socket: Socket, text: string): Promise<void> =>
  new Promise((resolve, reject) => socket.write(text, "latin1", (error) => (error == null ? resolve() : reject(error))))

/** Opens the connections; returns the function that sends a batch and returns the answers. */
export const make = Effect.fnUntraced(function* ({ pid, port }: { readonly pid: number; readonly port: number }) {
  const failure = failureOf("A batch of requests failed")
  const sockets = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () => Promise.all(Array.from({ length: SIZE }, () => open(port))),
      catch: failure
    }),
    (sockets) => Effect.sync(() => sockets.forEach((socket) => socket.destroy()))
  )
  return (nextText: () => string) =>
    Effect.tryPromise({
      try: async () => {
        // All of them, also after a failure: the next batch begins on quiet connections.
        const answers = Promise.allSettled(sockets.map(answerOn))
        process.kill(pid, "SIGSTOP")
        try {
          await Promise.all(sockets.map((socket) => written(socket, nextText())))
        } finally {
          process.kill(pid, "SIGCONT")
        }
        const settled = await answers
        return settled.map((answer) => {
          if (answer.status === "rejected") throw answer.reason
          return answer.value
        })
      },
      catch: failure
    })
})
