/**
 * Forwards requests to the process that serves their account (semantics runners.forwarding).
 *
 * - `Placement` names the process. A process that does not serve the account answers `elsewhere`, and the placement is
 *   looked up again. While an account moves, or its process has died, its requests wait.
 * - A lost or broken-off answer is requested again, at the account's new process if there is one: a repeated GET reads
 *   again, and a repeated POST has no further effect because of its idempotency key. A DELETE that may have run is not
 *   repeated; the client gets the same error as after a lost storage answer.
 * - A hanging process is abandoned once the account has another one.
 * - After a process has fallen silent with a request, the request is sent once more. If it has killed or hung both
 *   processes, it never reaches a third one.
 * - An answer that waits for a payment processor may come later, as a call from the account's process: no connection is
 *   held for it. If it does not come in time, the request is sent again.
 * - The time for all of this is bounded by the request's own limit, and by a limit of some seconds until a process
 *   accepts it. Then the request fails as unavailable, which is the only visible effect of a move.
 */
import { Context, Effect, Exit, Layer, type Scope, Semaphore } from "effect"
import type { AccountId } from "../../engine/log/Document.ts"
import { Unavailable } from "../../engine/Accounts.ts"
import * as Loop from "../../engine/process/Loop.ts"
import * as Metrics from "../../engine/process/Metrics.ts"
import { type Place, Placement } from "../../engine/process/Placement.ts"
import type { JsonResponse } from "../../payments/administration/AdministrationWire.ts"
import { ACCOUNT, ANSWER, CONNECTION, type Course, type Kind, linesOf, newCourse } from "./SignedRequest.ts"
import type { CannotListen, Handlers } from "./Listener.ts"
import * as Listener from "./Listener.ts"
import { Connections, type Headers, type RunnerResponse, type Sink } from "./Connections.ts"
import { makeWarning } from "./RunnerTls.ts"

/** The most forwarded requests of one account, so that other accounts of the same process have room. */
const OWN_MAX = 1024
/** The longest wait for a process that accepts a request, in milliseconds. */
const SEEK_MILLIS_MAX = 12_000
/** The pause between attempts, which doubles from the first to the second value, in milliseconds. */
const PAUSE_MILLIS_MIN = 20
const PAUSE_MILLIS_MAX = 500
/** The interval of checks whether an account has moved, in milliseconds. */
const CHECK_MILLIS = 500
/** The longest wait of a forwarded request for an account that is moving here, in milliseconds. */
const ARRIVAL_MILLIS_MAX = 1000
const CALL_MILLIS_MAX = 15_000
/** The longest wait for an answer that was to come later, in milliseconds. Then the request is sent again. */
const LATER_MILLIS_MAX = 10_000
/** Calls that bring such answers, at once: many may come at the same time, and each connection takes a handshake. */
const LATER_CALLS_MAX = 16
const LATER_RETRIES = 2
/** Path of these calls. */
const LATER = "/answers"

/** A request ends with an error after this many processes have fallen silent with it. */
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
  /** True if the request may be sent again although it may have run. */
  readonly mayRepeat: boolean
  readonly course: Course
  /** The longest wait for the start of the answer, in milliseconds; set if no other limit applies. */
  readonly millisMax?: number
  /** Receives a long answer in chunks. */
  readonly onLong?: (head: Omit<RunnerResponse, "body">) => Sink
}

export const HERE = "here"

export interface ForwarderShape {
  /** Address of this process for the others; null if there are none. */
  readonly url: string | null
  /** True if the account is served here. */
  readonly isHere: (account: AccountId) => boolean
  /** Forwards a request and returns the answer, or `HERE` if the account has moved to this process. */
  readonly forward: (outgoing: Outgoing) => Effect.Effect<Forwarded, Unavailable>
  /** Waits, for a forwarded request, until the account is served here. False if it is not within a limit. */
  readonly arrives: (account: AccountId) => Effect.Effect<boolean>
  /**
   * Calls the process that serves the account, or the one at that address, with a message that is no client's request.
   */
  readonly call: (
    to: { readonly account: AccountId } | { readonly url: string },
    call: { readonly path: string; readonly body: unknown; readonly mayRepeat: boolean }
  ) => Effect.Effect<RunnerResponse | typeof HERE, Unavailable>
  /** Handles other processes' requests as long as the scope lives. */
  readonly serve: (handlers: Handlers) => Effect.Effect<void, never, Scope.Scope>
}

/** Used if there are no other processes: all accounts are here. */
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

/** The connections to the other processes. */
export type Senders = Pick<Connections, "send" | "forget" | "close">

/** State that all forwarded requests share. */
interface Shared {
  readonly seekMillisMax: number
  readonly laterMillisMax: number
  readonly senders: Senders
  readonly placement: Placement["Service"]
  readonly running: Set<Forwarding>
  readonly ofAccounts: Map<AccountId, number>
  /** Address of this process. */
  readonly url: string
  /** Requests whose answers may come later, by the ids that they have here. */
  readonly later: Map<string, (reply: RunnerResponse) => void>
  sent: number
}

type Forwarded = RunnerResponse | typeof HERE

const here = Exit.succeed<Forwarded>(HERE)
const unavailable = (reason: string): Exit.Exit<never, Unavailable> => Exit.fail(new Unavailable({ reason }))

/** Result of one attempt: an answer, or the reason to look the process up again. */
type Attempted =
  | { readonly _tag: "Answered"; readonly reply: RunnerResponse }
  /** The process does not serve the account, does not understand the request, or never received it. */
  | { readonly _tag: "Elsewhere" }
  /** The process fell silent with the request; `hasMoved` is true if the account has another process. */
  | { readonly _tag: "Silent"; readonly hasMoved: boolean }

const ELSEWHERE = Exit.succeed<Attempted>({ _tag: "Elsewhere" })
const LOST = Exit.succeed<Attempted>({ _tag: "Silent", hasMoved: false })
const MOVED = Exit.succeed<Attempted>({ _tag: "Silent", hasMoved: true })
const answered = (reply: RunnerResponse): Exit.Exit<Attempted> => Exit.succeed({ _tag: "Answered", reply })

/** One request, from the first attempt to its answer. */
class Forwarding {
  readonly #shared: Shared
  readonly #outgoing: Outgoing
  #since = performance.now()
  /** Names the request if its answer may come later. */
  readonly #id: string | undefined
  #account: AccountId
  /** The process that the request was sent to, until its answer arrives. */
  #url: string | undefined
  /** Ends the wait for that process. */
  #leave = () => {}
  #pauseMillis = 0
  #hasMoved = false
  #hasBegun = false

  constructor(shared: Shared, outgoing: Outgoing) {
    this.#shared = shared
    this.#outgoing = outgoing
    this.#account = outgoing.account
    const { kind, method, onLong } = outgoing
    // A page's answer may be long, and is passed on as it comes.
    this.#id = method === "POST" && kind === "request" && onLong === undefined ? `${++shared.sent}` : undefined
  }

  /** Returns the answer. An interruption abandons the request. */
  answer(): Effect.Effect<Forwarded, Unavailable> {
    const { account, millisMax } = this.#outgoing
    const { ofAccounts, running } = this.#shared
    const others = ofAccounts.get(account) ?? 0
    if (others >= OWN_MAX) return unavailable("Too many requests of the account are forwarded.")
    ofAccounts.set(account, others + 1)
    running.add(this)
    const answer = this.#seek()
    return millisMax === undefined ? answer : Effect.raceFirst(answer, this.#timeout(millisMax))
  }

  /** To be called when the request has ended. */
  end(): void {
    const { ofAccounts, running } = this.#shared
    if (!running.delete(this)) return
    const { account } = this.#outgoing
    const left = ofAccounts.get(account)! - 1
    if (left === 0) ofAccounts.delete(account)
    else ofAccounts.set(account, left)
  }

  /** Fails after the time unless the answer has begun. */
  #timeout(millis: number): Effect.Effect<never, Unavailable> {
    return Effect.andThen(
      Effect.sleep(millis),
      Effect.suspend(() =>
        this.#hasBegun ? Effect.never : unavailable("The process of the account does not answer in time.")
      )
    )
  }

  /** Looks the process up, and sends the request to it until it is answered or may not be sent again. */
  #seek(): Effect.Effect<Forwarded, Unavailable> {
    return Effect.flatMap(this.#shared.placement.locate(this.#account), (place) => {
      if (place === undefined) return unavailable("No process serves the account.")
      if (place === "here") return here
      return Effect.flatMap(this.#attempt(place.url), (attempted) => this.#next(attempted))
    })
  }

  #next(attempted: Attempted): Effect.Effect<Forwarded, Unavailable> {
    this.#url = undefined
    if (attempted._tag === "Answered") return Exit.succeed(attempted.reply)
    if (attempted._tag === "Silent") {
      if (!this.#mayTryAgain()) return unavailable("The answer of the account's process was lost.")
      if (attempted.hasMoved) return this.#seek()
      // Pauses, so that other connections to a dead process are found to be closed first.
      this.#pauseMillis ||= PAUSE_MILLIS_MIN
    }
    return Effect.flatMap(this.#pause(), () => this.#seek())
  }

  #pause(): Effect.Effect<void, Unavailable> {
    if (performance.now() - this.#since > this.#shared.seekMillisMax) {
      return unavailable("The process of the account does not answer.")
    }
    const pauseMillis = this.#pauseMillis
    this.#pauseMillis = Math.min(PAUSE_MILLIS_MAX, Math.max(PAUSE_MILLIS_MIN, 2 * pauseMillis))
    return Effect.sleep(pauseMillis)
  }

  /** Called periodically: leaves a process that has not answered once the account has another one. */
  check(): void {
    if (this.#url === undefined || !this.#outgoing.mayRepeat) return
    const place = this.#shared.placement.locate(this.#account)
    const hasMoved = Exit.isExit(place) && Exit.isSuccess(place) && !isAt(place.value as Place, this.#url)
    // Two checks in a row, because an answer may still be on its way from the account's previous process.
    if (hasMoved && this.#hasMoved) this.#leave()
    else this.#hasMoved = hasMoved
  }

  /** Counts a process that fell silent with the request; false if the request may not be sent again. */
  #mayTryAgain(): boolean {
    const { course, mayRepeat } = this.#outgoing
    return mayRepeat && ++course.silent < SILENT_MAX
  }

  /** Sends the request to a process. */
  #attempt(url: string): Effect.Effect<Attempted, Unavailable> {
    return Effect.callback((resume) => {
      const { later, laterMillisMax, senders, url: own } = this.#shared
      const { body, kind, method, onLong, rawHeaders, remoteAddress = "" } = this.#outgoing
      const id = this.#id
      const lines = linesOf(rawHeaders, {
        kind,
        remoteAddress,
        sender: id === undefined ? undefined : { id, url: own }
      })
      this.#url = url
      this.#hasMoved = false
      let timer: NodeJS.Timeout | undefined
      const forget = () => {
        clearTimeout(timer)
        if (id !== undefined) later.delete(id)
      }
      const end = (attempted: Exit.Exit<Attempted, Unavailable>) => {
        forget()
        resume(attempted)
      }
      if (id !== undefined) later.set(id, (reply) => end(answered(reply)))
      const sent = { method, url: this.#outgoing.url, lines, body }
      const giveUp = senders.send(url, sent, {
        onReply: (reply) => {
          if (reply.headers[ANSWER] !== "later") return end(this.#attemptedBy(url, reply))
          // The answer itself may have come before.
          if (id === undefined || !later.has(id)) return
          this.#since = performance.now() + laterMillisMax
          this.#leave = () => end(ELSEWHERE)
          timer = setTimeout(this.#leave, laterMillisMax)
        },
        onLong: onLong && ((head) => this.#passOn(onLong, head, end)),
        onLost: (wasSent) => {
          senders.forget(url)
          end(wasSent ? LOST : ELSEWHERE)
        }
      })
      if (giveUp === undefined) return end(unavailable("Too many requests are forwarded."))
      this.#leave = () => {
        giveUp()
        end(MOVED)
      }
      return Effect.sync(() => {
        forget()
        giveUp()
      })
    })
  }

  #attemptedBy(url: string, reply: RunnerResponse): Exit.Exit<Attempted> {
    switch (reply.headers[ANSWER]) {
      case "carried":
        return answered(reply)
      case "elsewhere": {
        // Either the request belongs to another account, or the process no longer serves the account.
        const named = reply.headers[ACCOUNT]
        if (typeof named === "string" && named !== "" && named !== this.#account) this.#account = named
        else this.#shared.placement.forgetPlace(this.#account, url)
        return ELSEWHERE
      }
      default:
        // The process does not understand the request.
        return ELSEWHERE
    }
  }

  /** Passes a long answer on if it comes from the account's process; drops any other. */
  #passOn(
    onLong: (head: Omit<RunnerResponse, "body">) => Sink,
    head: Omit<RunnerResponse, "body">,
    resume: (attempted: Exit.Exit<Attempted>) => void
  ): Sink {
    if (head.headers[ANSWER] === "carried") {
      // An answer that has begun cannot be requested again.
      this.#url = undefined
      this.#hasBegun = true
      const sink = onLong(head)
      const ending = (end: () => void) => () => {
        end()
        resume(answered({ ...head, body: Buffer.alloc(0) }))
      }
      return { write: sink.write, end: ending(sink.end), fail: ending(sink.fail) }
    }
    const again = () => resume(ELSEWHERE)
    return { write: () => true, end: again, fail: again }
  }
}

const isAt = (place: Place | undefined, url: string): boolean =>
  place !== undefined && place !== "here" && place.url === url

export interface Options extends Listener.Options {
  /** The longest wait for a process that accepts a request, in milliseconds. */
  readonly seekMillisMax?: number
  /** The longest wait for an answer that was to come later, in milliseconds. */
  readonly laterMillisMax?: number
}

/** Forwards by the placement, and accepts forwarded requests, as long as the layer lives. */
export const layer = (options: Options): Layer.Layer<never, CannotListen, Placement> =>
  Layer.effect(
    Forwarder,
    Effect.gen(function* () {
      const listener = yield* Listener.listen(options)
      const warn = yield* makeWarning("unproven process")
      const senders = new Connections(options.tls, (url, error) => warn(`${UNPROVEN} ${url}`, error))
      return yield* makeOver(senders, options, listener)
    })
  )

const UNPROVEN =
  "Nothing was sent to another process of the service, because it did not prove that it has the installation's " +
  "secret: another program listens at its address, or its TILL_SECRET_FILE is a different one. The address is"

/** Makes a forwarder over the given connections, as long as the scope lives. */
export const makeOver = Effect.fnUntraced(function* (
  senders: Senders,
  {
    laterMillisMax = LATER_MILLIS_MAX,
    seekMillisMax = SEEK_MILLIS_MAX
  }: Pick<Options, "laterMillisMax" | "seekMillisMax">,
  { serve, url }: Listener.Listener
): Effect.fn.Return<ForwarderShape, never, Placement | Scope.Scope> {
  yield* Effect.addFinalizer(() => Effect.promise(() => senders.close()))
  const shared: Shared = {
    seekMillisMax,
    laterMillisMax,
    senders,
    placement: yield* Placement,
    running: new Set(),
    ofAccounts: new Map(),
    url,
    later: new Map(),
    sent: 0
  }
  const check = Effect.sync(() => shared.running.forEach((forwarding) => forwarding.check()))
  yield* Effect.forkScoped(Loop.forever("checks of forwarded requests", Effect.delay(check, CHECK_MILLIS)))
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const sending = Semaphore.makeUnsafe(LATER_CALLS_MAX)
  const sendLater: Listener.SendLater = ({ id, url }, answer) => {
    const call = callOf("", { path: LATER, body: { id, ...answer }, mayRepeat: true })
    const called = Effect.retry(Effect.timeout(callAt(shared, url, call), CALL_MILLIS_MAX), { times: LATER_RETRIES })
    runFork(Effect.ignore(sending.withPermit(called)))
  }
  const serveAll: ForwarderShape["serve"] = (handlers) =>
    serve(
      { ...handlers, call: (path, body) => (path === LATER ? arrive(shared, body) : handlers.call(path, body)) },
      sendLater
    )
  return make(shared, serveAll, yield* Metrics.counter(FORWARDED))
})

const FORWARDED = {
  name: "till_requests_forwarded_total",
  description: "Clients' requests that were sent to another process, which serves their account."
}

/** Passes an answer on that another process sends later. */
const arrive = ({ later }: Shared, sent: unknown): Effect.Effect<JsonResponse> =>
  Effect.sync(() => {
    const { body, headers, id, status } = sent as Listener.LaterAnswer & { readonly id: string }
    later.get(id)?.({ status, headers, body: Buffer.from(body) })
    return { status: 200, body: {} }
  })

const make = (shared: Shared, serve: ForwarderShape["serve"], countForwarded: () => void): ForwarderShape => {
  const { placement, url } = shared
  const forward: ForwarderShape["forward"] = (outgoing) =>
    Effect.suspend(() => {
      if (outgoing.kind !== "call") countForwarded()
      const forwarding = new Forwarding(shared, outgoing)
      return Effect.onExit(
        Effect.suspend(() => forwarding.answer()),
        () => Effect.sync(() => forwarding.end())
      )
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
      const called = "account" in to ? forward(outgoing) : callAt(shared, to.url, outgoing)
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

/** Calls one process at its address, once. */
const callAt = (shared: Shared, url: string, outgoing: Outgoing): Effect.Effect<RunnerResponse, Unavailable> =>
  Effect.callback((resume) => {
    const { body, kind, method, rawHeaders } = outgoing
    const lines = linesOf(rawHeaders, { kind, remoteAddress: "" })
    const fail = (reason: string, isElsewhere = false) => resume(Effect.fail(new Unavailable({ reason, isElsewhere })))
    const giveUp = shared.senders.send(
      url,
      { method, url: outgoing.url, lines, body },
      {
        onReply: (reply) => {
          const answer = reply.headers[ANSWER]
          if (answer === "carried") resume(Effect.succeed(reply))
          else fail("The process does not do it.", answer === "elsewhere")
        },
        // A call that was not sent was not run.
        onLost: (wasSent) => fail("The process does not answer.", !wasSent)
      }
    )
    if (giveUp === undefined) fail("Too many requests are forwarded.")
    return Effect.sync(() => giveUp?.())
  })

/** Headers of the connection between the processes, and headers that every answer gets when it is written. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  ANSWER,
  "connection",
  "date",
  "keep-alive",
  "transfer-encoding",
  "x-content-type-options"
])
/** Returns the headers that the account's process would have sent to the client. */
export const headersFor = ({ headers }: Pick<RunnerResponse, "headers">): Record<string, string | Array<string>> => {
  const clientHeaders: Record<string, string | Array<string>> = {}
  for (const name in headers) {
    const value = headers[name] as string | Array<string>
    if (name === CONNECTION) clientHeaders["connection"] = value
    else if (!OF_CONNECTION.has(name)) clientHeaders[name] = value
  }
  return clientHeaders
}

export { newCourse }
export type { Course, Headers, RunnerResponse, Sink }
