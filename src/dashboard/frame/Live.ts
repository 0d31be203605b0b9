/**
 * Live updates. Each open page has a stream of server-sent events that names the kinds of documents that have changed
 * in its account (semantics dashboard.live). The page's script then fetches the page again and replaces its content. A
 * page is therefore rendered in one place, with and without a script, and a stream holds no data of the account.
 *
 * A stream ends within seconds of its session, and when the service stops. The number of streams is limited; a page
 * without a stream keeps the content that it was loaded with.
 */
import { Context, Duration, Effect, Latch, Layer, Option, Queue, RcMap, type Scope, Stream } from "effect"
import * as Sse from "effect/encoding/Sse"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { AccountId } from "../../engine/log/Document.ts"
import * as Loop from "../../engine/process/Loop.ts"
import { CommitFeed } from "../../engine/views/CommitFeed.ts"
import { RequestLog } from "../../engine/RequestLog.ts"
import { requireHere } from "../../html/Routing.ts"
import { noteAccount } from "../../http/RequestContext.ts"
import { accountOf, INSTALLATION } from "../../payments/shared/AccountIds.ts"
import { DASHBOARD_SESSION } from "../../payments/team/DashboardSessions.ts"
import { PERSON } from "../../payments/team/People.ts"
import { route, type Services } from "./Page.ts"
import { ReloadQueue } from "./ReloadQueue.ts"
import { visitorOf } from "./Visitors.ts"

/** The kind that stands for the request log, which has more of them than documents do. */
export const REQUEST = "request"

/** Open streams in this process. */
const STREAMS_MAX = 1000
/** Open streams of one person over all sessions: a few browsers with many tabs. */
export const PERSON_STREAMS_MAX = 40
/** Interval at which a quiet stream sends a comment and checks its session. Proxies close silent connections. */
const PULSE_MILLIS = 15_000
/** Delay before the browser reconnects a stream that has ended. */
const RETRY_MILLIS = 3000
/** Window in which changes are collected into one message. */
const TOGETHER_MILLIS = 250

const RETRY = Sse.encoder.write(new Sse.Retry({ duration: Duration.millis(RETRY_MILLIS), lastEventId: undefined }))
const PULSE = ": still here\n\n"

const eventOf = (event: "changed" | "ended", data: object): string =>
  Sse.encoder.write({ _tag: "Event", event, id: undefined, data: JSON.stringify(data) })

type Listener = (kinds: ReadonlySet<string>) => void

/** Collects the changes of an account for all of its open pages, many records into one message. */
const watchAccount = Effect.fnUntraced(function* (account: AccountId) {
  const pages = new Set<Listener>()
  const changed = new Set<string>()
  const hasNews = Latch.makeUnsafe(false)
  const note = (kinds: Iterable<string>) => {
    for (const kind of kinds) changed.add(kind)
    hasNews.openUnsafe()
  }
  const notify = Effect.gen(function* () {
    yield* hasNews.await
    yield* Effect.sleep(TOGETHER_MILLIS)
    hasNews.closeUnsafe()
    const kinds = new Set(changed)
    changed.clear()
    for (const page of pages) page(kinds)
  })
  yield* Effect.forkScoped(Loop.forever("news for open pages", notify))
  yield* CommitFeed.use((feed) => feed.watch(account, note))
  yield* (yield* RequestLog).watch(account, () => note([REQUEST]))
  return pages
})

/** Calls the listener with the kinds of changed documents until the scope closes. */
type Listen = (account: AccountId, listener: Listener) => Effect.Effect<void, never, Scope.Scope>

/** Open streams with the ids of their people. */
class OpenStreams {
  readonly #wakeUp = new Map<() => void, string>()
  readonly reloads = new ReloadQueue()
  readonly listen: Listen
  isClosing = false

  constructor(listen: Listen) {
    this.listen = listen
  }

  get size(): number {
    return this.#wakeUp.size
  }

  hasRoomFor(person: string): boolean {
    if (this.isClosing || this.#wakeUp.size >= STREAMS_MAX) return false
    return [...this.#wakeUp.values()].filter((other) => other === person).length < PERSON_STREAMS_MAX
  }

  readonly register = (person: string, wakeUp: () => void) =>
    Effect.acquireRelease(
      Effect.sync(() => this.#wakeUp.set(wakeUp, person)),
      () => Effect.sync(() => this.#wakeUp.delete(wakeUp))
    )

  close(): void {
    this.isClosing = true
    for (const wakeUp of this.#wakeUp.keys()) wakeUp()
  }
}

const makeStreams = Effect.gen(function* () {
  const news = yield* RcMap.make({ lookup: watchAccount })
  const listen: Listen = (account, listener) =>
    Effect.flatMap(RcMap.get(news, account), (pages) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => pages.add(listener)),
          () => Effect.sync(() => pages.delete(listener))
        )
      )
    )
  const streams = new OpenStreams(listen)
  yield* streams.reloads.start()
  return streams
})

/** All open streams of this process. */
export class Streams extends Context.Service<Streams, OpenStreams>()("till/dashboard/Streams") {
  static readonly layer: Layer.Layer<Streams, never, CommitFeed> = Layer.effect(Streams, makeStreams)
  /** Closes all streams with this layer. It must close before the server, which waits for open responses. */
  static readonly ending: Layer.Layer<never, never, Streams> = Layer.effectDiscard(
    Effect.flatMap(Streams, (streams) => Effect.addFinalizer(() => Effect.sync(() => streams.close())))
  )
}

/** The stream of one page. `isGood` checks whether its session is still valid. */
const streamOf = Effect.fnUntraced(function* (
  streams: OpenStreams,
  { account, person }: { readonly account: AccountId; readonly person: string },
  isGood: Effect.Effect<boolean>
) {
  const signal = yield* Queue.sliding<true>(1)
  const changed = new Set<string>()
  let mayReload = false
  let mayHaveEnded = false
  const wakeUp = () => void Queue.offerUnsafe(signal, true)
  const turn = () => {
    mayReload = true
    wakeUp()
  }
  yield* streams.register(person, wakeUp)
  yield* Effect.addFinalizer(() => Effect.sync(() => streams.reloads.remove(account, turn)))
  yield* streams.listen(account, (kinds) => {
    for (const kind of kinds) changed.add(kind)
    streams.reloads.enqueue(account, turn)
  })
  yield* streams.listen(INSTALLATION, (kinds) => {
    if (!kinds.has(DASHBOARD_SESSION.name) && !kinds.has(PERSON.name)) return
    mayHaveEnded = true
    wakeUp()
  })
  /** The next message; the last one reports the end of the session. */
  const next = Effect.gen(function* () {
    const isQuiet = Option.isNone(yield* Effect.timeoutOption(Queue.take(signal), PULSE_MILLIS))
    if (streams.isClosing) return { text: PULSE, goesOn: false }
    if (isQuiet || mayHaveEnded) {
      mayHaveEnded = false
      if (!(yield* isGood)) return { text: eventOf("ended", {}), goesOn: false }
    }
    if (!mayReload) return { text: PULSE, goesOn: true }
    mayReload = false
    const kinds = [...changed]
    changed.clear()
    return { text: eventOf("changed", { kinds }), goesOn: true }
  })
  const rest = Stream.unfold(true, (goesOn) =>
    goesOn ? Effect.map(next, ({ goesOn, text }) => [text, goesOn] as const) : Effect.succeed(undefined)
  )
  return Stream.encodeText(Stream.concat(Stream.succeed(RETRY), rest))
})

const HEADERS = { "cache-control": "no-store", "x-accel-buffering": "no" }

const openStream = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, mode: string) {
  const streams = yield* Streams
  const visitor = yield* visitorOf(request)
  if (visitor === undefined || (mode !== "test" && mode !== "live")) return HttpServerResponse.empty({ status: 401 })
  const person = visitor.person.id
  const account = accountOf(visitor.merchant.id, mode === "live")
  yield* noteAccount(account)
  yield* requireHere(account)
  if (!streams.hasRoomFor(person)) return HttpServerResponse.empty({ status: 503 })
  const services = yield* Effect.context<Services>()
  const isGood = visitorOf(request).pipe(
    Effect.map((now) => now !== undefined),
    Effect.orElseSucceed(() => true),
    Effect.provideContext(services)
  )
  const stream = Stream.unwrap(streamOf(streams, { account, person }, isGood))
  return HttpServerResponse.stream(stream, { contentType: "text/event-stream", headers: HEADERS })
})

export const layer = route("GET", "/dashboard/:mode/live", (request, { mode = "" }) => openStream(request, mode))
