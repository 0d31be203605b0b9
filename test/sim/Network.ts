/**
 * The network between runners, in memory. Forwarded requests and their responses arrive late or never, as over TCP
 * connections; nothing arrives twice.
 *
 * A stranger may listen at the address of a dead runner. Each connection begins with a hello of random bytes, and
 * continues only if the other side returns their hash under the installation's key, which a stranger lacks.
 */
import { Effect } from "effect"
import { createHmac } from "node:crypto"
import type { IncomingHttpHeaders } from "node:http"
import { ACCOUNT, ANSWER, clientLinesOf } from "../../src/http/forward/SignedRequest.ts"
import type { Connections, Receiver, RunnerResponse, Sent } from "../../src/http/forward/Connections.ts"
import type { ForwardedIncoming } from "../../src/http/forward/Listener.ts"
import type { Random } from "../support/Random.ts"

/** A runner as the network reaches it. */
interface Peer {
  readonly name: string
  /** Waits while the runner is frozen. */
  readonly gate: Effect.Effect<void>
  /** Waits while the runner is cut off. */
  readonly open: Effect.Effect<void>
  readonly killed: Effect.Effect<void>
  readonly isDead: boolean
  readonly receive: (request: ForwardedIncoming) => void
}

/** The parts of a simulation that the network uses. */
interface Surroundings {
  readonly random: Random
  readonly runners: Iterable<Peer>
  readonly strangers: ReadonlyMap<string, Stranger>
  readonly mistake: string | undefined
  readonly fork: (effect: Effect.Effect<void>) => unknown
}

/** The longest one-way delay, in milliseconds. */
const HOP_MILLIS_MAX = 8
/** The connect timeout, in milliseconds. */
const CONNECT_MILLIS = 2000

const INSTALLATION_KEY = "the installation's"
const HELLO_BYTES = 32

const helloTo = (random: Random): Buffer => Buffer.from(Array.from({ length: HELLO_BYTES }, () => random.below(256)))
const proofOf = (hello: Buffer, key: string): Buffer => createHmac("sha256", key).update(hello).digest()

/** The behaviours of a stranger on a connection. */
const MANNERS = ["sends nothing", "sends junk", "returns the hello", "has another key"] as const

/** The body of a stranger's response to a request. */
export const FORGED = '{"id":"forged"}'

/** A stranger at the address of a dead runner. Records everything it receives. */
export class Stranger {
  hellos = 0
  /** Received texts other than hellos. */
  readonly learned: Array<string> = []
  readonly #manner: (typeof MANNERS)[number]
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
    this.#manner = random.pick(MANNERS)
  }

  /** Returns the stranger's reply to a hello; undefined if it sends none. */
  greet(hello: Buffer): Buffer | undefined {
    this.hellos++
    switch (this.#manner) {
      case "sends nothing":
        return undefined
      case "sends junk":
        return helloTo(this.#random)
      case "returns the hello":
        return hello
      case "has another key":
        return proofOf(hello, "its own")
    }
  }

  /** Returns the stranger's response to a request, in the form of a runner's. */
  answer({ body, lines, method, url }: Sent): RunnerResponse {
    this.learned.push(`${method} ${url} ${lines.join(" ")} ${body}`)
    return { status: 200, headers: { [ANSWER]: "carried" }, body: Buffer.from(FORGED) }
  }
}

/** A forwarded request, at its receiver. */
class Arrived implements ForwardedIncoming {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: ReadonlyArray<string>
  readonly arrivedAt = 0
  readonly isWhole = true
  readonly remoteAddress = "127.0.0.1"
  readonly isGone = false
  readonly readBody: ForwardedIncoming["readBody"]
  readonly #reply: (reply: RunnerResponse) => void

  constructor({ body, lines, method, url }: Sent, reply: (reply: RunnerResponse) => void) {
    this.method = method
    this.url = url
    this.rawHeaders = clientLinesOf(lines)
    this.headers = Object.fromEntries(
      this.rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [[name.toLowerCase(), this.rawHeaders[i + 1]!]] : []))
    )
    this.readBody = () => Effect.succeed(body)
    this.#reply = reply
  }

  isRepeated(): boolean {
    return false
  }

  countFor(): void {}

  onGone(): void {}

  answer(status: number, headers: Readonly<Record<string, string>>, text: string): void {
    this.#reply({ status, headers: { ...headers, [ANSWER]: "carried" }, body: Buffer.from(text) })
  }

  /** Keeps its connection: a runner has as many as it needs. */
  later(): void {}

  elsewhere(account: string): void {
    this.#reply({ status: 421, headers: { [ANSWER]: "elsewhere", [ACCOUNT]: account }, body: Buffer.alloc(0) })
  }
}

/** The connections of a runner to the others. */
export const linksOf = (world: Surroundings, from: () => Peer): Pick<Connections, "send" | "forget" | "close"> => {
  const hop = Effect.suspend(() => Effect.sleep(world.random.below(HOP_MILLIS_MAX)))

  /** Sends the request to a stranger only if it passes the proof, which it cannot. */
  const meet = (stranger: Stranger, sent: Sent, receiver: Receiver): Effect.Effect<void> =>
    Effect.gen(function* () {
      const hello = helloTo(world.random)
      const proof = stranger.greet(hello)
      if (proof === undefined) yield* Effect.sleep(CONNECT_MILLIS)
      else yield* hop
      yield* from().gate
      const isProved = proof?.equals(proofOf(hello, INSTALLATION_KEY)) === true
      if (!isProved && world.mistake !== "requires no proof") return receiver.onLost(false)
      const reply = stranger.answer(sent)
      yield* hop
      yield* from().gate
      return receiver.onReply(reply)
    })

  const exchange = (url: string, sent: Sent, receiver: Receiver): Effect.Effect<void> =>
    Effect.gen(function* () {
      yield* from().gate
      yield* hop
      const to = [...world.runners].find(({ name }) => name === url)
      const stranger = world.strangers.get(url)
      if (stranger !== undefined) return yield* meet(stranger, sent, receiver)
      if (to === undefined) return receiver.onLost(false)
      const connected = yield* Effect.timeoutOption(Effect.andThen(from().open, to.open), CONNECT_MILLIS)
      if (connected._tag === "None") return receiver.onLost(false)
      const arrive = Effect.promise(
        () => new Promise<RunnerResponse>((resolve) => to.receive(new Arrived(sent, resolve)))
      )
      const carried = Effect.andThen(to.gate, arrive)
      // Simulates a client that repeats a request by mistake.
      const done =
        world.mistake === "forwards a DELETE twice" && sent.method === "DELETE"
          ? Effect.andThen(carried, carried)
          : carried
      const answered = Effect.map(done, (reply): RunnerResponse | undefined => reply)
      const reply = yield* Effect.raceFirst(answered, Effect.as(to.killed, undefined))
      yield* Effect.andThen(to.gate, Effect.andThen(to.open, from().open))
      yield* Effect.andThen(hop, from().gate)
      return reply === undefined || to.isDead ? receiver.onLost(true) : receiver.onReply(reply)
    })

  return {
    send: (url, sent, receiver) => {
      let isOver = false
      const unless =
        <A extends ReadonlyArray<unknown>>(tell: (...parameters: A) => void) =>
        (...parameters: A) => {
          if (!isOver) tell(...parameters)
        }
      const heard = { onReply: unless(receiver.onReply), onLost: unless(receiver.onLost) }
      world.fork(exchange(url, sent, heard))
      return () => {
        isOver = true
      }
    },
    forget: () => {},
    close: async () => {}
  }
}
