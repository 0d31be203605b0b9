/**
 * Has requests answered by the process that serves their account, wherever that is (semantics 9.50).
 *
 * - A request goes where `Placement` says. Whoever is asked there and has not got the account says so, and the place is
 *   looked up again. While an account moves, or its process has died, its requests wait.
 * - An answer that is lost on the way, or breaks off, is asked for again, at the account's new place perhaps: a GET
 *   reads again, and a POST is done once by its idempotency key. A DELETE that may have been done is not repeated; its
 *   client is told what a client is told whose answer the storage has lost.
 * - A place that hangs is not waited for once the account has another one.
 * - A request is sent again once after a process has fallen silent with it. It may be the request that has killed or
 *   hung the process: it does not get at a third one.
 * - All of this takes as long as the request may wait, and no longer than some seconds before something is under way.
 *   Then it is unavailable, which is all that a client ever sees of a move.
 */
import type { Scope } from "effect"
import { Context, Effect, Exit, Layer } from "effect"
import type { AccountId } from "../../engine/log/Document.ts"
import { Unavailable } from "../../engine/Accounts.ts"
import type { Place } from "../../engine/process/Placement.ts"
import { Placement } from "../../engine/process/Placement.ts"
import type { Course, Kind } from "./SignedRequest.ts"
import { ACCOUNT, ANSWER, CONNECTION, linesOf, newCourse } from "./SignedRequest.ts"
import type { CannotListen, Handlers } from "./Listener.ts"
import * as Listener from "./Listener.ts"
import type { Headers, Reply, Sink } from "./Connections.ts"
import { Connections } from "./Connections.ts"
import { makeWarning } from "./RunnerTls.ts"

/** Requests of one account that may be under way at a time: others of the same process shall have room beside them. */
const OWN_MAX = 1024
/** A request waits so long for a process that takes it, in milliseconds. */
const SEEK_MILLIS_MAX = 12_000
/** Between two attempts at the same place: from, and to. */
const PAUSE_MILLIS_MIN = 20
const PAUSE_MILLIS_MAX = 500
/** Whether places are still those that were asked is looked at this often. */
const LOOK_MILLIS = 500
/** A process that was asked for an account waits so long for it to come. */
const ARRIVAL_MILLIS_MAX = 1000
const CALL_MILLIS_MAX = 15_000

/** Processes that have fallen silent with the same request in their hands. It is sent again after the first one. */
const SILENT_MAX = 2

/** A client's request to forward. */
export interface Outgoing {
  readonly account: AccountId
  readonly kind: Kind
  readonly method: string
  readonly url: string
  readonly rawHeaders: ReadonlyArray<string>
  readonly remoteAddress: string | undefined
  readonly body: Buffer
  /** True if it may be sent again after it was perhaps carried out. */
  readonly mayRepeat: boolean
  readonly course: Course
  /** The answer has to begin within so long, in milliseconds, where nobody else has an eye on that. */
  readonly millisMax?: number
  /** Takes an answer that is too long to wait for its end. */
  readonly onLong?: (head: Omit<Reply, "body">) => Sink
}

export const HERE = "here"

export interface ForwarderShape {
  /** Where other processes reach this one; null if there are none. */
  readonly url: string | null
  /** Tells whether the account is served here. */
  readonly isHere: (account: AccountId) => boolean
  /** Has a request answered where its account is, or says that it is here by now. */
  readonly forward: (outgoing: Outgoing) => Effect.Effect<Reply | typeof HERE, Unavailable>
  /** For what was forwarded here: whether the account is here, or comes before long. */
  readonly arrives: (account: AccountId) => Effect.Effect<boolean>
  /** Asks whoever serves the account, or the process at that address, for something that is no client's request. */
  readonly call: (
    to: { readonly account: AccountId } | { readonly url: string },
    call: { readonly path: string; readonly body: unknown; readonly mayRepeat: boolean }
  ) => Effect.Effect<Reply | typeof HERE, Unavailable>
  /** Has what other processes forward answered by these, as long as the scope lives. */
  readonly serve: (handlers: Handlers) => Effect.Effect<void, never, Scope.Scope>
}

/** Everything is here, unless there are other processes. */
const alone: ForwarderShape = {
  url: null,
  isHere: () => true,
  forward: () => Effect.succeed(HERE),
  arrives: () => Effect.succeed(true),
  call: () => Effect.succeed(HERE),
  serve: () => Effect.void
}

export const Forwarder: Context.Reference<ForwarderShape> = Context.Reference("till/http/Forwarder", {
  defaultValue: () => alone
})

/** The ways to the other processes. */
export type Links = Pick<Connections, "send" | "forget" | "close">

/** What passages have in common. */
interface Ways {
  readonly seekMillisMax: number
  readonly links: Links
  readonly placement: Placement["Service"]
  readonly passages: Set<Passage>
  readonly ofAccounts: Map<AccountId, number>
  /** Calls a function with what an effect comes to; gives what ends the wait. */
  readonly wait: <A>(effect: Effect.Effect<A>, then: (exit: Exit.Exit<A>) => void) => () => void
}

type Outcome = Exit.Exit<Reply | typeof HERE, Unavailable>

const here: Outcome = Exit.succeed(HERE)
const unavailable = (reason: string): Outcome => Exit.fail(new Unavailable({ reason }))

/** The way of one request to its answer. */
class Passage {
  readonly #ways: Ways
  readonly #outgoing: Outgoing
  readonly #done: (outcome: Outcome) => void
  readonly #since = performance.now()
  #account: AccountId
  /** Gives up what it waits for. */
  #giveUp: (() => void) | undefined
  /** Where it was sent to, while its answer is waited for. */
  #url: string | undefined
  #pauseMillis = 0
  #hasMoved = false
  #hasBegun = false
  #isOver = false

  constructor(ways: Ways, outgoing: Outgoing, done: (outcome: Outcome) => void) {
    this.#ways = ways
    this.#outgoing = outgoing
    this.#account = outgoing.account
    this.#done = done
  }

  begin(): void {
    const { ofAccounts, passages } = this.#ways
    const { account } = this.#outgoing
    const others = ofAccounts.get(account) ?? 0
    if (others >= OWN_MAX) return this.#done(unavailable("Too many requests of the account are forwarded."))
    ofAccounts.set(account, others + 1)
    passages.add(this)
    this.#seek()
  }

  /** Nobody waits for it any more. */
  abandon(): void {
    this.#end(undefined)
  }

  /** Is looked after now and then, while it waits. */
  look(): void {
    const { mayRepeat, millisMax = Infinity } = this.#outgoing
    if (!this.#hasBegun && performance.now() - this.#since > millisMax) {
      this.#giveUp?.()
      return this.#end(unavailable("The process of the account does not answer in time."))
    }
    if (this.#url === undefined || !mayRepeat) return
    const place = this.#ways.placement.locate(this.#account)
    const hasMoved = Exit.isExit(place) && Exit.isSuccess(place) && !isAt(place.value as Place, this.#url)
    // An answer may still be on its way from where the account has been.
    if (hasMoved && this.#hasMoved) {
      this.#giveUp?.()
      if (this.#mayTryAgain()) this.#seek()
    } else this.#hasMoved = hasMoved
  }

  /** Counts that a process has fallen silent with the request. Ends the request if it was not the first one. */
  #mayTryAgain(): boolean {
    const { course, mayRepeat } = this.#outgoing
    const mayTryAgain = mayRepeat && ++course.silent < SILENT_MAX
    if (!mayTryAgain) this.#end(unavailable("The answer of the account's process was lost."))
    return mayTryAgain
  }

  #seek(): void {
    this.#url = undefined
    this.#hasMoved = false
    const place = this.#ways.placement.locate(this.#account)
    if (Exit.isExit(place)) return this.#goTo(place as Exit.Exit<Place | undefined>)
    this.#giveUp = this.#ways.wait(place, (exit) => this.#goTo(exit))
  }

  #goTo(found: Exit.Exit<Place | undefined>): void {
    if (this.#isOver) return
    const place = Exit.isSuccess(found) ? found.value : undefined
    if (place === undefined) return this.#end(unavailable("No process serves the account."))
    if (place === "here") return this.#end(here)
    this.#send(place.url)
  }

  #send(url: string): void {
    const { links } = this.#ways
    const { body, kind, method, onLong, rawHeaders, remoteAddress = "" } = this.#outgoing
    const lines = linesOf(rawHeaders, { kind, remoteAddress })
    this.#url = url
    const sent = { method, url: this.#outgoing.url, lines, body }
    const giveUp = links.send(url, sent, {
      onReply: (reply) => this.#receive(url, reply),
      onLong: onLong && ((head) => this.#passOn(onLong, head)),
      onLost: (wasSent) => {
        links.forget(url)
        if (!wasSent) return this.#again()
        // Other connections to a process that has died are found to be closed meanwhile.
        this.#pauseMillis ||= PAUSE_MILLIS_MIN
        if (this.#mayTryAgain()) this.#again()
      }
    })
    if (giveUp === undefined) this.#end(unavailable("Too many requests are forwarded."))
    else if (!this.#isOver && this.#url === url) this.#giveUp = giveUp
  }

  #receive(url: string, reply: Reply): void {
    switch (reply.headers[ANSWER]) {
      case "carried":
        return this.#end(Exit.succeed(reply))
      case "elsewhere": {
        // It is another account than was thought, or this one is not there any more.
        const named = reply.headers[ACCOUNT]
        if (typeof named === "string" && named !== "" && named !== this.#account) this.#account = named
        else this.#ways.placement.notAt(this.#account, url)
        return this.#again()
      }
      default:
        // It does not understand this process.
        return this.#again()
    }
  }

  /** A long answer that is none of the account's process is not passed on. */
  #passOn(onLong: (head: Omit<Reply, "body">) => Sink, head: Omit<Reply, "body">): Sink {
    if (head.headers[ANSWER] === "carried") {
      // What has begun cannot be asked for again.
      this.#url = undefined
      this.#hasBegun = true
      const sink = onLong(head)
      const ending = (end: () => void) => () => {
        end()
        this.#end(Exit.succeed({ ...head, body: Buffer.alloc(0) }))
      }
      return { write: sink.write, end: ending(sink.end), fail: ending(sink.fail) }
    }
    const again = () => this.#again()
    return { write: () => true, end: again, fail: again }
  }

  #again(): void {
    if (this.#isOver) return
    if (performance.now() - this.#since > this.#ways.seekMillisMax) {
      return this.#end(unavailable("The process of the account does not answer."))
    }
    this.#url = undefined
    const timer = setTimeout(() => this.#seek(), this.#pauseMillis)
    this.#pauseMillis = Math.min(PAUSE_MILLIS_MAX, Math.max(PAUSE_MILLIS_MIN, 2 * this.#pauseMillis))
    this.#giveUp = () => clearTimeout(timer)
  }

  #end(outcome: Outcome | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    const { ofAccounts, passages } = this.#ways
    const { account } = this.#outgoing
    passages.delete(this)
    const left = ofAccounts.get(account)! - 1
    if (left === 0) ofAccounts.delete(account)
    else ofAccounts.set(account, left)
    if (outcome === undefined) this.#giveUp?.()
    else this.#done(outcome)
  }
}

const isAt = (place: Place | undefined, url: string): boolean =>
  place !== undefined && place !== "here" && place.url === url

export interface Options extends Listener.Options {
  /** A request waits so long for a process that takes it, in milliseconds. */
  readonly seekMillisMax?: number
}

/** Forwards by the placement, and listens for what others forward, as long as the layer lives. */
export const layer = (options: Options): Layer.Layer<never, CannotListen, Placement> =>
  Layer.effect(
    Forwarder,
    Effect.gen(function* () {
      const listener = yield* Listener.listen(options)
      const warn = yield* makeWarning
      const links = new Connections(options.tls, (url, error) => warn(`${UNPROVEN} ${url}`, error))
      return yield* over(links, options, listener)
    })
  )

const UNPROVEN =
  "Nothing was sent to another process of the service, because it did not prove that it has the installation's " +
  "secret: another program listens at its address, or its TILL_SECRET_FILE is another one. The address is"

/** Forwards by the placement, over these ways, as long as the scope lives. */
export const over = Effect.fnUntraced(function* (
  links: Links,
  { seekMillisMax = SEEK_MILLIS_MAX }: Pick<Options, "seekMillisMax">,
  { serve, url }: Listener.Listener
): Effect.fn.Return<ForwarderShape, never, Placement | Scope.Scope> {
  yield* Effect.addFinalizer(() => Effect.promise(() => links.close()))
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const ways: Ways = {
    seekMillisMax,
    links,
    placement: yield* Placement,
    passages: new Set(),
    ofAccounts: new Map(),
    wait: (effect, then) => {
      const fiber = fork(effect)
      fiber.addObserver(then)
      return () => fiber.interruptUnsafe()
    }
  }
  const look = () => ways.passages.forEach((passage) => passage.look())
  yield* Effect.acquireRelease(
    Effect.sync(() => setInterval(look, LOOK_MILLIS).unref()),
    (timer) => Effect.sync(() => clearInterval(timer))
  )
  return make(ways, url, serve)
})

const make = (ways: Ways, url: string, serve: ForwarderShape["serve"]): ForwarderShape => {
  const { placement } = ways
  const forward: ForwarderShape["forward"] = (outgoing) =>
    Effect.callback((resume) => {
      const passage = new Passage(ways, outgoing, resume)
      passage.begin()
      return Effect.sync(() => passage.abandon())
    })
  return {
    url,
    isHere: placement.isHere,
    forward,
    arrives: (account) =>
      Effect.map(
        Effect.timeoutOption(placement.locate(account), ARRIVAL_MILLIS_MAX),
        (place) => place._tag === "Some" && place.value === "here"
      ),
    call: (to, call) => {
      const outgoing = callOf("account" in to ? to.account : "", call)
      const called = "account" in to ? forward(outgoing) : askAt(ways, to.url, outgoing)
      return Effect.timeoutOrElse(called, {
        duration: CALL_MILLIS_MAX,
        orElse: () => Effect.fail(new Unavailable({ reason: "The process of the account does not answer." }))
      })
    },
    serve
  }
}

const callOf = (account: AccountId, { body, mayRepeat, path }: Parameters<ForwarderShape["call"]>[1]): Outgoing => ({
  account,
  mayRepeat,
  kind: "call",
  method: "POST",
  url: path,
  rawHeaders: [],
  remoteAddress: undefined,
  body: Buffer.from(JSON.stringify(body)),
  course: newCourse()
})

/** Asks one process, whatever it serves, and once. */
const askAt = (ways: Ways, url: string, outgoing: Outgoing): Effect.Effect<Reply, Unavailable> =>
  Effect.callback((resume) => {
    const { body, kind, method, rawHeaders } = outgoing
    const lines = linesOf(rawHeaders, { kind, remoteAddress: "" })
    const fail = (reason: string, isElsewhere = false) => resume(Effect.fail(new Unavailable({ reason, isElsewhere })))
    const giveUp = ways.links.send(
      url,
      { method, url: outgoing.url, lines, body },
      {
        onReply: (reply) => {
          const answer = reply.headers[ANSWER]
          if (answer === "carried") resume(Effect.succeed(reply))
          else fail("The process does not do it.", answer === "elsewhere")
        },
        // What was not sent was not done either.
        onLost: (wasSent) => fail("The process does not answer.", !wasSent)
      }
    )
    if (giveUp === undefined) fail("Too many requests are forwarded.")
    return Effect.sync(() => giveUp?.())
  })

/** Names of headers that are those of the connection by which an answer came, or are written with every answer. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  ANSWER,
  "connection",
  "date",
  "keep-alive",
  "transfer-encoding",
  "x-content-type-options"
])
/** Gives the headers that whoever has been asked would have given the client. */
export const headersFor = ({ headers }: Pick<Reply, "headers">): Record<string, string | Array<string>> => {
  const shown: Record<string, string | Array<string>> = {}
  for (const name in headers) {
    const value = headers[name] as string | Array<string>
    if (name === CONNECTION) shown["connection"] = value
    else if (!OF_CONNECTION.has(name)) shown[name] = value
  }
  return shown
}

export { newCourse }
export type { Course, Headers, Reply, Sink }
