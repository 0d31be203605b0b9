/** The cost of open pages: creates per second and Till's memory. */
import { Effect } from "effect"
import { BenchFailure, failureOf } from "../BenchFailure.ts"
import { median } from "../load/Percentiles.ts"
import * as ProcessTime from "../ProcessTime.ts"
import { type Creates, type Ground, inTurn } from "./Creates.ts"
import { signIn, type Visitor } from "./Visitors.ts"

export interface OpenPagesPace {
  readonly openPages: number
  readonly warmUpSeconds: number
  readonly secondsPerRound: number
  readonly rounds: number
}

/** The streams that the dashboard allows a person. */
const PAGES_PER_PERSON = 40
const SAMPLE_MILLIS = 100

/** Opens home and payment pages in turn; each reloads when its stream reports a change, as its script does. */
const openPages = Effect.fnUntraced(function* (
  visitors: ReadonlyArray<Visitor>,
  count: number,
  loaded: (isGood: boolean) => void
) {
  yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        Promise.all(
          Array.from({ length: count }, (_, i) => {
            const visitor = visitors[Math.floor(i / PAGES_PER_PERSON)]!
            const path = i % 2 === 0 ? "" : "/payments"
            let isLoading = false
            return visitor.listen(() => {
              if (isLoading) return
              isLoading = true
              visitor
                .load(path)
                .then(
                  ({ status, text }) => loaded(status === 200 && text.includes("</html>")),
                  () => loaded(false)
                )
                .finally(() => (isLoading = false))
            })
          })
        ),
      catch: failureOf("The pages cannot be opened")
    }),
    (closes) => Effect.sync(() => closes.forEach((close) => close()))
  )
})

/** Runs an effect and samples the resident memory of a process during it. */
const noting = <A, E, R>(pid: number, samples: Array<number>, effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const timer = setInterval(() => samples.push(ProcessTime.residentBytesOf(pid) ?? NaN), SAMPLE_MILLIS)
    return Effect.ensuring(
      effect,
      Effect.sync(() => clearInterval(timer))
    )
  })

/** Runs rounds of creates with open pages and without in turn, because memory grows with the objects, too. */
export const measure = Effect.fnUntraced(function* (
  { server }: Ground,
  creates: Creates,
  merchant: string,
  pace: OpenPagesPace
) {
  const people = Math.ceil(pace.openPages / PAGES_PER_PERSON)
  const visitors = yield* signIn(server, merchant, { connections: PAGES_PER_PERSON, people })
  const round = (samples: Array<number>) => noting(server.pid, samples, creates.run(pace.secondsPerRound))
  const open: Array<number> = []
  const without: Array<number> = []
  let loads = 0
  let wrong = 0
  let counted = 0
  let seconds = 0
  const withPages = Effect.scoped(
    Effect.gen(function* () {
      yield* openPages(visitors, pace.openPages, (isGood) => {
        if (isGood) loads++
        else wrong++
      })
      yield* creates.run(pace.warmUpSeconds / 2)
      const [loadsBefore, began] = [loads, performance.now()]
      const perSecond = yield* round(open)
      seconds += (performance.now() - began) / 1000
      counted += loads - loadsBefore
      return perSecond
    })
  )
  yield* creates.run(pace.warmUpSeconds)
  const live = yield* inTurn(pace.rounds, withPages, round(without))
  if (wrong > 0) return yield* new BenchFailure({ problem: `${wrong} open pages were not given what they show.` })
  if (counted === 0) return yield* new BenchFailure({ problem: "No open page has received a change." })
  return {
    live,
    loadsPerSecond: counted / seconds,
    ...(Number.isFinite(median(open)) && { residentBytes: { open: median(open), without: median(without) } })
  }
}, Effect.scoped)
