/**
 * The sink's process: takes webhooks in and notes when the first byte of each came. It reads raw sockets, like the load
 * generator, because every microsecond here is taken from the server under test.
 */
import { createServer, type Socket } from "node:net"
import { Arrivals } from "./Arrivals.ts"
import { deliveryOf } from "./Delivery.ts"
import { nowMicros } from "../load/MonotonicClock.ts"
import { RequestReader } from "./RequestReader.ts"
import type { SinkAnswer, SinkCommand } from "./SinkCommand.ts"
import { serve } from "../Worker.ts"

/** Time without a delivery after which the sink expects no further one. */
const SILENCE_MILLIS_MAX = 20_000

const ANSWERS: Readonly<Record<SinkAnswer, string | null>> = {
  success: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
  failure: "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
  nothing: null
}

let arrivals = new Arrivals("", 0)
let answer: string | null = ANSWERS.success
/** A request that is no delivery of the bench. */
let problem: string | undefined
let arrived = () => {}

const receive = (socket: Socket): void => {
  const reader = new RequestReader()
  let firstByteMicros = 0
  socket.setNoDelay(true)
  socket.on("data", (bytes: Buffer) => {
    if (reader.empty) firstByteMicros = nowMicros()
    try {
      if (!reader.push(bytes, bytes.length)) return
      arrivals.add(deliveryOf(reader.text), firstByteMicros)
    } catch (error) {
      problem ??= String(error)
      return void socket.destroy()
    } finally {
      arrived()
    }
    reader.reset()
    if (answer !== null) socket.write(answer, "latin1")
  })
  // A killed sender resets its connections.
  socket.on("error", () => {})
}

const listen = () =>
  new Promise<number>((resolve, reject) => {
    const server = createServer(receive)
    server.on("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resolve(typeof address === "object" && address !== null ? address.port : 0)
    })
  })

const awaitDeliveries = (deliveries: number) =>
  new Promise<void>((resolve, reject) => {
    const settle = (conclude: () => void) => {
      clearTimeout(silence)
      arrived = () => {}
      conclude()
    }
    const give = (problem: string) => settle(() => reject(new Error(problem)))
    const silence = setTimeout(
      () => give(`${arrivals.distinct} of ${deliveries} deliveries have arrived, and no more do.`),
      SILENCE_MILLIS_MAX
    )
    arrived = () => {
      if (problem !== undefined) give(problem)
      else if (arrivals.distinct >= deliveries) settle(resolve)
      else silence.refresh()
    }
    arrived()
  })

const carryOut = async (command: SinkCommand): Promise<unknown> => {
  switch (command.command) {
    case "listen":
      return listen()
    case "begin":
      arrivals = new Arrivals(command.run, command.endpoints)
      return undefined
    case "answer":
      answer = ANSWERS[command.how]
      return undefined
    case "await":
      return awaitDeliveries(command.deliveries)
    case "take":
      if (problem !== undefined) throw new Error(problem)
      return arrivals.record()
  }
}

serve(carryOut)
